/* Poses and joint axes at a configuration. Each DOF is a screw s in the world: at unit rate, it
 * moves a point x of its bodies with velocity s.v + s.w x x. The twist of a body is a sum of screws
 * along its path from the root. The derivative of a screw S_k with respect to a DOF j that moves it
 * is the bracket S_j x S_k. */
#ifndef QD_MECHANICS_KINEMATICS_H
#define QD_MECHANICS_KINEMATICS_H

#include "base/arena.h"
#include "base/vec3.h"
#include "mechanics/model.h"

/* Angular velocity, and velocity of the point at the world origin. */
typedef struct screw {
  double w[3];
  double v[3];
} screw;

typedef struct kinematics {
  double *body_pos;  /* (nb, 3) world */
  double *body_quat; /* (nb, 4) world */
  double *body_rot;  /* (nb, 9) world */
  screw *dof_screw;  /* (nv) */
} kinematics;

void kinematics_lay_out(kinematics *k, const qd_model *model, arena *a);
/* mocap (mocap_count, 7): poses of the mocap bodies; NULL: the model's own */
void kinematics_compute(const qd_model *model, const double *q, const double *mocap, kinematics *k);

/* r = a x b, the derivative of b if b moves with a */
static inline void screw_bracket(screw *r, const screw *a, const screw *b) {
  screw out;
  vec3_cross(out.w, a->w, b->w);
  vec3_cross(out.v, a->w, b->v);
  vec3_add_cross(out.v, 1.0, a->v, b->w);
  *r = out;
}

/* r += s a */
static inline void screw_axpy(screw *r, double s, const screw *a) {
  vec3_axpy(r->w, s, a->w);
  vec3_axpy(r->v, s, a->v);
}

/* r = a - b */
static inline void screw_sub(screw *r, const screw *a, const screw *b) {
  vec3_sub(r->w, a->w, b->w);
  vec3_sub(r->v, a->v, b->v);
}

/* velocity = velocity of the point p under the twist s */
static inline void screw_point_velocity(double velocity[3], const screw *s, const double p[3]) {
  vec3_cross(velocity, s->w, p);
  vec3_axpy(velocity, 1.0, s->v);
}

/* sum += s times that velocity under the twist T */
static inline void screw_add_point_velocity(double sum[3], double s, const screw *T,
                                            const double p[3]) {
  double velocity[3];
  screw_point_velocity(velocity, T, p);
  vec3_axpy(sum, s, velocity);
}

/* A force and its moment about the world origin. Its power with a screw is w.m + v.f. */
typedef struct wrench {
  double m[3];
  double f[3];
} wrench;

/* W = force and moment at a point, about the world origin */
static inline void wrench_at(wrench *W, const double point[3], const double force[3],
                             const double moment[3]) {
  vec3_cross(W->m, point, force);
  vec3_axpy(W->m, 1.0, moment);
  vec3_copy(W->f, force);
}

/* s . W */
static inline double screw_dot(const screw *s, const wrench *W) {
  return vec3_dot(s->w, W->m) + vec3_dot(s->v, W->f);
}

/* r += s a */
static inline void wrench_axpy(wrench *r, double s, const wrench *a) {
  vec3_axpy(r->m, s, a->m);
  vec3_axpy(r->f, s, a->f);
}

/* r = s x* W, the derivative of W if W moves with s. It is dual to the bracket:
 *   (s x b) . W = -b . (s x* W) */
static inline void screw_cross_wrench(wrench *r, const screw *s, const wrench *W) {
  wrench out;
  vec3_cross(out.f, s->w, W->f);
  vec3_cross(out.m, s->w, W->m);
  vec3_add_cross(out.m, 1.0, s->v, W->f);
  *r = out;
}

/* Twist of a body for the displacement delta (nv). */
void body_twist(screw *twist, const qd_model *model, const kinematics *k, int body,
                const double *delta);

#endif
