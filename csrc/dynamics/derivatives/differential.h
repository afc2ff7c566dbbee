/* One direction through a step, and one cotangent back: data that both share.
 *
 * With z in place of the variables' multipliers, L = -z'r + mu'w + nu'(C d + c) at fixed d, lambda
 * determines all derivatives: those of L by z and mu are -r and w, and y'dd = dL for z, mu, nu from
 * the solver's adjoint solve (conic.h). Forwards: the change of r, w along a direction. Backwards:
 * the gradient of L. Bodies move by twists, so each direction costs a sweep over bodies and
 * contacts and needs no matrix. */
#ifndef QD_DYNAMICS_DIFFERENTIAL_H
#define QD_DYNAMICS_DIFFERENTIAL_H

#include "base/lanes.h"
#include "dynamics/derivatives/step_point.h"
#include "mechanics/inertia.h"

#define DIRECTIONS LANE_COUNT /* solved at once */

typedef struct differential {
  int *counts;                       /* (contacts) 1: derivatives depend on the contact's rows */
  contact_point_derivative *by_pose; /* (contacts) */
  contact_point_derivative *by_size; /* (contacts) */
  int poses_known, sizes_known;
  double *masked;   /* (nv) scratch */
  double *by_q;     /* (nv) the gradient by q, if only that by mocap poses is wanted */
  double *z;        /* (nv) */
  double *by_delta; /* (nv) */
  twist_field by_z, mass_z, gravity_z;         /* twists under z */
  wrench *pose, *twist, *momentum_z, *scratch; /* (nb) */
  wrench *velocity_z, *carried_z, *bounce;     /* (nb) second-order step: cotangents of twists
    under v by inertia, T x* momentum_z, and cotangents of them by bounces */
  screw *body_motion;                          /* (nb) motion along a direction */
  screw *axis_motion;                          /* (nv) */
  screw *d_delta, *d_mass_delta, *d_velocity,
      *d_stirred;          /* (nb) changes of twists along a direction */
  double *d_coasting;      /* (nv) changes of the coasting velocities */
  double *by_coasting;     /* (nv) cotangent of the coasting velocities */
  double *tendon_change;   /* (tendon_count) changes of forces along a direction */
  double *four_r, *four_x; /* (nv, DIRECTIONS) */
  double *side_x;          /* (nv, DIRECTIONS) four_x on the other side of a kink */
  double *late_r, *late_z; /* (nv, DIRECTIONS) r and z of the last stage (integration.h) */
  double *four_e;          /* (equalities, DIRECTIONS) */
} differential;

void differential_lay_out(differential *d, const qd_model *model, int contact_capacity, arena *a);

void differential_need_poses(const solved_step *s);
void differential_need_sizes(const solved_step *s);

/* A number that is linear in the arguments of a step. Forwards it is weight times its change along
 * a tangent; backwards its entries times its weight are added to the gradient. NULL: an argument
 * that is not wanted. */
typedef struct linear_form {
  const double *const *tangent; /* (arguments); NULL: backwards */
  double *const *gradient;      /* (arguments) */
  const int *place; /* (nv) positions of DOFs in the gradients by q and v; NULL: their own */
  double weight, change;
  double *out; /* forwards: what the change is added to; NULL: `change` */
} linear_form;

static inline int form_knows(const linear_form *f, int argument) {
  return (f->tangent != NULL ? f->tangent[argument] : f->gradient[argument]) != NULL;
}

/* Adds the derivative `entry` by number `at` of an argument. */
static inline void form_add(linear_form *f, int argument, int at, double entry) {
  if (f->tangent != NULL) {
    double *out = f->out != NULL ? f->out : &f->change;
    *out += f->tangent[argument] != NULL ? f->weight * (entry * f->tangent[argument][at]) : 0.0;
  } else if (f->gradient[argument] != NULL) {
    f->gradient[argument][f->place != NULL ? f->place[at] : at] += f->weight * entry;
  }
}

/* ---- row_forms.c */

/* Where a row of the problem, or a force on a DOF, goes: to rows and stationarity along a
 * direction, from their cotangents to the gradients, or to columns of matrices. */
typedef struct form_maker {
  linear_form (*row)(const struct form_maker *of, int row);
  linear_form (*force)(const struct form_maker *of, int dof);
  void *context;
} form_maker;

/* Springs and actuators of one DOF. */
void form_add_drives(const form_maker *of, const solved_step *s, int dof);
/* An island's rows of joints: limits, dry friction, limits of ball joints, rotations. */
void form_add_joint_rows(const form_maker *of, const solved_step *s, const island *one);
/* An actuator's force with these slopes, without the one by its coordinate; and its limits. */
void form_actuator(linear_form *f, const actuator_slopes *slope, int i);
void form_force_range(linear_form *f, const actuator_part *part, int i);
/* The force of a row of a tendon's last two kinds, by parameters and command. */
void form_tendon_force(linear_form *f, const actuator_part *part, const tendon_row *row);
/* (dC/dt) v of a connect or a weld, by the DOFs of both bodies. */
void form_drift(linear_form f[CONSTRAINT_ROWS_MAX], const solved_step *s,
                const constraint_state *state);
/* The row of a coupling; of tendons, without their lengths and rates. */
void form_coupling(linear_form *f, const solved_step *s, int row);
/* A tendon's row by h and by parameters; by_h: derivative of its law. */
void form_tendon_row(linear_form *f, const solved_step *s, const tendon_row *row, double by_h);

/* ---- inertia_form.c */

/* 1 if masses, centres or inertias of bodies are wanted. */
int form_knows_masses(const linear_form *f);
/* -Z.I T by mass and inertia of body b, whose centre of mass is com (world); on_com += its
 * derivative by com. */
void form_inertia(linear_form *f, double on_com[3], const solved_step *s, int b,
                  const double com[3], const screw *Z, const screw *T);
/* A number with this derivative by the centre of mass (world). */
void form_com(linear_form *f, const solved_step *s, int b, const double on_com[3]);

/* A tendon's part of a row of its couplings: share (length + rate.d), minus bend times its
 * displacement, by its length. */
typedef struct tendon_coupling {
  int place; /* position in the search; -1: before the first */
  int row;   /* into the problem's equalities */
  double share, bend, moved;
  coupling_change law;
} tendon_coupling;

/* Finds the next coupling; returns 0 if there is none. */
int next_coupling(tendon_coupling *c, const solved_step *s, int tendon);

/* jvp/pushforward.c: r (n) of all free variables, w (rows), e (equalities), each with this stride,
 * from tangents (one direction, NULL: zero). */
void pushforward_compute(const solved_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                         double *r, double *w, double *e, int stride);
/* vjp/pullback.c: gradients += those of L (one cotangent; NULL: not wanted), by_q without the
 * retraction's own derivative. z (nv) is in the differential, mu (rows) and nu (equalities) have
 * this stride. */
void pullback_clear(const qd_model *model, double *const gradient[QD_ARGUMENT_COUNT]);
void pullback_add(const solved_step *s, const double *mu, const double *nu, int stride,
                  double *const gradient[QD_ARGUMENT_COUNT]);

/* ---- prepare.c */

/* Factors each island's system at the solution. Fills result->derivative_exact, island.exact,
 * differential.counts and the step's point. */
qd_status derivatives_prepare(const solved_step *s, qd_step_result *result);

/* ---- integration_part.c: the last stage of a step (integration.h), with N x = the dampers' forces
 * times h. Does nothing for a step without it. */

/* The step as its program knows it, and as its result has it. */
solved_step integration_program(const qd_model *model, struct qd_workspace *w,
                                const qd_step_options *options, const qd_step_input *input,
                                const qd_step_result *result);
solved_step integration_end(const solved_step *program, const qd_step_result *result);
/* 1 if its derivatives are complete: no damped spatial tendon is in N. */
int integration_is_plain(const solved_step *s);
/* d delta of the program -> that of the result: matrices (nv, nv) and (nv, nu), NULL: none */
void integration_columns(const solved_step *program, const solved_step *end, double *by_q,
                         double *by_v, double *by_u);
/* Change of the result's delta (nv), from that of the program (x, in place) and those of both
 * stationarities (nv), along the tangents. */
void integration_push(const solved_step *end, const double *const tangent[QD_ARGUMENT_COUNT],
                      const double *r, const double *r_end, double *x);
/* Cotangent of the result's delta -> that of the program's (in place), and z (nv) of the last
 * stage. */
void integration_pull(const solved_step *end, double *by_delta, double *z);
/* gradient += -z times the dampers' forces */
void integration_pull_dampers(const solved_step *end, const double *z,
                              double *const gradient[QD_ARGUMENT_COUNT]);

/* ---- sides.c */

/* Sets island.exact of a factored island of an exact step in which rows that hold positions and
 * rows that resist motion carry the same load: 1 only if the steps on both sides have the same
 * derivative, which the factor then belongs to. */
qd_status derivatives_settle_sides(const solved_step *s, island *one, double *limit_force);

/* Finds the contacts whose rows derivatives depend on. */
void derivatives_choose_contacts(const solved_step *s, const island *one);

#endif
