/* Public queries of a configuration: each runs the stages that it needs. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "dynamics/workspace.h"
#include "mechanics/actuator.h"
#include "mechanics/applied.h"
#include "mechanics/pairs/pressure_pairs.h"

void qd_body_poses(const qd_model *model, qd_workspace *workspace, const double *q, double *pos,
                   double *rot) {
  kinematics *k = &workspace->kinematics;
  kinematics_compute(model, q, NULL, k);
  memcpy(pos, k->body_pos, 3 * (size_t)model->body.count * sizeof(double));
  memcpy(rot, k->body_rot, 9 * (size_t)model->body.count * sizeof(double));
}

void qd_point_jacobian(const qd_model *model, qd_workspace *workspace, const double *q, int body,
                       const double *point, double *jacobian) {
  kinematics *k = &workspace->kinematics;
  const int nv = model->nv;
  double p[3];
  const int_list chain = body_chain(model, body);
  kinematics_compute(model, q, NULL, k);
  mat3_mul_add(p, k->body_rot + 9 * body, point, k->body_pos + 3 * body);
  memset(jacobian, 0, 6 * (size_t)nv * sizeof(double));
  for (int c = 0; c < chain.count; ++c) {
    const screw *s = k->dof_screw + chain.at[c];
    double velocity[3];
    screw_point_velocity(velocity, s, p);
    for (int i = 0; i < 3; ++i) {
      jacobian[i * nv + chain.at[c]] = velocity[i];
      jacobian[(3 + i) * nv + chain.at[c]] = s->w[i];
    }
  }
}

static void spread_over_dofs(double *out, const qd_model *model, const double *rate) {
  memset(out, 0, (size_t)model->tendon.count * (size_t)model->nv * sizeof(double));
  for (int i = 0; i < model->tendon.count; ++i, out += model->nv) {
    for (int d = model->tendon.dof_start[i]; d < model->tendon.dof_start[i + 1]; ++d) {
      out[model->tendon.dof[d]] = rate[d];
    }
  }
}

void qd_tendon_lengths(const qd_model *model, qd_workspace *workspace, const double *q,
                       double *length, double *jacobian, double *moment) {
  const tendons *t = &workspace->problem.tendons;
  kinematics_compute(model, q, NULL, &workspace->kinematics);
  tendons_compute(t, model, &workspace->kinematics, q);
  memcpy(length, t->length, (size_t)model->tendon.count * sizeof(double));
  if (jacobian != NULL) {
    spread_over_dofs(jacobian, model, t->slope);
  }
  if (moment != NULL) {
    spread_over_dofs(moment, model, t->rate);
  }
}

void qd_mass_matrix(const qd_model *model, qd_workspace *workspace, const double *q, double *M) {
  kinematics_compute(model, q, NULL, &workspace->kinematics);
  inertia_compute(model, &workspace->kinematics, 1, &workspace->inertia);
  inertia_mass_matrix(M, model, &workspace->kinematics, &workspace->inertia);
}

/* The motion at v with accelerations a; NULL: zero. */
static void move(const qd_model *model, qd_workspace *w, const double *q, const double *v,
                 const double *a) {
  kinematics_compute(model, q, NULL, &w->kinematics);
  inertia_compute(model, &w->kinematics, 1, &w->inertia);
  body_motion_compute(&w->problem.state.motion_in_time, model, &w->kinematics, v, a);
}

void qd_bias_force(const qd_model *model, qd_workspace *workspace, const double *q, const double *v,
                   double *force) {
  move(model, workspace, q, v, NULL);
  inertial_force(force, workspace->inertia.momentum, model, &workspace->kinematics,
                 &workspace->inertia, &workspace->problem.state.motion_in_time);
}

void qd_inertial_wrenches(const qd_model *model, qd_workspace *workspace, const double *q,
                          const double *v, const double *a, double *out) {
  const body_motion *m = &workspace->problem.state.motion_in_time;
  move(model, workspace, q, v, a);
  memset(out, 0, QD_WRENCH * sizeof(double));
  for (int b = 1; b < model->body.count; ++b) {
    double *force = out + QD_WRENCH * b, com[3], arm[3];
    wrench F;
    inertial_wrench(&F, workspace->inertia.body + b, m->velocity.body + b,
                    m->acceleration.body + b);
    body_com(com, model, &workspace->kinematics, b);
    vec3_copy(force, F.f);
    vec3_cross(arm, com, F.f);
    vec3_copy(force + 3, F.m);
    vec3_axpy(force + 3, -1.0, arm);
  }
}

void qd_energy(const qd_model *model, qd_workspace *workspace, const double *q, const double *v,
               double *kinetic, double *potential) {
  const model_parameters *par = &model->parameters;
  move(model, workspace, q, v, NULL);
  *kinetic = *potential = 0.0;
  for (int b = 1; b < model->body.count; ++b) {
    const screw *T = workspace->problem.state.motion_in_time.velocity.body + b;
    wrench h;
    inertia_momentum(&h, workspace->inertia.body + b, T);
    *kinetic += 0.5 * screw_dot(T, &h);
    *potential -= model->body.fall[b] * vec3_dot(par->gravity, workspace->inertia.body[b].moment);
  }
  for (int dof = 0; dof < model->nv; ++dof) {
    const int joint = model->dof.joint[dof];
    const double bent = par->joint_stiffness[joint] > 0.0 ? joint_stretch(model, dof, q) : 0.0;
    *kinetic += 0.5 * par->joint_armature[joint] * v[dof] * v[dof];
    *potential += 0.5 * par->joint_stiffness[joint] * bent * bent;
  }
}

qd_status qd_collide(const qd_model *model, qd_workspace *workspace, const double *q, double margin,
                     const qd_contact **contacts, int *contact_count) {
  *contacts = NULL;
  *contact_count = 0;
  if (isnan(margin)) {
    return QD_BAD_ARGUMENT;
  }
  if (!all_finite(q, model->nq)) {
    return QD_NOT_FINITE;
  }
  kinematics_compute(model, q, NULL, &workspace->kinematics);
  workspace->collision.by_edges = 0;
  const qd_status status =
      collision_compute(model, &workspace->kinematics, margin, &workspace->collision);
  *contacts = workspace->collision.contact;
  *contact_count = workspace->collision.count;
  return status;
}

qd_status qd_pair_distances(const qd_model *model, qd_workspace *workspace, const double *q,
                            double margin, double *distance, int *contact_count) {
  const qd_contact *contacts;
  const qd_status status = qd_collide(model, workspace, q, margin, &contacts, contact_count);
  if (status != QD_OK) {
    return status;
  }
  if (!all_finite(workspace->kinematics.body_pos, 3 * model->body.count)) {
    return QD_NOT_FINITE; /* q is finite but too large for its poses: nothing would be in range */
  }
  for (int pair = 0; pair < model->pair.count; ++pair) {
    distance[pair] = margin;
  }
  for (int i = 0; i < *contact_count; ++i) {
    double *least = distance + contacts[i].pair;
    *least = contacts[i].dist < *least ? contacts[i].dist : *least;
  }
  return QD_OK;
}

qd_status qd_pressure_surface(const qd_model *model, qd_workspace *workspace, const double *q,
                              int number, int *pair, qd_patch *patch, qd_patch_polygon *polygons,
                              int polygon_capacity, double *vertices, int vertex_capacity) {
  kinematics *k = &workspace->kinematics;
  const patch_room room = {polygons, vertices, polygon_capacity, vertex_capacity};
  *pair = model->pair.of_soft[number];
  kinematics_compute(model, q, NULL, k);
  const int *geom = model->pair.geom + 2 * *pair;
  const body_frame a = body_frame_of(k, model->geom.body[geom[0]]);
  const body_frame b = body_frame_of(k, model->geom.body[geom[1]]);
  return pressure_pair_patch(model, *pair, &a, &b, patch, &room);
}
