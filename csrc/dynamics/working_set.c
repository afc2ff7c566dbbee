#include "dynamics/working_set.h"

#include <math.h>

#include "base/lanes.h"
#include "base/rounding.h"
#include "dynamics/problem/yield.h"
#include "mechanics/actuator.h"

/* A contact is in the initial set if its gap is at most this share of the fastest commanded motion
 * at any contact (or of a geometry's size, if nothing is commanded). */
#define SHARE_OF_MOTION 0.1
#define SHARE_OF_SIZE 1e-3
/* A limit, if its gap is at most this number times the commanded motion of its DOF. */
#define LIMIT_REACH 2.0
/* The same for contacts if delta is not the solution. For shaken and settling spheres, 0.05 leaves
 * more of them to another round, 0.2 adds more without load: a twentieth to an eighth longer. */
#define ROUGHLY_NEAR 0.12
/* The same, negative, for contacts that such a motion has certainly reached. */
#define CLEARLY_REACHED (-1e-2)

void working_set_lay_out(working_set *s, const qd_model *model, int contact_capacity, arena *a) {
  s->contact = arena_take(a, (size_t)contact_capacity);
  s->limit = arena_take(a, 2 * (size_t)model->nv);
  s->force = arena_take(a, (size_t)model->nu);
  s->delta = arena_doubles(a, (size_t)model->nv);
  s->twist = arena_take(a, ((size_t)model->body.count + 1) * sizeof(screw));
  s->chosen = s->left_out = s->forces_left_out = 0;
}

void working_set_complete(working_set *s, const qd_model *model) {
  s->left_out = s->forces_left_out = 0;
  memset(s->contact, 1, (size_t)s->chosen);
  memset(s->limit, 1, 2 * (size_t)model->nv);
  memset(s->force, 1, (size_t)model->nu);
}

void working_set_fill(working_set *s, const qd_model *model, const collision *c) {
  s->chosen = c->count < c->capacity ? c->count : c->capacity;
  working_set_complete(s, model);
}

/* ---------------------------------------------------------------- motion at contacts */

/* Six numbers of a screw: four lanes and two. */
typedef double two_lanes __attribute__((vector_size(16), aligned(8), may_alias));
#define LAST_TWO(s) (*(two_lanes *)((s)->v + 1))

QD_MULTIVERSION
static void fill_twists(working_set *s, const qd_model *model, const kinematics *k,
                        const double *delta) {
  memset(s->twist, 0, sizeof *s->twist);
  memset(s->twist + model->body.count, 0, sizeof *s->twist);
  for (int body = 1, dof = 0; body < model->body.count; ++body) {
    screw *parent = s->twist + model->body.parent[body], *own = s->twist + body;
    lanes first = LANES_FROM(parent->w);
    two_lanes last = LAST_TWO(parent);
    for (; dof < model->nv && model->dof.body[dof] == body; ++dof) {
      first += delta[dof] * LANES_FROM(k->dof_screw[dof].w);
      last += delta[dof] * LAST_TWO(k->dof_screw + dof);
    }
    LANES_ANYWHERE(own->w) = first;
    LAST_TWO(own) = last;
  }
}

/* Twist of B relative to A, and the velocity at the contact; the fourth lanes are undefined. */
LANES_INLINE void relative_motion(lanes *turn, lanes *velocity, const working_set *s,
                                  const qd_contact *contact) {
  const screw *a = s->twist + contact->body_a, *b = s->twist + contact->body_b;
  const lanes w = LANES_FROM(b->w) - LANES_FROM(a->w), v = LANES_FROM(b->v) - LANES_FROM(a->v);
  const lanes pos = LANES_FROM(contact->pos);
  *turn = w;
  lanes_cross(velocity, &w, &pos);
  *velocity += v;
}

/* Squared length of the first three lanes. */
LANES_INLINE double square3(const lanes *a) {
  const lanes squares = *a * *a;
  return (squares[0] + squares[1]) + squares[2];
}

/* Second-order step: the present velocities continue. */
static void fill_motion(working_set *s, const qd_model *model, const qd_step_options *o,
                        const qd_step_input *input) {
  for (int dof = 0; dof < model->nv; ++dof) {
    const int moves = input->v != NULL && (o->held == NULL || !o->held[dof]);
    s->delta[dof] = moves ? o->h * input->v[dof] : 0.0;
  }
}

/* Commanded motion: driven DOFs go to the rest positions of their actuators, the others stay. */
static void fill_command(working_set *s, const qd_model *model, const qd_step_options *o,
                         const qd_step_input *input) {
  memset(s->delta, 0, (size_t)model->nv * sizeof(double));
  for (int dof = 0; dof < model->nv; ++dof) {
    if (!model->dof.is_driven[dof] || (o->held != NULL && o->held[dof])) {
      continue;
    }
    const int_list actuators = dof_actuators(model, dof);
    double force = 0.0, stiffness = 0.0;
    for (int k = 0; k < actuators.count; ++k) {
      const actuator_point at = {.l = input->q[model->dof.q[dof]],
                                 .u = input->u[actuators.at[k]],
                                 .rate = damping_rate(o)};
      const actuator_force one = actuator_force_at(model, actuators.at[k], &at);
      force += one.at_rest;
      stiffness += one.stiffness;
    }
    s->delta[dof] = stiffness > 0.0 ? force / stiffness : 0.0;
  }
}

/* Twists of the bodies for the commanded motion, in the second-order step for the present
 * velocities. */
static void fill_motion_of_start(working_set *s, const qd_model *model,
                                 const qd_step_options *options, const kinematics *k,
                                 const qd_step_input *input) {
  (options->dynamic ? fill_motion : fill_command)(s, model, options, input);
  fill_twists(s, model, k, s->delta);
}

QD_MULTIVERSION
static double fastest_contact(const working_set *s, const collision *c) {
  double fastest = 0.0;
  for (int i = 0; i < s->chosen; ++i) {
    lanes turn, velocity;
    relative_motion(&turn, &velocity, s, c->contact + i);
    fastest = larger(square3(&velocity), fastest);
  }
  return sqrt(fastest);
}

/* ---------------------------------------------------------------- limits */

/* The gap of a DOF's lower (0) or upper (1) limit at q: infinite if there is none. */
static double limit_gap(const qd_model *model, const double *q, int dof, int upper) {
  const double bound = model->joint.range[2 * model->dof.joint[dof] + upper];
  const double position = q[model->dof.q[dof]];
  return upper ? bound - position : position - bound;
}

/* 1 if a DOF has limits that may be left out. */
static int has_limits(const qd_model *model, const qd_step_options *o, int dof) {
  return o->joint_limits && !contacts_yield_in_time(o) && model->dof.q[dof] >= 0 &&
         (o->held == NULL || !o->held[dof]);
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
      if (!s->limit[2 * dof + upper] && !(gap + moved > SLIGHT * fabs(delta[dof]))) {
        s->limit[2 * dof + upper] = 1;
        ++added;
      }
    }
  }
  return added;
}

/* ---------------------------------------------------------------- limits of actuators */

/* 1 if the force of an actuator's spring is within its limits, and not near them, after a
 * displacement d of its DOF. */
static int pulls_within(const qd_model *model, const qd_step_options *o, const qd_step_input *input,
                        int actuator, double d) {
  const double *range = model->parameters.actuator_force_range + 2 * actuator;
  const int dof = model->actuator.dof[actuator];
  const actuator_point at = {
      .l = input->q[model->dof.q[dof]], .u = input->u[actuator], .rate = damping_rate(o)};
  const actuator_force found = actuator_force_at(model, actuator, &at);
  const double force = found.at_rest - found.stiffness * d;
  return found.stiffness > 0.0 && force - range[0] > SLIGHT * fabs(range[0]) &&
         range[1] - force > SLIGHT * fabs(range[1]);
}

static void choose_forces(working_set *s, const qd_model *model, const qd_step_options *o,
                          const qd_step_input *input) {
  const double *guess = input->start != NULL ? input->start->delta : NULL;
  if (!o->force_limits || model->bounded_forces == 0 || contacts_yield_in_time(o)) {
    return; /* none, or clamped without rows (force_rows.c) */
  }
  for (int i = 0; i < model->nu; ++i) {
    const int dof = model->actuator.dof[i];
    if (dof >= 0 && actuator_is_bounded(model, i) &&
        pulls_within(model, o, input, i, guess != NULL ? guess[dof] : 0.0)) {
      s->force[i] = 0;
      ++s->forces_left_out;
    }
  }
}

static int extend_forces(working_set *s, const qd_model *model, const qd_step_options *o,
                         const qd_step_input *input, const double *delta) {
  int added = 0;
  for (int i = 0; s->forces_left_out > 0 && i < model->nu; ++i) {
    if (!s->force[i] && !pulls_within(model, o, input, i, delta[model->actuator.dof[i]])) {
      s->force[i] = 1;
      ++added;
    }
  }
  s->forces_left_out -= added;
  return added;
}

/* ---------------------------------------------------------------- contacts */

/* The gap after the present approach, without separation, so that bounces are reached. */
static double gap_ahead(const working_set *s, const qd_contact *contact) {
  lanes turn, velocity;
  relative_motion(&turn, &velocity, s, contact);
  const double v[3] = {velocity[0], velocity[1], velocity[2]};
  return contact->dist + fmin(vec3_dot(contact->frame, v), 0.0);
}

void working_set_choose(working_set *s, const qd_model *model, const qd_step_options *options,
                        const kinematics *k, const collision *c, const qd_step_input *input) {
  working_set_fill(s, model, c);
  fill_motion_of_start(s, model, options, k, input);
  if (options->friction_model == QD_PYRAMID) {
    friction_rays(s->rays, options->ray_count);
  }
  choose_limits(s, model, options, input->q);
  choose_forces(s, model, options, input);
  if (options->contacts == QD_CONTACTS_MUJOCO && (options->dynamic || model->pair.act_apart)) {
    return;
  }
  const double reach = SHARE_OF_MOTION * fastest_contact(s, c);
  for (int i = 0; i < s->chosen; ++i) {
    const qd_contact *contact = c->contact + i;
    const double size =
        smaller(model->geom.radius[contact->geom_a], model->geom.radius[contact->geom_b]);
    const double gap = options->dynamic ? gap_ahead(s, contact) : contact->dist;
    if (gap > larger(reach, SHARE_OF_SIZE * size) && model->pair.soft[contact->pair] < 0) {
      s->contact[i] = 0;
      ++s->left_out;
    }
  }
}

/* Distance of a motion inside the contact's cone (or from the nearest face of its pyramid). */
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

/* Whether a motion may reach the contact. `turn`, `velocity`: of B relative to A at the contact. */
static int comes_near(const working_set *s, const qd_step_options *o, const qd_contact *contact,
                      const double *turn, const double *velocity, double room) {
  double motion[MOTION_MAX] = {0.0};
  for (int axis = 0; axis < 3; ++axis) {
    motion[axis] = vec3_dot(contact->frame + 3 * axis, velocity);
    motion[3 + axis] = vec3_dot(contact->frame + 3 * axis, turn);
  }
  motion[0] += contact->dist;
  return !(slack_of(s, o, contact, motion) > room);
}

LANES_INLINE int is_reached(const working_set *s, const qd_step_options *options,
                            const qd_contact *contact, double near) {
  lanes turn, velocity;
  relative_motion(&turn, &velocity, s, contact);
  const double speed = sqrt(square3(&velocity)), room = near * (fabs(contact->dist) + speed);
  if (contact->dim <= 3 && contact->dist - (1.0 + contact->friction[0]) * speed > room) {
    return 0; /* in whichever direction it moves */
  }
  const double w[3] = {turn[0], turn[1], turn[2]};
  const double v[3] = {velocity[0], velocity[1], velocity[2]};
  return comes_near(s, options, contact, w, v, room);
}

QD_MULTIVERSION
static int extend_contacts(working_set *s, const qd_step_options *options, const collision *c,
                           double near) {
  int added = 0;
  for (int i = 0; i < s->chosen; ++i) {
    if (!s->contact[i] && is_reached(s, options, c->contact + i, near)) {
      s->contact[i] = 1;
      ++added;
    }
  }
  return added;
}

QD_MULTIVERSION
static int count_reached(const working_set *s, const qd_step_options *options, const collision *c,
                         double near) {
  int count = 0;
  for (int i = 0; i < s->chosen; ++i) {
    count += !s->contact[i] && is_reached(s, options, c->contact + i, near);
  }
  return count;
}

int working_set_misses(working_set *s, const qd_model *model, const qd_step_options *options,
                       const kinematics *k, const collision *c, const double *delta) {
  fill_twists(s, model, k, delta);
  return count_reached(s, options, c, CLEARLY_REACHED);
}

int working_set_extend(working_set *s, const qd_model *model, const qd_step_options *options,
                       const kinematics *k, const collision *c, const qd_step_input *input,
                       const double *delta, int rough) {
  const int forces = extend_forces(s, model, options, input, delta);
  if (s->left_out == 0) {
    return forces;
  }
  fill_twists(s, model, k, delta);
  const double near = rough ? ROUGHLY_NEAR : SLIGHT;
  const int added =
      extend_limits(s, model, options, input->q, delta) + extend_contacts(s, options, c, near);
  s->left_out -= added;
  return forces + added;
}
