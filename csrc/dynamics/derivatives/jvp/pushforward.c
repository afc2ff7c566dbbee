/* The change of stationarity: terms of the DOFs, and the order of all parts. */
#include "dynamics/derivatives/jvp/parts.h"

/* The maker of forms along the direction: rows and forces are added to w and r. */
typedef struct push_target {
  const pushforward *p;
  double *r;
  double held; /* forces on held DOFs, which do not count */
} push_target;

static linear_form push_row(const form_maker *of, int row) {
  const pushforward *p = ((const push_target *)of->context)->p;
  linear_form f = along(p);
  f.out = p->w + row * p->stride;
  return f;
}

static linear_form push_force(const form_maker *of, int dof) {
  push_target *to = of->context;
  const int variable = to->p->s->w->problem.variable_of_dof[dof];
  linear_form f = along(to->p);
  f.out = variable >= 0 ? to->r + variable * to->p->stride : &to->held;
  f.weight = -1.0;
  return f;
}

/* Change of the force that rotors require. */
static double rotor_change(const pushforward *p, int j) {
  const int joint = p->s->model->dof.joint[j];
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
    const int b = model->dof.body[j];
    const screw *S = p->s->w->kinematics.dof_screw + j, *dS = d->axis_motion + j;
    r[i * p->stride] =
        (p->s->options->dynamic ? rotor_change(p, j) : 0.0) - tangent_at(p, QD_BY_TAU, j) +
        p->point->mass_scale[j] *
            (screw_dot(dS, p->point->momentum + b) + screw_dot(S, d->momentum_z + b)) -
        p->point->falls[j] * (screw_dot(dS, p->point->weight + b) + screw_dot(S, d->scratch + b)) -
        screw_dot(dS, p->point->forces + b) - screw_dot(S, d->pose + b);
  }
  for (int i = 0; i < model->constraint.count && p->tangent[QD_BY_Q] != NULL; ++i) {
    const constraint_state *state = program->constraint + i;
    if (state->dof[1] >= 0 && program->variable_of_dof[state->dof[1]] >= 0) {
      r[program->variable_of_dof[state->dof[1]] * p->stride] +=
          program->solution.constraint_force[QD_CONSTRAINT_FORCE * i] * state->curvature *
          p->tangent[QD_BY_Q][state->dof[1]];
    }
  }
}

/* Springs, actuators, and rows of joints. */
static void push_forms(const pushforward *p, double *r) {
  const problem *program = &p->s->w->problem;
  push_target to = {.p = p, .r = r};
  const form_maker maker = {push_row, push_force, &to};
  for (int i = 0; i < program->n; ++i) {
    if (program->dof_of_variable[i] >= 0) {
      form_add_drives(&maker, p->s, program->dof_of_variable[i]);
    }
  }
  for (int i = 0; i < program->islands.count; ++i) {
    form_add_joint_rows(&maker, p->s, program->islands.island + i);
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
  memset(d->pose, 0, (size_t)model->body.count * sizeof(wrench));
  memset(d->scratch, 0, sizeof(wrench));
  memset(d->momentum_z, 0, sizeof(wrench));
  for (int i = 0; i < program->count.rows; ++i) {
    w[i * stride] = 0.0;
  }
  for (int i = 0; i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      push_contact(&p, i);
    }
  }
  push_constraints(&p);
  push_tendons(&p);
  pressure_derivative_push(s, tangent, w, stride);
  for (int b = 1; b < model->body.count; ++b) {
    push_body(&p, b);
  }
  wrench_sum_subtrees(d->pose, model);
  wrench_sum_subtrees(d->scratch, model);
  wrench_sum_subtrees(d->momentum_z, model);
  push_joints(&p, r);
  push_tendon_forces(&p, r);
  push_forms(&p, r);
}
