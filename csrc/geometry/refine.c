/* Newton's method on the closest-point conditions (closest.c) from an approximate start. The
 * features form an active set: a step that leaves a face continues on its edge, and a normal that
 * leaves the normal cone of an edge continues on the face.
 *
 * Certificate. gap = n.(x_B - x_A), with both points on the shapes and x_B - x_A along n. If the
 * support points of the shapes along n are as far apart as gap, then for gap >= 0 no points are
 * closer, and for gap < 0 a motion of B by -gap n separates the shapes. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/convex.h"
#include "geometry/meshes/mesh_surface.h"
#include "qdsim.h"

enum { REFINE_ITERATIONS = 40, STUCK_MOST = 3 };
/* A step on the same features that reduces the error by less than this factor counts as no
 * progress. The first steps for shapes of very different size may make none. */
static const double STUCK = 0.9;
static const double TURN_LEAST = 0.1;
static const double TURN_MOST = 0.5, MOVE_MOST = 1.0;

typedef struct refinement {
  const convex_pair *pair;
  surface_point point[2];
  double n[3], x[2][3], minus_n_b[3]; /* world, relative to A's centre */
} refinement;

static void to_world(refinement *r) {
  for (int k = 0; k < 2; ++k) {
    mat3_mul_vec(r->x[k], r->pair->shape[k]->rot, r->point[k].x);
  }
  vec3_add(r->x[1], r->x[1], r->pair->d);
  mat3_mul_vec(r->n, r->pair->shape[0]->rot, r->point[0].n);
  mat3_mul_vec(r->minus_n_b, r->pair->shape[1]->rot, r->point[1].n);
  vec3_scale(r->minus_n_b, r->minus_n_b, -1.0);
}

/* The shape's surface point for x and outward normal n (world, relative to A's centre). Returns the
 * change of n that made it a normal of the surface there. */
static double surface_start(surface_point *out, const convex_pair *pair, int k, const double x[3],
                            const double n[3]) {
  const placed_shape *shape = pair->shape[k];
  double arm[3], before[3];
  vec3_copy(arm, x);
  if (k == 1) {
    vec3_sub(arm, arm, pair->d);
  }
  mat3_tmul_vec(out->n, shape->rot, n);
  mat3_tmul_vec(out->x, shape->rot, arm);
  vec3_copy(before, out->n);
  out->feature = surface_classify(shape, out->x, pair->beside * shape_extent(shape));
  vec3_axpy(out->x, pair->skin[k], out->n);
  surface_retract(shape, out);
  vec3_sub(before, before, out->n);
  return vec3_norm(before);
}

/* A witness that combines points of several features may lie on a feature that does not have the
 * normal n. Then the support point is the better start. */
static void refine_start(refinement *r, const convex_pair *pair, const convex_witness *start) {
  double support[2][3], n[3];
  convex_support(pair, start->n, support[0], support[1]);
  r->pair = pair;
  for (int k = 0; k < 2; ++k) {
    vec3_scale(n, start->n, k == 0 ? 1.0 : -1.0);
    if (surface_start(&r->point[k], pair, k, start->x[k], n) > TURN_LEAST) {
      surface_start(&r->point[k], pair, k, support[k], n);
    }
  }
  to_world(r);
}

/* Difference of the normals, and offset of the points perpendicular to n, relative to the shapes'
 * size. */
static double residual(const refinement *r, double twist[3], double offset[3]) {
  vec3_sub(twist, r->minus_n_b, r->n);
  vec3_sub(offset, r->x[1], r->x[0]);
  vec3_axpy(offset, -vec3_dot(r->n, offset), r->n);
  vec3_scale(offset, offset, 1.0 / r->pair->size);
  return vec3_norm(twist) + vec3_norm(offset);
}

static double current_gap(const refinement *r) { return vec3_dot_sub(r->n, r->x[1], r->x[0]); }

/* x += move step axis, n += turn step axis in the frame of the shape, then back onto the
 * feature. */
static void advance(surface_point *point, const placed_shape *shape, const local_surface *surface,
                    const double step[2], double length) {
  double local[3];
  for (int i = 0; i < 2; ++i) {
    mat3_tmul_vec(local, shape->rot, surface->axis[i]);
    vec3_axpy(point->x, step[i] * surface->move[i] * length, local);
    vec3_axpy(point->n, step[i] * surface->turn[i], local);
  }
  surface_retract(shape, point);
}

static void newton_step(refinement *r, const double twist[3], const double offset[3]) {
  const convex_pair *pair = r->pair;
  local_surface surface[2];
  closest_system system;
  double step[4], turn = 0.0, move = 0.0;
  for (int k = 0; k < 2; ++k) {
    surface_compute(surface + k, pair->shape[k], &r->point[k], pair->size);
  }
  closest_system_compute(&system, surface, surface + 1, r->n, current_gap(r) / pair->size);
  const double right[4] = {vec3_dot(system.tangent[0], twist), vec3_dot(system.tangent[1], twist),
                           vec3_dot(system.tangent[0], offset),
                           vec3_dot(system.tangent[1], offset)};
  for (int i = 0; i < 4; ++i) {
    step[i] = 0.0;
    for (int k = 0; k < 4; ++k) {
      step[i] += system.inverse[4 * i + k] * right[k];
    }
    turn = fmax(turn, fabs(step[i] * surface[i / 2].turn[i % 2]));
    move = fmax(move, fabs(step[i] * surface[i / 2].move[i % 2]));
  }
  const double shrink =
      fmin(1.0, fmin(TURN_MOST / fmax(turn, TURN_MOST), MOVE_MOST / fmax(move, MOVE_MOST)));
  const double step_a[2] = {shrink * step[0], shrink * step[1]};
  const double step_b[2] = {-shrink * step[2], -shrink * step[3]};
  advance(&r->point[0], pair->shape[0], surface, step_a, pair->size);
  advance(&r->point[1], pair->shape[1], surface + 1, step_b, pair->size);
}

static void take(const refinement *r, contact_point *contact, int feature[2]) {
  contact->dist = current_gap(r);
  vec3_copy(contact->normal, r->n);
  vec3_add(contact->pos, r->x[0], r->x[1]);
  vec3_scale(contact->pos, contact->pos, 0.5);
  vec3_add(contact->pos, contact->pos, r->pair->shape[0]->pos);
  feature[0] = r->point[0].feature;
  feature[1] = r->point[1].feature;
}

/* Keeps the flat feature of shape k and restarts the other shape at its support point, which is an
 * end of an almost parallel line or face. Returns 0 if this point does not project into the
 * feature. */
static int restart_beside(refinement *r, int k, const double n[3]) {
  const convex_pair *pair = r->pair;
  const double outward = k == 0 ? 1.0 : -1.0;
  surface_point kept = r->point[k], end, shrunk;
  double support[2][3], foot[3], normal[3];
  const double gap = convex_support(pair, n, support[0], support[1]);
  vec3_copy(foot, support[1 - k]);
  vec3_axpy(foot, -outward * gap, n);
  if (k == 1) {
    vec3_sub(foot, foot, pair->d);
  }
  mat3_tmul_vec(kept.x, pair->shape[k]->rot, foot);
  surface_retract(pair->shape[k], &kept);
  shrunk = kept;
  vec3_scale(shrunk.x, shrunk.x,
             1.0 - pair->beside); /* accepts an end that is level with the feature's end */
  if (surface_cross(pair->shape[k], &shrunk)) {
    return 0;
  }
  vec3_scale(normal, n, -outward);
  if (surface_start(&end, pair, 1 - k, support[1 - k], normal) > TURN_MOST) {
    return 0;
  }
  r->point[k] = kept;
  r->point[1 - k] = end;
  to_world(r);
  return 1;
}

/* Newton's method is stuck if a flat feature is paired with the wrong feature: a face or a line
 * with an edge that is not parallel. Continues with an end of the edge against the flat feature; if
 * that fails, from the support points along the better of the two normals. */
static void restart(refinement *r) {
  convex_witness witness, other;
  vec3_copy(witness.n, r->n);
  vec3_copy(other.n, r->minus_n_b);
  if (restart_beside(r, 0, witness.n) || restart_beside(r, 1, other.n)) {
    return;
  }
  witness.gap = convex_support(r->pair, witness.n, witness.x[0], witness.x[1]);
  other.gap = convex_support(r->pair, other.n, other.x[0], other.x[1]);
  refine_start(r, r->pair, other.gap > witness.gap ? &other : &witness);
}

static int certified(const refinement *r, double tolerance) {
  double x_a[3], x_b[3];
  if (vec3_dot(r->n, r->minus_n_b) < 0.5) { /* Newton's method lost a normal */
    return 0;
  }
  const double bound =
      convex_support(r->pair, r->n, x_a, x_b) - r->pair->skin[0] - r->pair->skin[1];
  double slack = r->pair->roughness;
  for (int k = 0; k < 2; ++k) {
    const placed_shape *shape = r->pair->shape[k];
    if (shape->type == QD_MESH) {
      slack += mesh_feature_slack(shape->mesh, r->point[k].feature);
    }
  }
  return fabs(bound - current_gap(r)) <= tolerance * r->pair->size + slack;
}

/* Accepts points near the border of two features or of very unequal sizes: their error of the
 * distance is quadratic. For lines and faces that are almost parallel, the pivots of closest.c
 * allow no further rotation; the error of the distance is this tilt times their lengths. */
static int enough(const refinement *r, double error) {
  const double tilt = error <= WORKED_OUT ? 2.0 * error : 0.0;
  return error <= HALF_DIGITS && certified(r, tilt + CANCELLED);
}

/* Moves both points to the neighbouring features if they have left their own. */
static int cross(refinement *r) {
  const int crossed_a = surface_cross(r->pair->shape[0], &r->point[0]);
  const int crossed_b = surface_cross(r->pair->shape[1], &r->point[1]);
  return crossed_a || crossed_b;
}

int closest_refine(const convex_pair *pair, const convex_witness *start, contact_point *contact,
                   int feature[2]) {
  refinement r, best;
  double least = INFINITY, best_error = INFINITY;
  int stuck = 0;
  refine_start(&r, pair, start);
  for (int iteration = 0; iteration < REFINE_ITERATIONS; ++iteration) {
    double twist[3], offset[3];
    const double error = residual(&r, twist, offset);
    if (error <= CANCELLED && !(error < 0.1 * least && error > 1e-15)) {
      if (certified(&r, CANCELLED)) {
        take(&r, contact, feature);
        return 1;
      }
      if (!cross(&r)) { /* the start may be a vertex that does not have the normal n */
        return 0;
      }
      least = INFINITY;
      to_world(&r);
      continue;
    }
    if (error <= HALF_DIGITS && error < best_error) {
      best = r;
      best_error = error;
    }
    stuck = error < STUCK * least ? 0 : stuck + 1;
    if (stuck == STUCK_MOST) {
      if (enough(&r, error)) {
        take(&r, contact, feature);
        return 1;
      }
      restart(&r);
      least = INFINITY;
      stuck = 0;
      continue;
    }
    least = fmin(error, least);
    newton_step(&r, twist, offset);
    if (cross(&r)) {
      least = INFINITY;
      stuck = 0;
    }
    to_world(&r);
  }
  if (best_error <= HALF_DIGITS && enough(&best, best_error)) { /* alternates across a border */
    take(&best, contact, feature);
    return 1;
  }
  return 0;
}

int closest_on_features(const convex_pair *pair, const convex_witness *start, const int feature[2],
                        contact_point *contact) {
  refinement r = {.pair = pair};
  for (int k = 0; k < 2; ++k) {
    double n[3], arm[3];
    vec3_scale(n, start->n, k == 0 ? 1.0 : -1.0);
    vec3_copy(arm, start->x[k]);
    if (k == 1) {
      vec3_sub(arm, arm, pair->d);
    }
    mat3_tmul_vec(r.point[k].n, pair->shape[k]->rot, n);
    mat3_tmul_vec(r.point[k].x, pair->shape[k]->rot, arm);
    r.point[k].feature = feature[k];
    surface_retract(pair->shape[k], &r.point[k]);
  }
  to_world(&r);
  double least = INFINITY;
  for (int iteration = 0; iteration < REFINE_ITERATIONS; ++iteration) {
    double twist[3], offset[3];
    int same[2];
    const double error = residual(&r, twist, offset);
    if (error <= CANCELLED && !(error < 0.1 * least && error > 1e-15)) {
      take(&r, contact, same);
      contact->feature = closest_feature(feature[0], feature[1]);
      return 1;
    }
    least = fmin(least, error);
    newton_step(&r, twist, offset);
    to_world(&r);
  }
  return 0;
}

void closest_take(const convex_pair *pair, const convex_witness *witness, contact_point *contact,
                  int feature[2]) {
  contact->dist = witness->gap - pair->skin[0] - pair->skin[1];
  vec3_copy(contact->normal, witness->n);
  vec3_add(contact->pos, witness->x[0], witness->x[1]);
  vec3_axpy(contact->pos, pair->skin[0] - pair->skin[1], witness->n);
  vec3_scale(contact->pos, contact->pos, 0.5);
  vec3_add(contact->pos, contact->pos, pair->shape[0]->pos);
  for (int k = 0; k < 2; ++k) {
    double y[3], x[3];
    vec3_copy(x, witness->x[k]);
    if (k == 1) {
      vec3_sub(x, x, pair->d);
    }
    mat3_tmul_vec(y, pair->shape[k]->rot, x);
    feature[k] = surface_classify(pair->shape[k], y, pair->beside * shape_extent(pair->shape[k]));
  }
}
