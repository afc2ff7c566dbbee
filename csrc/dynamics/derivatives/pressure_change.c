#include "dynamics/derivatives/pressure_change.h"

#include "base/quat.h"
#include "base/rounding.h"
#include "dynamics/problem/pressure_friction.h"
#include "dynamics/workspace.h"

void pressure_changes_lay_out(pressure_changes *c, const qd_model *model, int element_capacity,
                              arena *a) {
  const size_t pairs = (size_t)model->pair.soft_count;
  const size_t elements = pairs > 0 ? (size_t)element_capacity : 0;
  c->pair = arena_take(a, pairs * sizeof *c->pair);
  c->rows = arena_doubles(a, elements * PRESSURE_ROWS * PRESSURE_INPUTS);
  c->polygon = arena_doubles(a, elements * POLYGON_NUMBERS * POLYGON_BY);
}

/* ---------------------------------------------------------------- one direction */

/* Changes of a body's frame and displacement. */
typedef struct body_change {
  double at[3], velocity[3], pos[3]; /* frame position, displacement, displaced position */
  double turn[3], centre[3]; /* of the displaced frame: rotation, and motion of the point at the
                                pair's centre */
  double twist[3];           /* of the rotation vector */
  double dJ[9];
} body_change;

static void change_body(body_change *out, const pressure_body *body, const double centre[3],
                        const screw *motion, const screw *d_twist) {
  const screw *T = &body->twist;
  double part[3], E[9], arm[3];
  screw_point_velocity(out->at, motion, body->at);
  screw_point_velocity(out->velocity, d_twist, body->at);
  vec3_add_cross(out->velocity, 1.0, T->w, out->at);
  vec3_add(out->pos, out->at, out->velocity);
  vec3_copy(out->twist, d_twist->w);
  rotation_exp(E, T->w);
  mat3_mul_vec(out->turn, E, motion->w);
  mat3_mul_vec(part, body->J, d_twist->w);
  vec3_add(out->turn, out->turn, part);
  rotation_left_jacobian_change(out->dJ, T->w, d_twist->w);
  vec3_sub(arm, centre, body->moved.pos);
  vec3_cross(part, out->turn, arm);
  vec3_add(out->centre, out->pos, part);
}

/* A wrench about the pair's centre, and its change. */
typedef struct changing_wrench {
  double f[3], m[3], df[3], dm[3];
} changing_wrench;

/* Adds a force at `arm` from the centre, and its changes with arm and force. */
static void add_force(changing_wrench *W, const double arm[3], const double d_arm[3],
                      const double f[3], const double df[3]) {
  vec3_add(W->f, W->f, f);
  vec3_add(W->df, W->df, df);
  vec3_add_cross(W->m, 1.0, arm, f);
  vec3_add_cross(W->dm, 1.0, d_arm, f);
  vec3_add_cross(W->dm, 1.0, arm, df);
}

/* Data of one direction. */
typedef struct direction {
  const solved_step *s;
  const pressure_changes *changes;
  const soft_pair *pair;
  int polygons;
  double raw[6]; /* the wrench without dissipation and lift, about the pair's centre */
  double pressed_by[POLYGON_BY]; /* derivatives of the sum of pressure */
  double loss;                   /* dissipation over h */
  double before;                 /* factor of the bristles' stretch */
  body_change body[2];
  double relative[POLYGON_BY];
  double d_loss, d_friction, d_length; /* the last two of logarithms: coefficient, time step */
  double d_pressed;
  int along_modulus, lifts;
} direction;

/* Position, normal and force of an element, and their changes in the world. */
typedef struct polygon_state {
  double pos[3], normal[3], force;
  double d_pos[3], d_normal[3], d_force; /* change of the acting force */
} polygon_state;

/* Adds the motion of the second body to changes in its frame. */
static void carry(double d_pos[3], double d_normal[3], const direction *d, const double pos[3],
                  const double normal[3]) {
  const body_change *second = d->body + 1;
  double arm[3];
  vec3_sub(arm, pos, d->pair->centre);
  vec3_add_cross(d_pos, 1.0, second->turn, arm);
  vec3_add(d_pos, d_pos, second->centre);
  vec3_add_cross(d_normal, 1.0, second->turn, normal);
}

/* Motion of the second body relative to the first at x due to the displacement, and its change. */
static void slip_at(double slip[3], double d_slip[3], const direction *d, const double x[3],
                    const double dx[3]) {
  vec3_set(slip, 0.0, 0.0, 0.0);
  vec3_set(d_slip, 0.0, 0.0, 0.0);
  for (int b = 0; b < 2; ++b) {
    const pressure_body *body = d->pair->side + b;
    const body_change *by = d->body + b;
    const double sign = b ? 1.0 : -1.0;
    double arm[3], d_arm[3];
    vec3_sub(arm, x, body->moved.pos);
    vec3_sub(d_arm, dx, by->pos);
    screw_add_point_velocity(slip, sign, &body->twist, body->at);
    vec3_add_cross(slip, sign, body->twist.w, arm);
    vec3_axpy(d_slip, sign, by->velocity);
    vec3_add_cross(d_slip, sign, by->twist, arm);
    vec3_add_cross(d_slip, sign, body->twist.w, d_arm);
  }
}

static void spin_of(double spin[3], double d_spin[3], const direction *d) {
  vec3_sub(spin, d->pair->side[1].twist.w, d->pair->side[0].twist.w);
  vec3_sub(d_spin, d->body[1].twist, d->body[0].twist);
}

/* Adds the stretch of bristles at x, their rotation, and the changes of both. */
static void add_stretch(double slip[3], double d_slip[3], double spin[3], double d_spin[3],
                        const direction *d, const double x[3], const double dx[3]) {
  const body_change *second = d->body + 1;
  double moved[3], turned[3], d_arm[3];
  if (d->before == 0.0) {
    return;
  }
  pressure_friction_stretch(moved, turned, d->pair, x);
  vec3_axpy(slip, d->before, moved);
  vec3_axpy(spin, d->before, turned);
  /* x moves with the second body, and also relative to it */
  vec3_add_cross(d_slip, d->before, second->turn, moved);
  double arm[3];
  vec3_sub(arm, x, d->pair->side[1].moved.pos);
  vec3_sub(d_arm, dx, second->pos);
  vec3_add_cross(d_arm, -1.0, second->turn, arm);
  vec3_add_cross(d_slip, d->before, turned, d_arm);
  vec3_add_cross(d_spin, d->before, second->turn, turned);
}

/* The elastic cone's addition to a polygon's force, and its change (d_force), by the sliding
 * distance. The change of the polygon's stiffness is left out: this law has no derivatives, and
 * programs converge without it. */
static double change_lift(polygon_state *out, const direction *d, const qd_patch_polygon *at) {
  double slip[3], d_slip[3];
  out->d_force = 0.0;
  if (!d->lifts || !(at->area * at->pressure > 0.0)) {
    return 0.0;
  }
  slip_at(slip, d_slip, d, out->pos, out->d_pos);
  const double up = vec3_dot(out->normal, slip);
  vec3_axpy(d_slip, -vec3_dot(out->d_normal, slip), out->normal);
  vec3_axpy(d_slip, -up, out->d_normal);
  vec3_axpy(slip, -up, out->normal);
  const double rise = pressure_friction_rise(d->s->model, d->pair, at), slid = vec3_norm(slip);
  out->d_force = rise * slid * d->d_friction;
  if (slid > NEGLIGIBLE * d->pair->length) {
    out->d_force += rise * vec3_dot(slip, d_slip) / slid;
  }
  return rise * slid;
}

/* A polygon and its change; raw: the change of its force that the tangent contains. */
static void change_polygon(polygon_state *out, const direction *d, int i, double *raw) {
  const pressure_contact *soft = &d->s->w->problem.soft;
  const qd_patch_polygon *at = soft->polygon + i;
  const double *by = d->changes->polygon + (size_t)i * POLYGON_NUMBERS * POLYGON_BY;
  double numbers[POLYGON_NUMBERS], slip[3], d_slip[3];
  for (int n = 0; n < POLYGON_NUMBERS; ++n) {
    numbers[n] = 0.0;
    for (int k = 0; k < POLYGON_BY; ++k) {
      numbers[n] += by[POLYGON_BY * n + k] * d->relative[k];
    }
  }
  vec3_copy(out->pos, at->centre);
  vec3_copy(out->normal, at->normal);
  vec3_copy(out->d_pos, numbers);
  vec3_copy(out->d_normal, numbers + 3);
  carry(out->d_pos, out->d_normal, d, out->pos, out->normal);
  const double force = at->area * at->pressure;
  const double lifted = change_lift(out, d, at);
  const double share = soft->share[i] - (force > 0.0 ? lifted / force : 0.0);
  *raw = numbers[6];
  out->force = force * share + lifted;
  out->d_force += numbers[6] * share;
  if (d->loss != 0.0 && share > 0.0) {
    slip_at(slip, d_slip, d, out->pos, out->d_pos);
    out->d_force -=
        force * (d->loss * (vec3_dot(out->d_normal, slip) + vec3_dot(out->normal, d_slip)) +
                 d->d_loss * vec3_dot(out->normal, slip));
  }
}

/* ---------------------------------------------------------------- friction */

/* d t1 of t1 = y / |y|, y = axis x n: d t1 = (1 - t1 t1') (axis x dn) / |y|; t2 = n x t1. */
static void change_frame(double d_frame[9], const qd_model *model, const double frame[9],
                         const double dn[3]) {
  double axis[3], y[3], dy[3];
  contact_tangent_axis(axis, model, frame);
  vec3_cross(y, axis, frame);
  vec3_cross(dy, axis, dn);
  vec3_axpy(dy, -vec3_dot(frame + 3, dy), frame + 3);
  vec3_copy(d_frame, dn);
  vec3_scale(d_frame + 3, dy, 1.0 / vec3_norm(y));
  vec3_cross(d_frame + 6, dn, frame + 3);
  vec3_add_cross(d_frame + 6, 1.0, frame, d_frame + 3);
}

/* The radius follows the force, and the constant of its row follows the sliding distance; a
 * barrier's share is proportional to the force. */
static void change_radius(const direction *d, const pressure_element *at, double d_force,
                          const double slip[3], double rows[PRESSURE_ROWS]) {
  const problem *p = &d->s->w->problem;
  const double *lambda = p->solution.dual + at->row;
  const int count = pressure_element_rows(at);
  const double of_force = d_force / at->force, holds = at->give * at->radius;
  const double of_slip = d->d_length; /* change of the logarithm of what regularised friction holds,
                                         and of its compliance */
  double along = 0.0, squared = lambda[0] * lambda[0];
  rows[0] = -p->program.compliance[at->row] * lambda[0] * (of_force + d->d_friction);
  if (at->slid > NEGLIGIBLE * d->pair->length) {
    for (int k = 1; k < count; ++k) {
      along += slip[k - 1] * rows[k];
    }
    rows[0] += along / (at->slid + holds) - holds * of_slip;
  }
  for (int k = 1; k < count && at->give > 0.0; ++k) {
    rows[k] += at->give * lambda[k] * (of_slip - of_force - d->d_friction);
  }
  if (isinf(d->s->options->kappa)) {
    return;
  }
  for (int k = 1; k < count; ++k) {
    squared -= lambda[k] * lambda[k];
  }
  const double target = 2.0 / d->s->options->kappa * at->force / d->pair->pressed;
  const double grows = target / squared * (of_force - d->d_pressed / d->pair->pressed);
  for (int k = 0; k < count; ++k) {
    rows[k] -= grows * (k == 0 ? lambda[0] : -lambda[k]);
  }
}

/* Rows of an element, and its part of the wrench. */
static void change_element(const direction *d, const pressure_element *at, const polygon_state *by,
                           double d_spin, changing_wrench *W, double rows[PRESSURE_ROWS]) {
  const double *lambda = d->s->w->problem.solution.dual + at->row;
  double d_frame[9], slip[3], d_slip[3], spin[3], d_turn[3], moved[3] = {0.0, 0.0, 0.0};
  double f[3] = {0.0, 0.0, 0.0}, df[3] = {0.0, 0.0, 0.0}, arm[3], d_arm[3];
  change_frame(d_frame, d->s->model, at->frame, by->d_normal);
  slip_at(slip, d_slip, d, at->pos, by->d_pos);
  spin_of(spin, d_turn, d);
  add_stretch(slip, d_slip, spin, d_turn, d, at->pos, by->d_pos);
  for (int k = 1; k < 3; ++k) {
    const double *t = at->frame + 3 * k, *dt = d_frame + 3 * k;
    moved[k - 1] = vec3_dot(t, slip);
    rows[k] = vec3_dot(t, d_slip) + vec3_dot(dt, slip);
    vec3_axpy(f, lambda[k], t);
    vec3_axpy(df, lambda[k], dt);
  }
  vec3_sub(arm, at->pos, d->pair->centre);
  vec3_copy(d_arm, by->d_pos); /* the centre of moments is fixed */
  add_force(W, arm, d_arm, f, df);
  if (at->spin > 0.0) {
    moved[2] = at->spin * vec3_dot(at->frame, spin);
    rows[3] = at->spin * (vec3_dot(at->frame, d_turn) + vec3_dot(d_frame, spin)) +
              d_spin * vec3_dot(at->frame, spin);
    vec3_axpy(W->m, at->spin * lambda[3], at->frame);
    vec3_axpy(W->dm, at->spin * lambda[3], d_frame);
    vec3_axpy(W->dm, d_spin * lambda[3], at->frame);
  }
  change_radius(d, at, by->d_force, moved, rows);
}

/* ---------------------------------------------------------------- the whole patch */

/* The wrench's change by relative motion, from the tangent, and by the motion of the second body.
 */
static void change_pressing(const direction *d, changing_wrench *W) {
  const soft_pair *pair = d->pair;
  const body_change *second = d->body + 1;
  vec3_copy(W->f, d->raw);
  vec3_copy(W->m, d->raw + 3);
  vec3_cross(W->df, second->turn, W->f);
  vec3_cross(W->dm, second->turn, W->m);
  vec3_add_cross(W->dm, 1.0, second->centre, W->f);
  for (int i = 0; i < 6; ++i) {
    double sum = 0.0;
    for (int k = 0; k < 3; ++k) {
      sum += pair->tangent[6 * i + k] * d->relative[3 + k] +
             pair->tangent[6 * i + 3 + k] * d->relative[k];
    }
    *(i < 3 ? W->df + i : W->dm + i - 3) += sum;
  }
}

/* Adds forces of polygons that the tangent does not contain: by dissipation, lift, or a modulus. */
static void add_polygon(const direction *d, int i, const polygon_state *at, double raw,
                        changing_wrench *W) {
  const qd_patch_polygon *polygon = d->s->w->problem.soft.polygon + i;
  const double known = d->along_modulus ? 0.0 : 1.0;
  const double force = at->force - known * polygon->area * polygon->pressure;
  const double d_force = at->d_force - known * raw;
  double arm[3], f[3], df[3];
  vec3_sub(arm, at->pos, d->pair->centre);
  vec3_scale(f, at->normal, force);
  vec3_scale(df, at->normal, d_force);
  vec3_axpy(df, force, at->d_normal);
  add_force(W, arm, at->d_pos, f, df);
}

/* The element of the whole patch; returns the change of its spin arm. */
static double change_whole(polygon_state *out, const direction *d, const pressure_element *at,
                           const changing_wrench *W) {
  const double *n = at->frame, size = vec3_norm(W->f);
  double spun = 0.0, raw, weight = 0.0, outward[3] = {0.0, 0.0, 0.0};
  polygon_state one;
  memset(out, 0, sizeof *out);
  vec3_reject(out->d_normal, W->df, n);
  vec3_scale(out->d_normal, out->d_normal, 1.0 / size);
  for (int i = 0; i < d->polygons; ++i) {
    const qd_patch_polygon *polygon = d->s->w->problem.soft.polygon + i;
    double arm[3];
    change_polygon(&one, d, i, &raw);
    vec3_sub(arm, one.pos, at->pos);
    vec3_axpy(out->d_pos, raw, arm);
    vec3_axpy(out->d_pos, polygon->area * polygon->pressure, one.d_pos);
    weight += polygon->area * polygon->pressure;
    out->d_force += one.d_force;
    const double height = vec3_dot(n, arm);
    vec3_axpy(arm, -height, n);
    const double length = vec3_norm(arm);
    spun += one.d_force * length;
    if (length > 0.0) {
      const double share = one.force / length;
      spun += share * (vec3_dot(arm, one.d_pos) - height * vec3_dot(arm, out->d_normal));
      vec3_axpy(outward, share, arm);
    }
  }
  vec3_scale(out->d_pos, out->d_pos, 1.0 / weight);
  spun -= vec3_dot(outward, out->d_pos);
  return (spun - at->spin * out->d_force) / at->force;
}

/* out += change of the wrench on a body, about the world's origin, in the form of the step's rows
 */
static void body_wrench_change(double out[6], const direction *d, int b, const changing_wrench *W) {
  const pressure_body *body = d->pair->side + b;
  const body_change *by = d->body + b;
  const double sign = b ? 1.0 : -1.0;
  double arm[3], moment[3], d_moment[3], part[3], first[3], second[3];
  vec3_sub(arm, body->moved.pos, d->pair->centre);
  vec3_cross(part, arm, W->f);
  vec3_sub(moment, W->m, part);
  vec3_copy(d_moment, W->dm);
  vec3_add_cross(d_moment, -1.0, by->pos, W->f);
  vec3_add_cross(d_moment, -1.0, arm, W->df);
  mat3_tmul_vec(first, by->dJ, moment);
  mat3_tmul_vec(second, body->J, d_moment);
  vec3_add(first, first, second);
  vec3_add_cross(first, 1.0, by->at, W->f);
  vec3_add_cross(first, 1.0, body->at, W->df);
  for (int i = 0; i < 3; ++i) {
    out[i] = sign * first[i];
    out[3 + i] = sign * W->df[i];
  }
}

static void store_rows(const direction *d, int element, int input,
                       const double rows[PRESSURE_ROWS]) {
  for (int r = 0; r < PRESSURE_ROWS; ++r) {
    const size_t at = (size_t)element * PRESSURE_ROWS + (size_t)r;
    d->changes->rows[at * PRESSURE_INPUTS + (size_t)input] = rows[r];
  }
}

/* One element, of a polygon or of the whole patch: its part of the wrench and its rows. */
static void add_element(const direction *d, int element, int input, const polygon_state *by,
                        double d_spin, changing_wrench *friction) {
  double rows[PRESSURE_ROWS] = {0.0};
  change_element(d, d->s->w->problem.soft.element + element, by, d_spin, friction, rows);
  store_rows(d, element, input, rows);
}

/* All changes along one direction: of the wrenches (12), and of rows of the elements in column
 * `input`. */
static void change_pair(const direction *d, int input, double wrenches[PRESSURE_WRENCHES]) {
  const pressure_element *element = d->s->w->problem.soft.element;
  int next = d->pair->first;
  const int end = next + d->pair->count;
  changing_wrench W, friction;
  polygon_state at;
  memset(&W, 0, sizeof W);
  memset(&friction, 0, sizeof friction);
  if (!d->along_modulus) {
    change_pressing(d, &W);
  }
  const int untold = d->loss != 0.0 || d->along_modulus || d->lifts;
  const int single = next < end && element[next].polygon >= 0;
  for (int i = 0; i < d->polygons && (untold || single); ++i) {
    double raw;
    change_polygon(&at, d, i, &raw);
    if (untold) {
      add_polygon(d, i, &at, raw, &W);
    }
    if (next < end && element[next].polygon == i) {
      add_element(d, next++, input, &at, 0.0, &friction);
    }
  }
  if (next < end) { /* one element for the whole patch */
    const double d_spin = change_whole(&at, d, element + next, &W);
    add_element(d, next, input, &at, d_spin, &friction);
  }
  vec3_add(W.f, W.f, friction.f);
  vec3_add(W.m, W.m, friction.m);
  vec3_add(W.df, W.df, friction.df);
  vec3_add(W.dm, W.dm, friction.dm);
  body_wrench_change(wrenches, d, 0, &W);
  body_wrench_change(wrenches + 6, d, 1, &W);
}

/* The unit direction of an input. */
static void take_direction(direction *d, int input) {
  const qd_model *model = d->s->model;
  const int *geom = model->pair.geom + 2 * d->pair->pair;
  const double *E = model->parameters.geom_modulus, *loss = model->geom.dissipation;
  const double h = d->s->options->h;
  double entries[PRESSURE_INPUTS];
  screw motion[2], twist[2];
  memset(entries, 0, sizeof entries);
  entries[input] = 1.0;
  for (int b = 0; b < 2; ++b) {
    vec3_copy(motion[b].w, entries + 6 * b);
    vec3_copy(motion[b].v, entries + 6 * b + 3);
    vec3_copy(twist[b].w, entries + PRESSURE_BY_TWIST + 6 * b);
    vec3_copy(twist[b].v, entries + PRESSURE_BY_TWIST + 6 * b + 3);
    change_body(d->body + b, d->pair->side + b, d->pair->centre, motion + b, twist + b);
  }
  vec3_sub(d->relative, d->body[0].turn, d->body[1].turn);
  vec3_sub(d->relative + 3, d->body[0].centre, d->body[1].centre);
  d->relative[6] = entries[PRESSURE_BY_MODULUS];
  d->relative[7] = entries[PRESSURE_BY_MODULUS + 1];
  d->along_modulus = input == PRESSURE_BY_MODULUS || input == PRESSURE_BY_MODULUS + 1;
  d->d_pressed = 0.0;
  for (int k = 0; k < POLYGON_BY; ++k) {
    d->d_pressed += d->pressed_by[k] * d->relative[k];
  }
  d->d_friction = 0.0;
  if (input == PRESSURE_BY_FRICTION) {
    d->d_friction = 1.0 / model->parameters.pair_friction[5 * d->pair->pair];
  }
  d->d_length = input == PRESSURE_BY_LENGTH ? 1.0 / h : 0.0;
  d->d_loss = -d->loss * d->d_length;
  if (d->along_modulus && E[geom[0]] > 0.0 && E[geom[1]] > 0.0) {
    const int other = input == PRESSURE_BY_MODULUS; /* the side whose share of the motion grows */
    d->d_loss = E[geom[!other]] * (loss[geom[other]] / h - d->loss) / (E[geom[0]] + E[geom[1]]);
  }
}

/* The raw wrench, and the wrenches on the bodies in the form of stationarity. */
static void sum_wrenches(direction *d, pressure_change *out) {
  const pressure_contact *soft = &d->s->w->problem.soft;
  double f[3], m[3];
  memcpy(d->raw, d->pair->wrench, sizeof d->raw);
  for (int i = 0; i < d->polygons && (d->loss != 0.0 || d->lifts); ++i) {
    const qd_patch_polygon *at = soft->polygon + i;
    const double extra = (soft->share[i] - 1.0) * at->area * at->pressure;
    double arm[3], part[3];
    vec3_sub(arm, at->centre, d->pair->centre);
    vec3_cross(part, arm, at->normal);
    vec3_axpy(d->raw, -extra, at->normal);
    vec3_axpy(d->raw + 3, -extra, part);
  }
  vec3_add(f, d->pair->wrench, d->pair->friction);
  vec3_add(m, d->pair->wrench + 3, d->pair->friction + 3);
  for (int b = 0; b < 2; ++b) {
    const pressure_body *body = d->pair->side + b;
    double arm[3], part[3];
    vec3_sub(arm, body->moved.pos, d->pair->centre);
    vec3_cross(part, arm, f);
    mat3_tmul_sub(out->on[b].m, body->J, m, part);
    vec3_add_cross(out->on[b].m, 1.0, body->at, f);
    vec3_scale(out->on[b].m, out->on[b].m, b ? 1.0 : -1.0);
    vec3_scale(out->on[b].f, f, b ? 1.0 : -1.0);
  }
}

/* Derivatives of each polygon by relative motions and moduli. */
static int change_polygons(const pressure_changes *c, const solved_step *s, direction *d) {
  const pressure_contact *soft = &s->w->problem.soft;
  const int *geom = s->model->pair.geom + 2 * d->pair->pair;
  field_side side[2];
  int regular = 1;
  for (int b = 0; b < 2; ++b) {
    body_frame frame;
    pressure_field_frame(&frame, s->model, &d->pair->side[b].moved, geom[b]);
    side[b].field = s->model->field[s->model->geom.field[geom[b]]];
    memcpy(side[b].rot, frame.rot, sizeof frame.rot);
    vec3_copy(side[b].pos, frame.pos);
  }
  memset(d->pressed_by, 0, sizeof d->pressed_by);
  for (int i = 0; i < d->polygons; ++i) {
    const qd_patch_polygon *at = soft->polygon + i;
    double *by = c->polygon + (size_t)i * POLYGON_NUMBERS * POLYGON_BY;
    const int is_regular = field_polygon_change(by, at, soft->vertex + 3 * (size_t)at->vertex_start,
                                                side, d->pair->centre);
    regular &= is_regular || at->area * at->pressure < SLIGHT * d->pair->pressed;
    for (int k = 0; k < POLYGON_BY; ++k) {
      d->pressed_by[k] += by[POLYGON_BY * 6 + k];
    }
  }
  return regular;
}

/* 1 if nothing depends on an input: the coefficient of absent friction, the modulus of a rigid
 * side. */
static int counts_nothing(const direction *d, int input) {
  const qd_model *model = d->s->model;
  if (input == PRESSURE_BY_FRICTION) {
    return d->pair->count == 0;
  }
  const int side = input - PRESSURE_BY_MODULUS;
  return (side == 0 || side == 1) &&
         model->parameters.geom_modulus[model->pair.geom[2 * d->pair->pair + side]] == 0.0;
}

static void compute_input(direction *d, pressure_change *out, int input) {
  static const double none[PRESSURE_ROWS];
  double column[PRESSURE_WRENCHES] = {0.0};
  if (counts_nothing(d, input)) {
    for (int e = d->pair->first; e < d->pair->first + d->pair->count; ++e) {
      store_rows(d, e, input, none);
    }
  } else {
    take_direction(d, input);
    change_pair(d, input, column);
  }
  for (int i = 0; i < PRESSURE_WRENCHES; ++i) {
    out->by[i * PRESSURE_INPUTS + input] = column[i];
  }
}

int pressure_change_compute(pressure_changes *c, const solved_step *s, int index, int first,
                            int end) {
  pressure_contact *soft = &s->w->problem.soft;
  soft_pair *pair = soft->pair + index;
  pressure_change *out = c->pair + index;
  direction d = {.s = s, .changes = c, .pair = pair};
  d.polygons = pressure_pair_look(soft, pair, 1);
  if (!pair->is_active) {
    return 1;
  }
  d.loss = pressure_pair_dissipation(s->model, s->options, pair->pair) / s->options->h;
  d.before = pressure_friction_part(s->options);
  d.lifts = s->options->patch_law == QD_PATCH_ELASTIC_CONE && s->model->pair.dim[pair->pair] > 1;
  const int regular = change_polygons(c, s, &d);
  sum_wrenches(&d, out);
  for (int input = first; input < end; ++input) {
    compute_input(&d, out, input);
  }
  return regular;
}
