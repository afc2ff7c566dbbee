/* Any two of capsule, box, cylinder, ellipsoid and mesh: closest points, and the manifold of a
 * face.
 *
 * Cores that overlap by a ten-thousandth of their length and less (needles) may end without Newton,
 * with the polytope's direction: the distance is then right to some 1e-10 of the lengths, the point
 * to 1e-5.
 *
 * Choices: of several equally short ways out of a penetration the one that the polytope meets
 * first. Parallel lines and faces: closest points anywhere in their overlap, and the manifold's
 * vertices at its ends. */
#include <math.h>

#include "base/vec3.h"
#include "geometry/convex.h"
#include "geometry/pairs/face_manifold.h"
#include "geometry/pairs/pairs.h"
#include "qdsim.h"

/* Coarse first: Newton mostly takes over from there. */
static const double GJK_TOLERANCE[] = {1e-4, 1e-8, 1e-12};
static const double EPA_TOLERANCE[] = {1e-6, 1e-9, 1e-12}; /* relative to the shapes */
enum { STAGES = 3, TRIED_FACES_MOST = 64 };
/* Cores are parted to this many depths. */
static const double PARTED = 1.5;
/* A refined depth may exceed the rough one by rounding only: else it is another, worse way out. */
static const double DEEPER = 1e-12;

/* Face i of those that are tried: its normal, from A into B. Returns 0 beyond the last one. Meshes
 * of many faces leave them to the polytope. */
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

/* The face of a shape against the other's support along its normal, the one of least overlap: exact
 * as it is. Returns the gap of the cores; -infinity without faces. */
static double face_closest(const convex_pair *pair, contact_point *contact, int feature[2]) {
  convex_witness witness, best;
  int owner = -1, face = 0;
  best.gap = -INFINITY;
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
  closest_take(pair, &best, contact, feature);
  feature[owner] = surface_face(shape, shape->type == QD_MESH ? face : face_towards(shape, along));
  return best.gap;
}

/* A better start for shallow overlaps of unequal shapes, where the polytope has facets of needles:
 * part the cores along the witness's n, find closest points, move back. Returns 0 if they still
 * overlap. */
static int parted_start(const convex_pair *pair, const convex_witness *from, convex_witness *out) {
  const double shift = PARTED * fmax(-from->gap, DEEPER * pair->size);
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

/* Straight lines on the shape: the axis of a capsule or cylinder, the edges of a box. Returns how
 * many. */
static int shape_lines(double lines[3][3], const placed_shape *shape) {
  const int first = shape->type == QD_BOX ? 0 : 2;
  const int count = shape->type == QD_ELLIPSOID || shape->type == QD_MESH ? 0 : 3 - first;
  for (int i = 0; i < count; ++i) {
    mat3_column(lines[i], shape->rot, first + i);
  }
  return count;
}

/* Sides of cylinders and capsules: the polytope needs many facets for them, and where lines are
 * parallel or meet it may end before it has seen the best. The ways out straight from an axis, and
 * along the common normal of two lines. Returns the gap of the cores; -infinity without lines. */
static double side_closest(const convex_pair *pair, convex_witness *best) {
  double lines[2][3][3], n[3];
  int count[2];
  best->gap = -INFINITY;
  for (int k = 0; k < 2; ++k) {
    count[k] = shape_lines(lines[k], pair->shape[k]);
    if (count[k] == 1) {
      vec3_copy(n, pair->d);
      vec3_axpy(n, -vec3_dot(pair->d, lines[k][0]), lines[k][0]);
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

/* Newton from a witness, which it may not fall short of. */
static int refine_overlap(const convex_pair *pair, const convex_witness *witness, double least,
                          contact_point *refined, int feature[2]) {
  convex_witness parted;
  return (closest_refine(pair, witness, refined, feature) && refined->dist >= least) ||
         (parted_start(pair, witness, &parted) && closest_refine(pair, &parted, refined, feature) &&
          refined->dist >= least);
}

/* Closest points of overlapping cores: a face's, a side's, or better ones. */
static void overlap_closest(const convex_pair *pair, contact_point *closest, int feature[2]) {
  convex_witness witness, side;
  contact_point refined;
  int refined_feature[2], found = 0;
  const double skin = pair->skin[0] + pair->skin[1];
  const double rounding = DEEPER * pair->size + pair->roughness;
  const double face_gap = face_closest(pair, closest, feature);
  const double side_gap = side_closest(pair, &side), known = fmax(face_gap, side_gap);
  witness.gap = -INFINITY;
  for (int stage = 0; stage < STAGES && !found; ++stage) {
    if (!epa_deepest(pair, EPA_TOLERANCE[stage] * pair->size, -known, &witness)) {
      witness.gap = -INFINITY;
      break;
    }
    found = refine_overlap(pair, &witness, fmax(witness.gap, known) - skin - rounding, &refined,
                           refined_feature);
  }
  if (!found && side_gap > face_gap && side_gap >= witness.gap) {
    witness = side;
    found = refine_overlap(pair, &side, side_gap - skin - rounding, &refined, refined_feature);
  }
  if (found) {
    if (refined.dist > face_gap - skin + 1e-2 * rounding) {
      *closest = refined;
      memcpy(feature, refined_feature, sizeof refined_feature);
    }
  } else if (witness.gap > face_gap) {
    closest_take(pair, &witness, closest, feature);
  }
}

/* Closest points; range: farther apart they need not be found. Returns 0 beyond it. */
static int convex_closest(const convex_pair *pair, double range, contact_point *closest,
                          int feature[2]) {
  convex_witness witness;
  const double skin = pair->skin[0] + pair->skin[1];
  int apart = 1;
  /* polyhedra of many features are better met on the right one */
  const int mesh = pair->shape[0]->type == QD_MESH || pair->shape[1]->type == QD_MESH;
  for (int stage = mesh; stage < STAGES && apart; ++stage) {
    apart = gjk_closest(pair, GJK_TOLERANCE[stage], range + skin, &witness);
    if (apart && witness.gap - skin > range) {
      return 0;
    }
    if (apart && closest_refine(pair, &witness, closest, feature) &&
        closest->dist >= witness.gap - skin - DEEPER * pair->size - pair->roughness) {
      return 1;
    }
  }
  /* or hardly apart; every gap is a lower bound, so the larger is the better one */
  overlap_closest(pair, closest, feature);
  if (apart && witness.gap - skin > closest->dist) {
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
  return closest_and_manifold(a, b, &closest, feature[0], feature[1], covered_tolerance(a, b),
                              margin, out);
}
