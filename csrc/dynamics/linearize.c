/* A = dq+/dq and B = dq+/du of a step (formulation 4; S3 section III-C).
 *
 * At the solution, with r = Q d + b - G'lambda and w = G d + g, the solver answers how d moves when
 * r and w move at fixed d and lambda. This file supplies those partial derivatives. Kinematic facts
 * used, for DOF j with screw S_j and bodies' twists T under d: dS_k / dq_j = S_j x S_k where j
 * moves k's axis, dT   / dq_j = S_j x (T - P_j)             for bodies behind j, with P_j the part
 * of T from the DOFs that j does not move (its own block included). */
#include <math.h>
#include <string.h>

#include "dynamics/step.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"
#include "mechanics/retraction.h"
#include "numerics/conic.h"

/* ------------------------------------------------------- twists and wrenches at the solution */

static void compute_twists(const qd_model *model, const kinematics *k, const double *delta,
                           sensitivity *s) {
  for (int b = 0; b < model->body_count; ++b) {
    int count;
    const int *chain = body_chain(model, b, &count);
    screw twist;
    memset(&twist, 0, sizeof twist);
    for (int c = 0; c < count; ++c) {
      screw_axpy(&twist, delta[chain[c]], k->dof_screw + chain[c]);
      const int owned = model->dof_body[chain[c]] == b;
      if (owned && chain[c] == model->dof_block_last[chain[c]]) {
        for (int j = model->dof_block_start[chain[c]]; j <= chain[c]; ++j) {
          s->unmoved_twist[j] = twist;
        }
      }
    }
    s->body_twist[b] = twist;
  }
}

/* W = the contact's force on B, about the world origin */
static void contact_wrench(wrench *W, const qd_contact *contact) {
  memset(W, 0, sizeof *W);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(W->f, contact->force[axis], contact->frame + 3 * axis);
    vec3_axpy(W->m, contact->force[3 + axis], contact->frame + 3 * axis);
  }
  double moment[3];
  vec3_cross(moment, contact->pos, W->f);
  vec3_axpy(W->m, 1.0, moment);
}

/* Wrenches of contacts, constraints and the caller on each body and all behind it. */
static void compute_subtree_wrenches(const qd_model *model, const kinematics *k, const collision *c,
                                     const problem *p, const double *applied, sensitivity *s) {
  memset(s->body_wrench, 0, (size_t)model->body_count * sizeof(wrench));
  for (int i = 0; i < c->count; ++i) {
    wrench W;
    contact_wrench(&W, c->contact + i);
    wrench_axpy(s->body_wrench + c->contact[i].body_b, 1.0, &W);
    wrench_axpy(s->body_wrench + c->contact[i].body_a, -1.0, &W);
  }
  for (int i = 0; i < model->constraint_count; ++i) {
    const constraint_state *constraint = p->constraint + i;
    wrench W[2];
    constraint_wrenches(W, constraint, p->constraint_force + QD_CONSTRAINT_FORCE * i);
    wrench_axpy(s->body_wrench + constraint->body[0], 1.0, W);
    wrench_axpy(s->body_wrench + constraint->body[1], 1.0, W + 1);
  }
  for (int b = 1; applied != NULL && b < model->body_count; ++b) {
    wrench W;
    applied_wrench(&W, model, k, b, applied + APPLIED_WRENCH * b);
    wrench_axpy(s->body_wrench + b, 1.0, &W);
  }
  for (int b = model->body_count - 1; b > 0; --b) {
    wrench_axpy(s->body_wrench + model->body_parent[b], 1.0, s->body_wrench + b);
  }
}

/* -d(S_k . W_k)/dq_j by the motion of the axes, W_k the contact wrench on all that k carries. */
static void add_axis_derivative(const qd_model *model, const kinematics *k, sensitivity *s) {
  for (int i = 0; i < model->nv; ++i) {
    int count;
    const int *chain = body_chain(model, model->dof_body[i], &count);
    for (int c = 0; c < count && dof_moves(model, chain[c], i); ++c) {
      screw turned;
      screw_bracket(&turned, k->dof_screw + chain[c], k->dof_screw + i);
      s->D[i * model->nv + chain[c]] -= screw_dot(&turned, s->body_wrench + model->dof_body[i]);
    }
  }
}

/* ------------------------------------------------------- one contact along one DOF */

/* What the contact's rows and wrench need at fixed delta and forces. */
typedef struct contact_state {
  const qd_contact *contact;
  const contact_block *block;
  contact_point_derivative derivative;
  screw relative;     /* twist of B relative to A under delta */
  double velocity[3]; /* of B relative to A at the contact point */
  double force[3], moment[3];
} contact_state;

static void contact_state_fill(contact_state *cs, const qd_workspace *w, int index) {
  const qd_contact *contact = w->collision.contact + index;
  cs->contact = contact;
  cs->block = w->problem.block + index;
  contact_derivative_compute(&cs->derivative, &w->collision, index);
  screw_sub(&cs->relative, w->sensitivity.body_twist + contact->body_b,
            w->sensitivity.body_twist + contact->body_a);
  screw_point_velocity(cs->velocity, &cs->relative, contact->pos);
  vec3_set(cs->force, 0.0, 0.0, 0.0);
  vec3_set(cs->moment, 0.0, 0.0, 0.0);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(cs->force, contact->force[axis], contact->frame + 3 * axis);
    vec3_axpy(cs->moment, contact->force[3 + axis], contact->frame + 3 * axis);
  }
}

/* d (J delta + phi e1) / dq_j per component, in the order of friction.h */
static void motion_derivative(double d_motion[MOTION_MAX], const contact_state *cs,
                              const contact_motion *m, const screw *d_relative) {
  double d_velocity[3], turned[3];
  screw_point_velocity(d_velocity, d_relative, cs->contact->pos);
  vec3_cross(turned, cs->relative.w, m->pos);
  vec3_axpy(d_velocity, 1.0, turned);
  for (int axis = 0; axis < 3; ++axis) {
    const double *t = cs->contact->frame + 3 * axis, *dt = m->frame + 3 * axis;
    d_motion[axis] = vec3_dot(dt, cs->velocity) + vec3_dot(t, d_velocity);
    if (cs->contact->dim > 3) {
      d_motion[3 + axis] = vec3_dot(dt, cs->relative.w) + vec3_dot(t, d_relative->w);
    }
  }
  d_motion[0] += m->dist;
}

/* d W / dq_j at fixed contact-frame forces */
static void wrench_derivative(wrench *dW, const contact_state *cs, const contact_motion *m) {
  double part[3];
  memset(dW, 0, sizeof *dW);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(dW->f, cs->contact->force[axis], m->frame + 3 * axis);
    if (cs->contact->dim > 3) {
      vec3_axpy(dW->m, cs->contact->force[3 + axis], m->frame + 3 * axis);
    }
  }
  vec3_cross(part, m->pos, cs->force);
  vec3_axpy(dW->m, 1.0, part);
  vec3_cross(part, cs->contact->pos, dW->f);
  vec3_axpy(dW->m, 1.0, part);
}

/* D[k][j] -= sign S_k . dW for the DOFs k given */
static void add_wrench_rows(sensitivity *s, const qd_model *model, const kinematics *k,
                            const wrench *dW, const int *dofs, int count, double sign, int j) {
  for (int i = 0; i < count; ++i) {
    s->D[dofs[i] * model->nv + j] -= sign * screw_dot(k->dof_screw + dofs[i], dW);
  }
}

/* The contact along DOF j, which moves body A (on_a) and body B (on_b). */
static void contact_along_dof(const qd_model *model, qd_workspace *w, const contact_state *cs,
                              const contact_dofs *dofs, int j, int on_a, int on_b, int columns) {
  static const screw still = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  sensitivity *s = &w->sensitivity;
  const screw *S = w->kinematics.dof_screw + j;
  const qd_contact *contact = cs->contact;
  contact_motion m;
  screw behind, d_relative = still;
  double d_motion[MOTION_MAX];
  wrench dW;
  contact_motion_compute(&m, model, contact, &cs->derivative, on_a ? S : &still, on_b ? S : &still);
  for (int side = 0; side < 2; ++side) {
    if (side == 0 ? on_a : on_b) {
      const int body = side == 0 ? contact->body_a : contact->body_b;
      screw_sub(&behind, s->body_twist + body, s->unmoved_twist + j);
      screw_bracket(&behind, S, &behind);
      screw_axpy(&d_relative, side == 0 ? -1.0 : 1.0, &behind);
    }
  }
  motion_derivative(d_motion, cs, &m, &d_relative);
  for (int r = 0; r < cs->block->rows.count; ++r) {
    s->d_slack[(cs->block->row + r) * columns + j] =
        friction_row_of(cs->block->rows.row + r, d_motion);
  }
  wrench_derivative(&dW, cs, &m);
  add_wrench_rows(s, model, &w->kinematics, &dW, dofs->a, dofs->a_count, -1.0, j);
  add_wrench_rows(s, model, &w->kinematics, &dW, dofs->b, dofs->b_count, 1.0, j);
}

static void add_contact_derivative(const qd_model *model, qd_workspace *w, int index, int columns) {
  contact_state cs;
  contact_dofs dofs;
  contact_state_fill(&cs, w, index);
  contact_dofs_find(&dofs, model, cs.contact);
  int common;
  const int *chain = body_chain(model, cs.contact->body_a, &common);
  common -= dofs.a_count;
  for (int i = 0; i < common; ++i) {
    contact_along_dof(model, w, &cs, &dofs, chain[i], 1, 1, columns);
  }
  for (int i = 0; i < dofs.a_count; ++i) {
    contact_along_dof(model, w, &cs, &dofs, dofs.a[i], 1, 0, columns);
  }
  for (int i = 0; i < dofs.b_count; ++i) {
    contact_along_dof(model, w, &cs, &dofs, dofs.b[i], 0, 1, columns);
  }
}

/* ------------------------------------------------------- cost and limits */

static void add_cost_derivative(const qd_model *model, qd_workspace *w,
                                const qd_step_options *options, const double *delta) {
  sensitivity *s = &w->sensitivity;
  const int nv = model->nv;
  int any_mass = 0;
  for (int i = 0; i < nv; ++i) {
    const int actuator = model->dof_actuator[i];
    const int joint = model->dof_joint[i];
    s->D[i * nv + i] += model->parameters.joint_stiffness[joint];
    if (actuator >= 0) {
      s->D[i * nv + i] += model->parameters.actuator_stiffness[actuator];
    }
    s->row_scale[i] = actuator >= 0 ? 0.0 : w->problem.epsilon[i] / (options->h * options->h);
    s->masked_delta[i] = actuator >= 0 ? 0.0 : delta[i];
    any_mass |= s->row_scale[i] * fabs(s->masked_delta[i]) > 0.0;
  }
  if (any_mass) {
    inertia_add_mass_derivative(s->D, model, &w->kinematics, &w->inertia, s->row_scale,
                                s->masked_delta);
  }
  if (vec3_norm(model->parameters.gravity) > 0.0) {
    for (int i = 0; i < nv; ++i) {
      s->row_scale[i] = model->dof_actuator[i] < 0 || options->gravity_on_actuated ? -1.0 : 0.0;
    }
    inertia_add_gravity_derivative(s->D, model, &w->kinematics, &w->inertia, s->row_scale);
  }
}

static void add_limit_derivative(const problem *p, sensitivity *s, int columns) {
  for (int i = 0; i < p->limit_count; ++i) {
    s->d_slack[(p->limit_first_row + i) * columns + p->limit[i].dof] = p->limit[i].sign;
  }
}

/* ------------------------------------------------------- bilateral constraints */

static void add_constraint_derivative(const qd_model *model, qd_workspace *w, const double *delta,
                                      int columns) {
  sensitivity *s = &w->sensitivity;
  const problem *p = &w->problem;
  const constraint_motion motion = {s->body_twist, s->unmoved_twist, delta};
  for (int row = 0; row < p->equality_count; ++row) {
    const int index = p->equality[row].constraint;
    for (int j = 0; j < model->nv; ++j) {
      double column[CONSTRAINT_ROWS_MAX];
      constraint_motion_derivative(column, p->constraint + index, model, &w->kinematics, &motion,
                                   j);
      s->d_equality[row * columns + j] = column[p->equality[row].component];
    }
  }
  for (int i = 0; i < model->constraint_count; ++i) {
    constraint_subtract_force_derivative(s->D, p->constraint + i, model, &w->kinematics,
                                         p->constraint_force + QD_CONSTRAINT_FORCE * i);
  }
}

/* ------------------------------------------------------- assembly */

/* Rows of the free DOFs of D, then the input columns dr/du = -k / gear. */
static void write_stationarity(const qd_model *model, qd_workspace *w, int q_columns,
                               int u_columns) {
  sensitivity *s = &w->sensitivity;
  const problem *p = &w->problem;
  const int columns = q_columns + u_columns;
  for (int i = 0; i < p->n; ++i) {
    const int dof = p->dof_of_variable[i], actuator = model->dof_actuator[dof];
    double *row = s->d_stationarity + i * columns;
    memcpy(row, s->D + dof * model->nv, (size_t)q_columns * sizeof(double));
    memset(row + q_columns, 0, (size_t)u_columns * sizeof(double));
    if (u_columns > 0 && actuator >= 0) {
      row[q_columns + actuator] =
          -model->parameters.actuator_stiffness[actuator] / model->actuator_gear[actuator];
    }
  }
}

/* out (nv, width) = columns [first, first + width) of dx, zero rows for held DOFs */
static void scatter_rows(double *out, const qd_model *model, const qd_workspace *w, int columns,
                         int first, int width) {
  for (int dof = 0; dof < model->nv; ++dof) {
    const int variable = w->problem.variable_of_dof[dof];
    double *row = out + dof * width;
    if (variable < 0) {
      memset(row, 0, (size_t)width * sizeof(double));
    } else {
      memcpy(row, w->sensitivity.d_x + variable * columns + first, (size_t)width * sizeof(double));
    }
  }
}

/* A contact without force on a certified active set stays without force: its rows do not count. */
static int contact_counts(const qd_workspace *w, int index, int exact_active_set) {
  const contact_block *block = w->problem.block + index;
  int loaded = !exact_active_set;
  for (int r = 0; r < block->rows.count && !loaded; ++r) {
    loaded = w->problem.dual[block->row + r] != 0.0;
  }
  return loaded && block->rows.count > 0;
}

static void partial_derivatives(const qd_model *model, qd_workspace *w,
                                const qd_step_options *options, const qd_step_input *input,
                                const qd_step_result *result, int q_columns, int u_columns) {
  sensitivity *s = &w->sensitivity;
  const double *delta = result->delta;
  const int columns = q_columns + u_columns;
  const int exact_active_set = isinf(options->kappa) && result->derivative_exact;
  memset(s->d_equality, 0, (size_t)(w->problem.equality_count * columns) * sizeof(double));
  memset(s->d_slack, 0, (size_t)(w->problem.row_count * columns) * sizeof(double));
  if (q_columns > 0) {
    memset(s->D, 0, (size_t)(model->nv * model->nv) * sizeof(double));
    compute_twists(model, &w->kinematics, delta, s);
    compute_subtree_wrenches(model, &w->kinematics, &w->collision, &w->problem, input->wrench, s);
    add_axis_derivative(model, &w->kinematics, s);
    for (int i = 0; i < w->collision.count; ++i) {
      if (contact_counts(w, i, exact_active_set)) {
        add_contact_derivative(model, w, i, columns);
      }
    }
    add_cost_derivative(model, w, options, delta);
    if (input->wrench != NULL) {
      applied_subtract_derivative(s->D, model, &w->kinematics, input->wrench);
    }
    add_limit_derivative(&w->problem, s, columns);
    add_constraint_derivative(model, w, delta, columns);
  }
  write_stationarity(model, w, q_columns, u_columns);
}

static int all_finite(const double *values, int count) {
  double sum = 0.0; /* NaN if one of them is not finite */
  for (int i = 0; i < count; ++i) {
    sum += 0.0 * values[i];
  }
  return sum == 0.0;
}

qd_status qd_linearize(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                       const qd_step_input *input, qd_step_result *result, double *A, double *B) {
  const int q_columns = A != NULL ? model->nv : 0, u_columns = B != NULL ? model->nu : 0;
  const int columns = q_columns + u_columns;
  qd_status status = step_compute(model, w, options, input, result);
  if (status != QD_OK) {
    return status;
  }
  const problem *p = &w->problem;
  result->derivative_exact = 1;
  if (p->n > 0 && columns > 0) {
    const qd_cone_program program = problem_program(p);
    status = conic_sensitivity_prepare(w->cone, &program, p->x, p->slack, p->dual, &result->info,
                                       &result->derivative_exact);
    if (status != QD_OK) {
      result->info.status = status;
      return status;
    }
    partial_derivatives(model, w, options, input, result, q_columns, u_columns);
    conic_sensitivity_solve(w->cone, columns, w->sensitivity.d_stationarity, w->sensitivity.d_slack,
                            w->sensitivity.d_equality, w->sensitivity.d_x, NULL);
  }
  if (A != NULL) {
    scatter_rows(A, model, w, columns, 0, q_columns);
    retraction_apply_derivative(A, model, result->delta, q_columns);
    retraction_add_base_derivative(A, model, result->delta);
  }
  if (B != NULL) {
    scatter_rows(B, model, w, columns, q_columns, u_columns);
    retraction_apply_derivative(B, model, result->delta, u_columns);
  }
  if (!all_finite(A, model->nv * q_columns) || !all_finite(B, model->nv * u_columns)) {
    result->info.status = QD_NUMERICAL_TROUBLE; /* numbers beyond the range of a double */
  }
  return result->info.status;
}
