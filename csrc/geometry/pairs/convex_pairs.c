/* Pairs of capsule, box, cylinder, ellipsoid and mesh: closest points, and the manifold of a face.
 *
 * If cores (of needles) overlap by less than about 1e-4 of their length, Newton's method may fail;
 * the direction of the polytope is then accurate to some 1e-10 of the lengths in distance, and to
 * 1e-5 in position.
 *
 * Choices: among equally short separating directions (to rounding) the one that the polytope finds
 * first. Parallel lines and faces: closest points anywhere in their overlap, and the vertices of
 * the manifold at its ends. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/convex.h"
#include "geometry/pairs/face_manifold.h"
#include "geometry/pairs/pairs.h"
#include "qdsim.h"

/* Relative tolerances. Coarse first: Newton's method usually continues from there. */
static const double GJK_TOLERANCE[] = {1e-4, 1e-8, 1e-12};
static const double EPA_TOLERANCE[] = {1e-6, 1e-9, 1e-12}; /* relative to the shapes */
enum { STAGES = 3, TRIED_FACES_MOST = 64 };
/* To find a start, cores are moved apart by this multiple of their depth, */
static const double PARTED = 1.5;
/* or to this gap, relative to the shapes. */
static const double WELL_PARTED = 0.1;
/* Corners of a mesh's polygon deviate from its plane by the roughness, which tilts its triangles by
 * roughness over width. Across a long polygon this tilt amounts to up to this multiple of the
 * roughness. A direction that is better by less counts as the polygon's, whose contact has a
 * derivative. */
static const double SLOPE = 8.0;
/* Share of the overlap: in the refined classification, points this close to a bound are on it. */
static const double FINE = 1e-2;
enum { OTHERS_MOST = 4 };

/* Normal, from A into B, of face i of shape k to be tested. Returns 0 after the last. Faces of
 * large meshes are left to the polytope. */
static int tried_face(double n[3], const convex_pair *pair, int k, int i) {
  const placed_shape *shape = pair->shape[k];
  if (shape->type == QD_MESH) {
    const int count = shape->mesh->polygon_count;
    if (count > TRIED_FACES_MOST || i >= count) {
      return 0;
    }
    mat3_mul_vec(n, shape->rot, shape->mesh->normal + 3 * i);
    vec3_scale(n, n, k == 0 ? 1.0 : -1.0);
    return 1;
  }
  const int first = shape->type == QD_CYLINDER ? 2 : 0;
  if ((shape->type != QD_CYLINDER && shape->type != QD_BOX) || first + i > 2) {
    return 0;
  }
  mat3_column(n, shape->rot, first + i);
  if (vec3_dot(n, pair->d) < 0.0) {
    vec3_scale(n, n, -1.0);
  }
  return 1;
}

/* 1 if x, in the plane of a face of shape k, is inside the face, to `beside` of its size. */
static int is_in_face(const convex_pair *pair, int k, const double x[3], int feature,
                      double beside) {
  const placed_shape *shape = pair->shape[k];
  surface_point point = {.feature = feature};
  double arm[3];
  vec3_copy(arm, x);
  if (k == 1) {
    vec3_sub(arm, arm, pair->d);
  }
  mat3_tmul_vec(point.x, shape->rot, arm);
  surface_retract(shape, &point);
  vec3_scale(point.x, point.x, 1.0 - beside);
  return !surface_cross(shape, &point);
}

/* The supports along the witness's normal may be lines and faces; then the two points found need
 * not be opposite each other. Replaces them by the closest points of the cores moved apart along
 * the normal. */
static void move_opposite(const convex_pair *pair, convex_witness *witness) {
  const double shift = WELL_PARTED * pair->size - witness->gap;
  convex_pair parted = *pair;
  convex_witness found;
  vec3_axpy(parted.d, shift, witness->n);
  if (gjk_closest(&parted, GJK_TOLERANCE[STAGES - 1], INFINITY, &found)) {
    vec3_copy(witness->x[0], found.x[0]);
    vec3_copy(witness->x[1], found.x[1]);
    vec3_axpy(witness->x[1], -shift, witness->n);
  }
}

static int is_opposite(const convex_pair *pair, const convex_witness *witness) {
  double across[3];
  vec3_sub(across, witness->x[1], witness->x[0]);
  vec3_axpy(across, -witness->gap, witness->n);
  return vec3_norm(across) <= pair->beside * pair->size;
}

/* The face with the least overlap, and the other shape's support point along its normal. This is
 * the exact contact if the point is inside the face (*in_face). Returns the gap of the cores;
 * -infinity if there are no faces. */
static double face_closest(const convex_pair *pair, contact_point *contact, int feature[2],
                           int *in_face) {
  convex_witness witness, best;
  int owner = -1, face = 0;
  best.gap = -INFINITY;
  *in_face = 0;
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; tried_face(witness.n, pair, k, i); ++i) {
      witness.gap = convex_support(pair, witness.n, witness.x[0], witness.x[1]);
      if (witness.gap > best.gap) {
        best = witness;
        owner = k;
        face = i;
      }
    }
  }
  if (owner < 0) {
    return best.gap;
  }
  double along[3];
  const placed_shape *shape = pair->shape[owner];
  vec3_scale(along, best.n, owner == 0 ? 1.0 : -1.0);
  vec3_copy(best.x[owner], best.x[1 - owner]);
  vec3_axpy(best.x[owner], (owner == 0 ? -1.0 : 1.0) * best.gap, best.n);
  face = surface_face(shape, shape->type == QD_MESH ? face : face_towards(shape, along));
  *in_face = is_in_face(pair, owner, best.x[owner], face, NEGLIGIBLE);
  if (!*in_face && !is_in_face(pair, owner, best.x[owner], face, pair->beside)) {
    move_opposite(pair, &best);
  }
  closest_take(pair, &best, contact, feature);
  feature[owner] = face;
  return best.gap;
}

/* A better start for shallow overlaps of unequal shapes, for which facets of the polytope are
 * needles: moves the cores apart along the witness's n, finds closest points, moves back. Returns 0
 * if they still overlap. */
static int parted_start(const convex_pair *pair, const convex_witness *from, convex_witness *out) {
  const double shift = PARTED * fmax(-from->gap, NEGLIGIBLE * pair->size);
  double x_a[3], x_b[3];
  convex_pair parted = *pair;
  vec3_axpy(parted.d, shift, from->n);
  if (!gjk_closest(&parted, GJK_TOLERANCE[1], INFINITY, out)) {
    return 0;
  }
  vec3_axpy(out->x[1], -shift, from->n);
  out->gap = convex_support(pair, out->n, x_a, x_b);
  return 1;
}

static void keep_better(const convex_pair *pair, const double n[3], convex_witness *best) {
  convex_witness witness;
  vec3_copy(witness.n, n);
  if (!(vec3_normalize(witness.n) > 0.0)) {
    return;
  }
  vec3_scale(witness.n, witness.n, vec3_dot(n, pair->d) < 0.0 ? -1.0 : 1.0);
  witness.gap = convex_support(pair, witness.n, witness.x[0], witness.x[1]);
  if (witness.gap > best->gap) {
    *best = witness;
  }
}

/* Directions of straight lines on the shape: the axis of a capsule or cylinder, the edges of a box.
 * Returns their number. */
static int shape_lines(double lines[3][3], const placed_shape *shape) {
  const int first = shape->type == QD_BOX ? 0 : 2;
  const int count = shape->type == QD_ELLIPSOID || shape->type == QD_MESH ? 0 : 3 - first;
  for (int i = 0; i < count; ++i) {
    mat3_column(lines[i], shape->rot, first + i);
  }
  return count;
}

/* Separating directions for the sides of cylinders and capsules: perpendicular to one axis, and
 * along the common normal of two lines. The polytope needs many facets for these, and for parallel
 * or intersecting lines it may stop before the best direction. Returns the gap of the cores;
 * -infinity if there are no lines. */
static double side_closest(const convex_pair *pair, convex_witness *best) {
  double lines[2][3][3], n[3];
  int count[2];
  best->gap = -INFINITY;
  for (int k = 0; k < 2; ++k) {
    count[k] = shape_lines(lines[k], pair->shape[k]);
    if (count[k] == 1) {
      vec3_reject(n, pair->d, lines[k][0]);
      keep_better(pair, n, best);
    }
  }
  for (int i = 0; i < count[0]; ++i) {
    for (int j = 0; j < count[1]; ++j) {
      vec3_cross(n, lines[0][i], lines[1][j]);
      keep_better(pair, n, best);
    }
  }
  return best->gap;
}

/* Newton's method from a witness; returns 1 if the distance is at least `least`. The last attempt
 * resolves features whose distance is smaller than the overlap. */
static int refine_overlap(const convex_pair *pair, const convex_witness *witness, double least,
                          contact_point *refined, int feature[2]) {
  convex_witness parted;
  convex_pair fine = *pair;
  fine.beside = fmin(pair->beside, FINE * fmax(-witness->gap / pair->size, NEGLIGIBLE));
  return (closest_refine(pair, witness, refined, feature) && refined->dist >= least) ||
         (parted_start(pair, witness, &parted) && closest_refine(pair, &parted, refined, feature) &&
          refined->dist >= least) ||
         (fine.beside < pair->beside && closest_refine(&fine, witness, refined, feature) &&
          refined->dist >= least);
}

/* The polytope stops with an error within which another direction may be shorter. Of several almost
 * equally short ones takes the shortest, so that rounding does not decide. Returns 0 if Newton's
 * method fails on a shorter one. */
static int take_shortest(const convex_pair *pair, polytope *p, double rounding,
                         contact_point *refined, int feature[2]) {
  const double skin = pair->skin[0] + pair->skin[1];
  double missed = -INFINITY;
  for (int i = 0; i < OTHERS_MOST; ++i) {
    const double depth = -(refined->dist + skin) - rounding;
    convex_witness witness;
    contact_point other;
    int other_feature[2];
    if (!epa_other(p, pair, refined->normal, depth, &witness)) {
      break;
    }
    if (refine_overlap(pair, &witness, witness.gap - skin - rounding, &other, other_feature)) {
      *refined = other;
      memcpy(feature, other_feature, sizeof other_feature);
    } else {
      missed = fmax(missed, witness.gap);
    }
  }
  return missed - skin <= refined->dist + rounding;
}

/* Closest points of overlapping cores: the best of a face, a side and the polytope. */
static void overlap_closest(const convex_pair *pair, contact_point *closest, int feature[2]) {
  polytope p;
  convex_witness witness, side;
  contact_point refined;
  int refined_feature[2], found = 0, in_face;
  const double skin = pair->skin[0] + pair->skin[1];
  const double rough = SLOPE * pair->roughness, rounding = NEGLIGIBLE * pair->size + rough;
  const double face_gap = face_closest(pair, closest, feature, &in_face);
  const double side_gap = side_closest(pair, &side), known = fmax(face_gap, side_gap);
  witness.gap = -INFINITY;
  for (int stage = 0; stage < STAGES && !found; ++stage) {
    if (!epa_deepest(&p, pair, EPA_TOLERANCE[stage] * pair->size, -known, &witness)) {
      witness.gap = -INFINITY;
      break;
    }
    found = refine_overlap(pair, &witness, fmax(witness.gap, known) - skin - rounding, &refined,
                           refined_feature) &&
            take_shortest(pair, &p, rounding, &refined, refined_feature);
  }
  if (!found && side_gap > face_gap && side_gap >= witness.gap) {
    witness = side;
    found = refine_overlap(pair, &side, side_gap - skin - rounding, &refined, refined_feature);
  }
  if (found) {
    /* beside the edge of a face, distances agree to second order */
    const double better = in_face ? 1e-2 * NEGLIGIBLE * pair->size + rough : -rounding;
    if (refined.dist > face_gap - skin + better) {
      *closest = refined;
      memcpy(feature, refined_feature, sizeof refined_feature);
    }
  } else if (witness.gap > face_gap + rough) {
    if (!is_opposite(pair, &witness)) {
      move_opposite(pair, &witness);
    }
    closest_take(pair, &witness, closest, feature);
  }
}

/* Closest points; distances beyond `range` are not needed: then returns 0. */
static int convex_closest(const convex_pair *pair, double range, contact_point *closest,
                          int feature[2]) {
  convex_witness witness;
  const double skin = pair->skin[0] + pair->skin[1], rough = SLOPE * pair->roughness;
  int apart = 1;
  /* polyhedra with many features need a start on the right one */
  const int mesh = pair->shape[0]->type == QD_MESH || pair->shape[1]->type == QD_MESH;
  for (int stage = mesh; stage < STAGES && apart; ++stage) {
    apart = gjk_closest(pair, GJK_TOLERANCE[stage], range + skin, &witness);
    if (apart && witness.gap - skin > range) {
      return 0;
    }
    if (apart && closest_refine(pair, &witness, closest, feature) &&
        closest->dist >= witness.gap - skin - NEGLIGIBLE * pair->size - rough) {
      return 1;
    }
  }
  /* overlapping or almost touching; each gap is a lower bound, so the larger is better */
  overlap_closest(pair, closest, feature);
  if (apart && witness.gap - skin > closest->dist + rough) {
    closest_take(pair, &witness, closest, feature);
  }
  return 1;
}

int convex_convex_collide(const placed_shape *a, const placed_shape *b, double margin,
                          contact_point *out) {
  convex_pair pair;
  contact_point closest;
  int feature[2];
  convex_pair_init(&pair, a, b);
  if (!convex_closest(&pair, margin, &closest, feature)) {
    return 0;
  }
  return closest_and_manifold(a, b, &closest, feature[0], feature[1], margin, out);
}
