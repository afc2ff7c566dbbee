#include "dynamics/working_set.h"

#include <math.h>

/* A contact is in from the start if its gap is at most this share of the fastest commanded motion
 * at any contact (or of a geometry's size, where nothing is commanded). */
#define SHARE_OF_MOTION 0.1
#define SHARE_OF_SIZE 1e-3
/* A limit, if its gap is at most so many times the commanded motion of its DOF. */
#define LIMIT_REACH 2.0
/* What is left of a gap, relative to the numbers that it is made of, that counts as near. */
#define NEAR 1e-6

void working_set_lay_out(working_set *s, const qd_model *model, int contact_capacity, arena *a) {
  s->contact = arena_take(a, (size_t)contact_capacity);
  s->limit = arena_take(a, 2 * (size_t)model->nv);
  s->delta = arena_doubles(a, (size_t)model->nv);
  s->twist = arena_take(a, (size_t)model->body_count * sizeof(screw));
  s->chosen = s->left_out = 0;
}

void working_set_complete(working_set *s, const qd_model *model) {
  s->left_out = 0;
  memset(s->contact, 1, (size_t)s->chosen);
  memset(s->limit, 1, 2 * (size_t)model->nv);
}

void working_set_fill(working_set *s, const qd_model *model, const collision *c) {
  s->chosen = c->count < c->capacity ? c->count : c->capacity;
  working_set_complete(s, model);
}

/* ---------------------------------------------------------------- motion at contacts */

static void fill_twists(working_set *s, const qd_model *model, const kinematics *k,
                        const double *delta) {
  memset(s->twist, 0, sizeof *s->twist);
  for (int body = 1; body < model->body_count; ++body) {
    int count;
    const int *chain = body_chain(model, body, &count);
    s->twist[body] = s->twist[model->body_parent[body]];
    for (int i = count - 1; i >= 0 && model->dof_body[chain[i]] == body; --i) {
      screw_axpy(s->twist + body, delta[chain[i]], k->dof_screw + chain[i]);
    }
  }
}

/* Twist of B relative to A, and the velocity at the contact. */
static void relative_motion(screw *relative, double velocity[3], const working_set *s,
                            const qd_contact *contact) {
  screw_sub(relative, s->twist + contact->body_b, s->twist + contact->body_a);
  screw_point_velocity(velocity, relative, contact->pos);
}

/* Motion as commanded: actuated DOFs go where the command is, nothing else moves. */
static void fill_command(working_set *s, const qd_model *model, const qd_step_options *o,
                         const qd_step_input *input) {
  memset(s->delta, 0, (size_t)model->nv * sizeof(double));
  for (int i = 0; i < model->nu; ++i) {
    const int dof = model->actuator_dof[i];
    if (o->held == NULL || !o->held[dof]) {
      s->delta[dof] = input->u[i] / model->actuator_gear[i] - input->q[model->dof_q[dof]];
    }
  }
}

static double fastest_contact(const working_set *s, const collision *c) {
  double fastest = 0.0;
  for (int i = 0; i < s->chosen; ++i) {
    screw relative;
    double velocity[3];
    relative_motion(&relative, velocity, s, c->contact + i);
    fastest = fmax(fastest, vec3_dot(velocity, velocity));
  }
  return sqrt(fastest);
}

/* ---------------------------------------------------------------- limits */

/* The gap of a DOF's lower (0) or upper (1) limit at q: infinite if there is none. */
static double limit_gap(const qd_model *model, const double *q, int dof, int upper) {
  const double bound = model->joint_range[2 * model->dof_joint[dof] + upper];
  const double position = q[model->dof_q[dof]];
  return upper ? bound - position : position - bound;
}

static int has_limits(const qd_model *model, const qd_step_options *o, int dof) {
  return o->joint_limits && model->dof_q[dof] >= 0 && (o->held == NULL || !o->held[dof]);
}

static void choose_limits(working_set *s, const qd_model *model, const qd_step_options *o,
                          const double *q) {
  for (int dof = 0; dof < model->nv; ++dof) {
    for (int upper = 0; upper < 2 && has_limits(model, o, dof); ++upper) {
      if (limit_gap(model, q, dof, upper) > LIMIT_REACH * fabs(s->delta[dof])) {
        s->limit[2 * dof + upper] = 0;
        ++s->left_out;
      }
    }
  }
}

static int extend_limits(working_set *s, const qd_model *model, const qd_step_options *o,
                         const double *q, const double *delta) {
  int added = 0;
  for (int dof = 0; dof < model->nv; ++dof) {
    for (int upper = 0; upper < 2 && has_limits(model, o, dof); ++upper) {
      const double gap = limit_gap(model, q, dof, upper), moved = upper ? -delta[dof] : delta[dof];
      if (!s->limit[2 * dof + upper] && !(gap + moved > NEAR * fabs(delta[dof]))) {
        s->limit[2 * dof + upper] = 1;
        ++added;
      }
    }
  }
  return added;
}

/* ---------------------------------------------------------------- contacts */

void working_set_choose(working_set *s, const qd_model *model, const qd_step_options *options,
                        const kinematics *k, const collision *c, const qd_step_input *input) {
  working_set_fill(s, model, c);
  fill_command(s, model, options, input);
  fill_twists(s, model, k, s->delta);
  if (options->friction_model == QD_PYRAMID) {
    friction_rays(s->rays, options->ray_count);
  }
  const double reach = SHARE_OF_MOTION * fastest_contact(s, c);
  for (int i = 0; i < s->chosen; ++i) {
    const qd_contact *contact = c->contact + i;
    const double size =
        fmin(model->geom_radius[contact->geom_a], model->geom_radius[contact->geom_b]);
    if (contact->dist > fmax(reach, SHARE_OF_SIZE * size)) {
      s->contact[i] = 0;
      ++s->left_out;
    }
  }
  choose_limits(s, model, options, input->q);
}

/* How far a motion is inside the contact's cone (or over the nearest face of its pyramid). */
static double slack_of(const working_set *s, const qd_step_options *o, const qd_contact *contact,
                       const double motion[MOTION_MAX]) {
  static const int present[MOTION_MAX] = {1, 1, 1, 1, 1, 1};
  friction_row row[FRICTION_ROWS_MAX];
  friction_rows rows = {.row = row};
  friction_rows_fill(&rows, contact->friction, contact->dim, present, o->friction_model,
                     o->ray_count, s->rays);
  double least = friction_row_of(row, motion), across = 0.0;
  for (int r = 1; r < rows.count; ++r) {
    const double value = friction_row_of(row + r, motion);
    least = rows.kind == QD_ORTHANT ? fmin(least, value) : least;
    across += value * value;
  }
  return rows.kind == QD_ORTHANT ? least : least - sqrt(across);
}

static int comes_near(const working_set *s, const qd_step_options *o, const qd_contact *contact) {
  double motion[MOTION_MAX] = {0.0}, velocity[3];
  screw relative;
  relative_motion(&relative, velocity, s, contact);
  const double speed = vec3_norm(velocity), room = NEAR * (fabs(contact->dist) + speed);
  if (contact->dim <= 3 && contact->dist - (1.0 + contact->friction[0]) * speed > room) {
    return 0; /* however it moves */
  }
  for (int axis = 0; axis < 3; ++axis) {
    motion[axis] = vec3_dot(contact->frame + 3 * axis, velocity);
    motion[3 + axis] = vec3_dot(contact->frame + 3 * axis, relative.w);
  }
  motion[0] += contact->dist;
  return !(slack_of(s, o, contact, motion) > room);
}

int working_set_extend(working_set *s, const qd_model *model, const qd_step_options *options,
                       const kinematics *k, const collision *c, const double *q,
                       const double *delta) {
  if (s->left_out == 0) {
    return 0;
  }
  fill_twists(s, model, k, delta);
  int added = extend_limits(s, model, options, q, delta);
  for (int i = 0; i < s->chosen; ++i) {
    if (!s->contact[i] && comes_near(s, options, c->contact + i)) {
      s->contact[i] = 1;
      ++added;
    }
  }
  s->left_out -= added;
  return added;
}
