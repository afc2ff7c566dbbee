/* The change of stationarity: terms of the DOFs, and the order of all parts. */
#include "dynamics/derivatives/jvp/parts.h"

/* Change of the actuators' force that is not in rows; writes the rows. */
static double actuator_change(const pushforward *p, int j) {
  const qd_model *model = p->s->model;
  const int_list actuators = dof_actuators(model, j);
  double sum = 0.0;
  for (int k = 0; k < actuators.count; ++k) {
    const int i = actuators.at[k];
    const actuator_part part = actuator_part_of(p->s, i);
    const double change = force_change(p, &part.slope, i, tangent_at(p, QD_BY_Q, j)) +
                          part.slope.speed * tangent_at(p, QD_BY_V, j);
    if (part.row >= 0) {
      p->w[part.row * p->stride] = part.per_row * change;
    }
    sum += part.row >= 0 ? force_change(p, &part.resistance, i, 0.0) : change;
    linear_form range = along(p);
    form_force_range(&range, &part, i);
    sum += range.change;
  }
  return sum;
}

static double joint_change(const pushforward *p, int j) {
  linear_form spring = along(p);
  form_spring(&spring, p->s, j);
  return -tangent_at(p, QD_BY_TAU, j) + spring.change - actuator_change(p, j);
}

/* Change of the force that rotors require. */
static double rotor_change(const pushforward *p, int j) {
  const int joint = p->s->model->dof_joint[j];
  return p->s->model->parameters.joint_armature[joint] * mass_rate(p, j) +
         tangent_at(p, QD_BY_JOINT_ARMATURE, joint) * p->point->free_delta[j];
}

static void push_joints(const pushforward *p, double *r) {
  const problem *program = &p->s->w->problem;
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  for (int i = 0; i < program->n; ++i) {
    const int j = program->dof_of_variable[i];
    if (j < 0) {
      r[i * p->stride] = 0.0;
      continue;
    }
    const int b = model->dof_body[j];
    const screw *S = p->s->w->kinematics.dof_screw + j, *dS = d->axis_motion + j;
    r[i * p->stride] =
        joint_change(p, j) + (p->s->options->dynamic ? rotor_change(p, j) : 0.0) +
        p->point->mass_scale[j] *
            (screw_dot(dS, p->point->momentum + b) + screw_dot(S, d->momentum_z + b)) -
        p->point->falls[j] * (screw_dot(dS, p->point->weight + b) + screw_dot(S, d->scratch + b)) -
        screw_dot(dS, p->point->forces + b) - screw_dot(S, d->pose + b);
  }
  for (int i = 0; i < model->constraint_count && p->tangent[QD_BY_Q] != NULL; ++i) {
    const constraint_state *state = program->constraint + i;
    if (state->dof[1] >= 0 && program->variable_of_dof[state->dof[1]] >= 0) {
      r[program->variable_of_dof[state->dof[1]] * p->stride] +=
          program->constraint_force[QD_CONSTRAINT_FORCE * i] * state->curvature *
          p->tangent[QD_BY_Q][state->dof[1]];
    }
  }
}

/* Writes changes of rows from `row` on, and of the forces on DOFs from `dof` on that belong to
 * them. */
static void put_forms(const pushforward *p, const linear_form *f, int rows, int row, int forces,
                      int dof, double *r) {
  for (int i = 0; i < rows; ++i) {
    p->w[(row + i) * p->stride] = f[i].change;
  }
  for (int i = 0; i < forces; ++i) {
    const int variable = p->s->w->problem.variable_of_dof[dof + i];
    if (variable >= 0) {
      r[variable * p->stride] -= f[rows + i].change;
    }
  }
}

/* Limits of ball joints, and dry friction, whose force follows its limits. */
static void push_rows_of_joints(const pushforward *p, double *r) {
  const problem *program = &p->s->w->problem;
  for (int i = 0; i < program->force_row_count; ++i) {
    const force_row *row = program->force_row + i;
    if (row->actuator < 0) {
      linear_form f[2] = {along(p), along(p)};
      form_friction(f, p->s, row);
      put_forms(p, f, 1, row->row, 1, row->dof, r);
    }
  }
  for (int i = 0; i < program->ball_limit_count; ++i) {
    const ball_limit *limit = program->ball_limit + i;
    linear_form f[BALL_ROWS + 3];
    for (int k = 0; k < BALL_ROWS + 3; ++k) {
      f[k] = along(p);
    }
    form_ball_limit(f, p->s, limit);
    put_forms(p, f, BALL_ROWS, limit->row, 3, limit->dof, r);
  }
  for (int i = 0; i < program->turn_row_count; ++i) {
    const turn_row *row = program->turn_row + i;
    linear_form f[4] = {along(p), along(p), along(p), along(p)};
    form_turn_row(f, p->s, row);
    put_forms(p, f, 1, row->row, 3, row->dof, r);
  }
}

void pushforward_compute(const solved_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                         double *r, double *w, double *e, int stride) {
  const qd_model *model = s->model;
  const problem *program = &s->w->problem;
  differential *d = &s->w->differential;
  const step_point *point = s->point != NULL ? s->point : &s->w->point;
  const pushforward p = {s, d, point, tangent, w, e, stride};
  if (tangent[QD_BY_Q] != NULL || tangent[QD_BY_MOCAP] != NULL) {
    differential_need_poses(s);
  }
  if (tangent[QD_BY_GEOM_SIZE] != NULL) {
    differential_need_sizes(s);
  }
  if (s->options->dynamic) {
    coasting_push(d->d_coasting, s, tangent);
  }
  move_bodies(&p);
  memset(d->pose, 0, (size_t)model->body_count * sizeof(wrench));
  memset(d->scratch, 0, sizeof(wrench));
  memset(d->momentum_z, 0, sizeof(wrench));
  for (int i = 0; i < program->row_count; ++i) {
    w[i * stride] = 0.0;
  }
  for (int i = 0; i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      push_contact(&p, i);
    }
  }
  for (int i = 0; i < program->limit_count; ++i) {
    const limit_row *limit = program->limit + i;
    double change[3];
    problem_limit_change(change, program, limit);
    linear_form f = along(&p);
    form_along_dof(&f, change, limit->dof);
    w[limit->row * stride] = f.change;
  }
  push_constraints(&p);
  push_tendons(&p);
  pressure_derivative_push(s, tangent, w, stride);
  for (int b = 1; b < model->body_count; ++b) {
    push_body(&p, b);
  }
  wrench_sum_subtrees(d->pose, model);
  wrench_sum_subtrees(d->scratch, model);
  wrench_sum_subtrees(d->momentum_z, model);
  push_joints(&p, r);
  push_tendon_forces(&p, r);
  push_rows_of_joints(&p, r);
}
