/* The change as a whole: what it takes from DOFs, and the order of all parts. */
#include "dynamics/derivatives/jvp/parts.h"

/* Of the force of the joint's spring and damper, towards rest. */
static double spring_change(const pushforward *p, int j) {
  const qd_model *model = p->s->model;
  const double *q = p->s->input->q, delta = p->s->delta[j];
  const int joint = model->dof_joint[j], by_stiffness = p->tangent[QD_BY_JOINT_STIFFNESS] != NULL;
  const double stiffness = model->parameters.joint_stiffness[joint];
  const double rate = damping_rate(p->s->options);
  const double damping = model->parameters.joint_damping[joint];
  double row[3], sum = rate * delta *
                       (tangent_at(p, QD_BY_JOINT_DAMPING, joint) -
                        damping * rate * tangent_at(p, QD_BY_H, 0));
  int first, count = stiffness > 0.0 ? joint_stretch_row(model, j, q, row, &first) : 0;
  for (int i = 0; i < count; ++i) {
    sum += stiffness * row[i] * tangent_at(p, QD_BY_Q, first + i);
  }
  if (model->dof_q[j] >= 0) {
    sum -= stiffness * tangent_at(p, QD_BY_JOINT_SPRINGREF, joint);
  }
  if (by_stiffness) {
    sum += tangent_at(p, QD_BY_JOINT_STIFFNESS, joint) * (delta + joint_stretch(model, j, q));
  }
  return sum;
}

/* Of what the actuators pull with, apart from those whose rows say it. */
static double actuator_change(const pushforward *p, int j) {
  const qd_model *model = p->s->model;
  int count;
  const int *actuator = dof_actuators(model, j, &count);
  double sum = 0.0;
  for (int k = 0; k < count; ++k) {
    const int i = actuator[k];
    const actuator_part part =
        actuator_part_of(&p->s->w->problem, model, p->s->options, p->s->input, p->s->delta, i);
    const double change = force_change(p, &part.slope, i, tangent_at(p, QD_BY_Q, j));
    if (part.row >= 0) {
      p->w[part.row * p->stride] = part.per_row * change;
    }
    sum += part.row >= 0 ? force_change(p, &part.resistance, i, 0.0) : change;
    sum += limit_change(p, &part, i);
  }
  return sum;
}

/* A row along one DOF, by its q, its v and h. */
static double along_dof(const pushforward *p, const double change[3], int dof) {
  return change[0] * tangent_at(p, QD_BY_Q, dof) + change[1] * tangent_at(p, QD_BY_V, dof) +
         change[2] * tangent_at(p, QD_BY_H, 0);
}

/* Of dry friction, whose limits move with it. */
static void push_friction_loss(const pushforward *p, double *r) {
  const problem *program = &p->s->w->problem;
  for (int i = 0; i < program->force_row_count; ++i) {
    const force_row *row = program->force_row + i;
    if (row->actuator < 0) {
      double change[3];
      problem_friction_change(change, program, p->s->model, p->s->options, row);
      p->w[row->row * p->stride] = along_dof(p, change, row->dof);
      const int joint = p->s->model->dof_joint[row->dof];
      r[program->variable_of_dof[row->dof] * p->stride] -=
          (program->by_upper[row->row] - program->by_lower[row->row]) *
          tangent_at(p, QD_BY_JOINT_FRICTION, joint);
    }
  }
}

static double joint_change(const pushforward *p, int j) {
  return -tangent_at(p, QD_BY_TAU, j) + spring_change(p, j) - actuator_change(p, j);
}

/* The change of what rotors need. */
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

static void push_ball_limits(const pushforward *p, double *r) {
  const problem *program = &p->s->w->problem;
  for (int k = 0; k < program->ball_limit_count; ++k) {
    const ball_limit *limit = program->ball_limit + k;
    ball_part part;
    ball_part_compute(&part, program, limit, p->s->delta);
    if (limit->capped) {
      p->w[limit->row * p->stride] -= p->s->options->recovery_speed * tangent_at(p, QD_BY_H, 0);
    }
    for (int j = 0; j < 3; ++j) {
      const double dq = tangent_at(p, QD_BY_Q, limit->dof + j);
      for (int i = 0; i < BALL_ROWS; ++i) {
        p->w[(limit->row + i) * p->stride] += part.rows[3 * i + j] * dq;
      }
      for (int i = 0; i < 3; ++i) {
        const int variable = program->variable_of_dof[limit->dof + i];
        if (variable >= 0) {
          r[variable * p->stride] -= part.force[3 * i + j] * dq;
        }
      }
    }
  }
}

/* And the limits of dry friction, which move with it. */
static void push_turn_rows(const pushforward *p, double *r) {
  const problem *program = &p->s->w->problem;
  for (int k = 0; k < program->turn_row_count; ++k) {
    const turn_row *row = program->turn_row + k;
    turn_change change;
    problem_turn_change(&change, program, p->s->model, p->s->options, row, p->s->delta);
    double sum = change.by_h * tangent_at(p, QD_BY_H, 0);
    const double share = row->is_limit
                             ? 0.0
                             : (program->by_upper[row->row] - program->by_lower[row->row]) *
                                   tangent_at(p, QD_BY_JOINT_FRICTION, row->joint);
    for (int j = 0; j < 3; ++j) {
      const int variable = program->variable_of_dof[row->dof + j];
      double force = share * row->axis[j];
      sum += change.by_q[j] * tangent_at(p, QD_BY_Q, row->dof + j) +
             change.by_v[j] * tangent_at(p, QD_BY_V, row->dof + j);
      for (int i = 0; i < 3; ++i) {
        force += change.force[3 * j + i] * tangent_at(p, QD_BY_Q, row->dof + i);
      }
      if (variable >= 0) {
        r[variable * p->stride] -= force;
      }
    }
    p->w[row->row * p->stride] = sum;
  }
}

void pushforward_compute(const solved_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                         double *r, double *w, double *e, int stride) {
  const qd_model *model = s->model;
  const problem *program = &s->w->problem;
  differential *d = &s->w->differential;
  const pushforward p = {s, d, &s->w->point, tangent, w, e, stride};
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
    problem_limit_change(change, program, model, s->options, limit);
    w[limit->row * stride] = along_dof(&p, change, limit->dof);
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
  push_friction_loss(&p, r);
  push_tendon_forces(&p, r);
  push_ball_limits(&p, r);
  push_turn_rows(&p, r);
}
