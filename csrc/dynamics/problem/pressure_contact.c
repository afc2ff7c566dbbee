#include "dynamics/problem/pressure_contact.h"

#include "base/quat.h"
#include "base/rounding.h"
#include "dynamics/problem/contact_dofs.h"
#include "dynamics/problem/pressure_energy.h"
#include "dynamics/problem/pressure_friction.h"

void pressure_contact_lay_out(pressure_contact *s, const qd_model *model, int element_capacity,
                              arena *a) {
  const size_t pairs = (size_t)model->pair.soft_count;
  const size_t elements = pairs > 0 ? (size_t)element_capacity : 0;
  s->element_capacity = (int)elements;
  s->pair = arena_take(a, pairs * sizeof *s->pair);
  s->element = arena_take(a, elements * sizeof *s->element);
  s->polygon = arena_take(a, elements * sizeof *s->polygon);
  s->share = arena_doubles(a, elements);
  s->vertex = arena_doubles(a, 3 * PRESSURE_CORNERS * elements);
  ARENA_DOUBLES(a, pairs > 0 ? (size_t)model->nv : 0, &s->delta, &s->step, &s->from, &s->jump);
  s->thought = arena_take(a, pairs * sizeof *s->thought);
}

void pressure_contact_begin(pressure_contact *s, const qd_model *model, const collision *c,
                            const double *bristle) {
  s->count = s->element_count = s->programs = s->bounded = s->refined = s->holds = 0;
  s->converged = 1;
  s->led_back = 0.0;
  if (model->pair.soft_count == 0) {
    return;
  }
  memset(s->delta, 0, (size_t)model->nv * sizeof(double));
  for (int i = 0; i < model->pair.soft_count; ++i) {
    const int *geom = model->pair.geom + 2 * model->pair.of_soft[i];
    s->pair[i] = (soft_pair){.pair = model->pair.of_soft[i], .contact = -1};
    s->pair[i].length = fmin(model->geom.radius[geom[0]], model->geom.radius[geom[1]]);
    if (bristle != NULL) {
      memcpy(s->pair[i].stretch, bristle + QD_BRISTLES * i, sizeof s->pair[i].stretch);
    }
  }
  for (int i = 0; i < c->count && i < c->capacity; ++i) {
    const int at = model->pair.soft[c->contact[i].pair];
    if (at >= 0 && s->pair[at].contact < 0) {
      s->pair[at].contact = i;
      ++s->count;
    }
  }
}

double pressure_guard_gap(const qd_model *model, const qd_contact *contact) {
  return fmax(contact->dist, 0.0) +
         PRESSURE_DEPTH_SHARE * pressure_pair_depth(model, contact->pair);
}

/* ---------------------------------------------------------------- displaced bodies */

void pressure_pair_twists(screw twist[2], const qd_model *model, const kinematics *k,
                          const qd_contact *contact, const double *delta) {
  const contact_dofs dofs = contact_dofs_find(model, contact->body_a, contact->body_b);
  memset(twist, 0, 2 * sizeof *twist);
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < dofs.on[b].count; ++i) {
      screw_axpy(twist + b, delta[dofs.on[b].at[i]], k->dof_screw + dofs.on[b].at[i]);
    }
  }
}

static void move_body(pressure_body *out, const kinematics *k, int body, int moves,
                      const screw *twist) {
  double velocity[3], turn[9];
  const body_frame here = body_frame_of(k, body);
  out->body = body;
  out->moves = moves;
  out->twist = *twist;
  vec3_copy(out->at, here.pos);
  screw_point_velocity(velocity, twist, here.pos);
  vec3_add(out->moved.pos, here.pos, velocity);
  rotation_exp(turn, twist->w);
  mat3_mul(out->moved.rot, turn, here.rot);
  rotation_left_jacobian(out->J, twist->w);
}

/* ---------------------------------------------------------------- patches */

double pressure_pair_dissipation(const qd_model *model, const qd_step_options *o, int pair) {
  const int *geom = model->pair.geom + 2 * pair;
  const double *E = model->parameters.geom_modulus, *d = model->geom.dissipation;
  if (!o->dynamic) {
    return 0.0;
  }
  if (E[geom[0]] > 0.0 && E[geom[1]] > 0.0) { /* motions in inverse ratio to moduli */
    const double sum = E[geom[0]] + E[geom[1]];
    return (E[geom[1]] * d[geom[0]] + E[geom[0]] * d[geom[1]]) / sum;
  }
  return E[geom[0]] > 0.0 ? d[geom[0]] : d[geom[1]];
}

/* Pressure grows by 1 + dissipation times the speed of approach (Hunt and Crossley), for each
 * polygon. Adds this to the wrench, and fills its Hessian `by` for motions of the centre. */
static void add_dissipation(pressure_contact *s, soft_pair *pair, double loss, int count,
                            double by[36]) {
  const screw twist[2] = {pair->side[0].twist, pair->side[1].twist};
  memset(by, 0, 36 * sizeof(double));
  for (int i = 0; i < count; ++i) {
    const qd_patch_polygon *at = s->polygon + i;
    double motion[6], arm[3], row[6];
    pressure_relative_motion(motion, pair, at->centre, twist);
    const double force = at->area * at->pressure;
    const double factor = fmax(0.0, 1.0 - loss * vec3_dot(at->normal, motion) / s->options->h);
    vec3_sub(arm, at->centre, pair->centre);
    vec3_copy(row, at->normal);
    vec3_cross(row + 3, arm, at->normal);
    for (int k = 0; k < 6; ++k) {
      pair->wrench[k] += (factor - 1.0) * force * row[k];
      for (int l = 0; l < 6 && factor > 0.0; ++l) {
        by[6 * k + l] += force * loss / s->options->h * row[k] * row[l];
      }
    }
    s->share[i] = factor;
  }
}

/* Adds the Hessian that holds both bodies together. */
static void add_hold(soft_pair *pair) {
  double by[36] = {0.0};
  for (int i = 0; i < 6; ++i) {
    by[7 * i] = pair->hold * (i < 3 ? 1.0 : pair->length * pair->length);
  }
  pressure_energy_add(pair, by);
}

/* Wrench and load with dissipation, and (with_energy) the Hessian in the bodies' numbers. */
static void press(pressure_contact *s, soft_pair *pair, int polygons, int with_energy) {
  const double loss = pressure_pair_dissipation(s->model, s->options, pair->pair);
  const int *geom = s->model->pair.geom + 2 * pair->pair;
  double arm[2][3], by[36];
  for (int b = 0; b < 2; ++b) {
    mat3_mul_vec(arm[b], pair->side[b].moved.rot, s->model->geom.pos + 3 * geom[b]);
    pressure_numbers(pair->numbers + 6 * b, pair->side + b, &pair->side[b].twist);
  }
  if (with_energy) {
    pressure_energy_hessian(pair, arm);
  }
  for (int i = 0; i < polygons; ++i) {
    s->share[i] = 1.0;
  }
  if (loss != 0.0) {
    add_dissipation(s, pair, loss, polygons, by);
  }
  if (s->options->patch_law == QD_PATCH_ELASTIC_CONE) {
    pressure_friction_lift(s, pair, polygons);
  }
  if (loss != 0.0 && with_energy) {
    pressure_energy_add(pair, by);
  }
  if (pair->hold > 0.0 && with_energy) {
    add_hold(pair);
  }
  pressure_energy_load(pair);
}

void pressure_frame(double frame[9], const qd_model *model, const double normal[3]) {
  double axis[3];
  vec3_copy(frame, normal);
  contact_tangent_axis(axis, model, normal);
  vec3_cross(frame + 3, axis, normal);
  vec3_normalize(frame + 3);
  vec3_cross(frame + 6, normal, frame + 3);
}

static void fill_element(pressure_element *out, const soft_pair *pair, const qd_model *model,
                         const qd_step_options *o, const double x[3], const double normal[3],
                         double force, double spin, int polygon) {
  vec3_copy(out->pos, x);
  pressure_frame(out->frame, model, normal);
  out->force = force;
  out->radius = model->parameters.pair_friction[5 * pair->pair] * force;
  out->spin = spin;
  out->row = -1;
  out->polygon = polygon;
  pressure_friction_follow(out, pair, o);
}

/* Force of one polygon, N. */
static double polygon_force(const pressure_contact *s, int i) {
  return s->polygon[i].area * s->polygon[i].pressure * s->share[i];
}

/* One element for the whole patch, whose limit surface is an ellipsoid. */
static int fill_whole(pressure_element *out, const pressure_contact *s, const soft_pair *pair,
                      int count) {
  double normal[3], total = 0.0, turning = 0.0;
  vec3_copy(normal, pair->wrench);
  if (!(vec3_normalize(normal) > 0.0)) {
    return 0;
  }
  for (int i = 0; i < count; ++i) {
    const double force = polygon_force(s, i);
    double arm[3];
    vec3_sub(arm, s->polygon[i].centre, pair->centre);
    vec3_axpy(arm, -vec3_dot(normal, arm), normal);
    total += force;
    turning += force * vec3_norm(arm);
  }
  fill_element(out, pair, s->model, s->options, pair->centre, normal, total, turning / total, -1);
  return 1;
}

static void fill_elements(pressure_contact *s, soft_pair *pair, int polygons) {
  pair->first = s->element_count;
  pair->count = 0;
  const int frictionless = s->model->pair.dim[pair->pair] == 1 ||
                           s->model->parameters.pair_friction[5 * pair->pair] == 0.0;
  if (frictionless || !(pair->pressed > 0.0)) {
    return;
  }
  pressure_element *out = s->element + s->element_count;
  if (s->options->patch_friction == QD_FRICTION_ELLIPSOID) {
    pair->count = fill_whole(out, s, pair, polygons);
  }
  for (int i = 0; i < polygons && s->options->patch_friction == QD_FRICTION_POLYGONS; ++i) {
    const qd_patch_polygon *at = s->polygon + i;
    const double force = polygon_force(s, i);
    if (force > CALLERS_ROUNDING * pair->pressed) {
      fill_element(out + pair->count++, pair, s->model, s->options, at->centre, at->normal, force,
                   0.0, i);
    }
  }
  s->element_count += pair->count;
}

static void clear_pair(soft_pair *pair) {
  memset(pair->wrench, 0, sizeof pair->wrench);
  memset(pair->load, 0, sizeof pair->load);
}

/* Computes the pair and its polygons in this room; returns the number of polygons, 0 without a
 * patch. */
static int look(pressure_contact *s, soft_pair *pair, const patch_room *room, int with_energy) {
  static const double here[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  const int *geom = s->model->pair.geom + 2 * pair->pair;
  const qd_contact bodies = {.body_a = s->model->geom.body[geom[0]],
                             .body_b = s->model->geom.body[geom[1]]};
  const contact_dofs dofs = contact_dofs_find(s->model, bodies.body_a, bodies.body_b);
  screw twist[2];
  qd_patch patch;
  double back[3];
  pressure_pair_twists(twist, s->model, s->kinematics, &bodies, s->delta);
  move_body(pair->side, s->kinematics, bodies.body_a, dofs.on[0].count > 0, twist);
  move_body(pair->side + 1, s->kinematics, bodies.body_b, dofs.on[1].count > 0, twist + 1);
  pressure_pair_patch(s->model, pair->pair, &pair->side[0].moved, &pair->side[1].moved, &patch,
                      room);
  s->element_needed += patch.polygon_count;
  s->is_full |= patch.polygon_count > room->polygons;
  const int polygons = patch.polygon_count < room->polygons ? patch.polygon_count : room->polygons;
  pair->is_active = patch.total_pressure > 0.0;
  pair->pressed = patch.total_pressure;
  pair->area = patch.area;
  if (!pair->is_active) {
    clear_pair(pair);
    if (with_energy) {
      memset(pair->hessian, 0, sizeof pair->hessian);
    }
    return 0;
  }
  vec3_copy(pair->centre, patch.centre);
  vec3_scale(back, patch.centre, -1.0);
  field_patch_turn(&patch, &(const patch_room){0}, here, back);
  vec3_copy(pair->wrench, patch.force);
  vec3_copy(pair->wrench + 3, patch.moment);
  memcpy(pair->tangent, patch.tangent, sizeof pair->tangent);
  press(s, pair, polygons, with_energy);
  return polygons;
}

int pressure_pair_look(pressure_contact *s, soft_pair *pair, int with_corners) {
  const patch_room room = {s->polygon, with_corners ? s->vertex : NULL, s->element_capacity,
                           with_corners ? PRESSURE_CORNERS * s->element_capacity : 0};
  return look(s, pair, &room, 0);
}

static void evaluate_pair(pressure_contact *s, soft_pair *pair, int with_elements) {
  const patch_room room = {s->polygon, NULL, s->element_capacity - s->element_count, 0};
  const int polygons = look(s, pair, &room, with_elements);
  if (with_elements && !pair->is_active) {
    pair->count = 0;
  } else if (with_elements) {
    fill_elements(s, pair, polygons);
  }
}

static qd_status evaluate(pressure_contact *s, int with_elements) {
  const int kept = s->element_count;
  s->element_count = s->element_needed = s->is_full = 0;
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    if (s->pair[i].contact >= 0) {
      evaluate_pair(s, s->pair + i, with_elements);
    }
  }
  s->element_count = with_elements ? s->element_count : kept;
  return s->is_full ? QD_OUT_OF_CAPACITY : QD_OK;
}

qd_status pressure_contact_evaluate(pressure_contact *s) { return evaluate(s, 1); }

qd_status pressure_contact_wrenches(pressure_contact *s) { return evaluate(s, 0); }
