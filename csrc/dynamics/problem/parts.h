/* The stages of problem_assemble, one file each, and functions that they share. */
#ifndef QD_DYNAMICS_PROBLEM_PARTS_H
#define QD_DYNAMICS_PROBLEM_PARTS_H

#include <math.h>

#include "dynamics/problem/mujoco_row.h"
#include "dynamics/problem/problem.h"
#include "mechanics/actuator.h"

/* cost.c: Q and b of all islands. */
void cost_assemble(problem *p, inertia *I);

/* contact_columns.c: which variables move which body, in islands that have contacts. */
void contact_columns_fill(column_table *columns, const problem *p);
/* Lists the tiles that move bodies A and B of a contact relative to each other, and fills `sign`.
 * Variables that move both have exactly no effect. */
void contact_tiles_find(problem *p, const qd_contact *contact);
/* Fills p->motion, per unit rate of the listed variables, and the squared lengths of its first
 * `dim` components. */
void contact_motions_compute(problem *p, const island *one, const qd_contact *contact,
                             double squared[MOTION_MAX]);

/* contact_rows.c: the cone of one contact, if a free DOF moves it. */
void contact_rows_assemble(problem *p, island *one, int index);

/* pressure_rows.c: energy and friction of the island's soft pairs. */
void pressure_rows_assemble(problem *p, island *one);

/* limit_rows.c: the joint limits of the working set. */
void limit_rows_assemble(problem *p, island *one);

/* limit_rows.c: the limits of ball joints. */
void ball_limit_rows_assemble(problem *p, island *one);

/* limit_rows.c: lists the tiles of three successive DOFs; 0 if all are held. Appends a row of G
 * with these entries. */
int turn_tiles_find(problem *p, const island *one, int dof);
void turn_entries_append(problem *p, island *one, int dof, const double entry[3]);

/* turn_rows.c: limits of ball joints and dry friction of rotations, by MuJoCo's law. */
void turn_rows_assemble(problem *p, island *one);

/* bound_rows.c: bounds of the motion of softened programs, after the island's rows. */
void bound_rows_assemble(problem *p, island *one);

/* tendon_rows.c: limits, springs, friction and actuators of the island's tendons. */
void tendon_rows_assemble(problem *p, island *one);

/* force_rows.c: dry friction and limits of actuators on the island's DOFs. */
void force_rows_assemble(problem *p, island *one);

/* constraint_rows.c: one bilateral constraint. */
void constraint_rows_assemble(problem *p, island *one, int index);

/* equality_laws.c: MuJoCo's law of equality i of the island. */
void equality_yield(problem *p, const island *one, int i);

/* redundant_rows.c: removes rows of the island's constraints that others imply. */
void redundant_rows_leave(problem *p, island *one);

/* The force of an actuator in the program, at the beginning of the step. */
static inline actuator_force problem_actuator_force(const problem *p, int actuator) {
  if (problem_clamps_force(p->model, p->options, actuator)) {
    return problem_clamped_force(p, actuator).force;
  }
  const actuator_point at = actuator_point_at(p, actuator);
  return actuator_force_at(p->model, actuator, &at);
}

/* 1 if an actuator's force has a row instead of a spring in Q, because its limits are in the
 * program. A force without stiffness is constant, and is clamped. */
static inline int actuator_has_row(const problem *p, int actuator, const actuator_force *force) {
  return p->model->bounded_forces > 0 && p->options->force_limits && force->stiffness > 0.0 &&
         p->bounded[actuator] && actuator_is_bounded(p->model, actuator) &&
         !problem_clamps_force(p->model, p->options, actuator);
}

/* Column of a DOF in the matrices of its island. */
static inline int column_of(const problem *p, const island *one, int dof) {
  return p->variable_of_dof[dof] - one->variable;
}

/* An entry of Q within the tiles of its row. */
static inline double *cost_entry(const island *one, int i, int j) {
  const int at = one->Q.start[i];
  return one->Q.values + 4 * (size_t)at + (j - 4 * one->Q.tiles[at]);
}

/* Offset and compliance of a row `beyond` its margin by MuJoCo's law, where it moves at this speed.
 */
static inline void yield_row(problem *p, island *one, int row, const mujoco_reference *of,
                             double beyond, double speed) {
  mujoco_row law;
  mujoco_row_compute(&law, NULL, NULL, of, beyond, p->options->h);
  p->program.g[row] = law.in_time * speed + law.spring * beyond;
  p->program.compliance[row] = law.compliance;
  ++one->compliant;
  ++p->report.timed;
}

static inline void add_cone(problem *p, island *one, int kind, int dim, double target) {
  ++one->cone_count;
  p->program.cone_kind[p->count.cones] = kind;
  p->program.cone_dim[p->count.cones] = dim;
  p->program.target_mu[p->count.cones++] = target;
}

/* The gap in the program: at most the correction of one step. *capped: 1 if this is less than the
 * whole gap. */
static inline double gap_to_undo(problem *p, double gap, int *capped) {
  const double least = -p->options->h * p->options->recovery_speed;
  *capped = gap < least;
  p->report.capped += *capped;
  return *capped ? least : gap;
}

static inline double barrier_target(const qd_step_options *o, int log_count) {
  return isinf(o->kappa) ? 0.0 : log_count / o->kappa;
}

#endif
