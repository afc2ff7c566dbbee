/* Closest points of two convex shapes in three steps: an approximate normal from support points
 * (GJK if the cores are separated, EPA if they overlap), Newton's method on the closest-point
 * conditions down to rounding, and an independent certificate. */
#ifndef QD_GEOMETRY_CONVEX_H
#define QD_GEOMETRY_CONVEX_H

#include "geometry/surface.h"

/* Two shapes and their cores. A core is the shape without its round skin: a capsule's core is its
 * axis, its skin is its radius. Positions are relative to the centre of A. */
typedef struct convex_pair {
  const placed_shape *shape[2];
  double d[3];      /* from A's centre to B's */
  double skin[2];   /* thickness of the round skins */
  double size;      /* sum of the shapes' extents */
  double roughness; /* distance that the features of the shapes leave unresolved (shape_roughness),
                       summed */
  double beside;    /* relative: a start point this close to a bound is put on it */
} convex_pair;

/* Points x[0] of A and x[1] of B (without skin) and a unit normal n from A into B. gap is the
 * separation of the cores along n; for any n it is a lower bound of their signed distance. */
typedef struct convex_witness {
  double n[3];
  double x[2][3];
  double gap;
} convex_witness;

void convex_pair_init(convex_pair *out, const placed_shape *a, const placed_shape *b);

/* support.c: support points of the cores along n (A) and -n (B); returns the gap along n. */
double convex_support(const convex_pair *pair, const double n[3], double x_a[3], double x_b[3]);

/* gjk.c: closest points of the cores to `tolerance`, relative to the distance. Returns 0 if the
 * cores overlap or almost touch; then the witness is invalid. If the gap exceeds `range`, it is
 * only a lower bound and the witness has no points. */
int gjk_closest(const convex_pair *pair, double tolerance, double range, convex_witness *out);

enum { EPA_VERTICES = 256, EPA_FACES = 2 * EPA_VERTICES };

typedef struct facet {
  int corner[3]; /* counterclockwise seen from outside */
  double m[3], offset;
} facet;

/* A polytope inside B - A. Each vertex w is the difference of points x of A and B. */
typedef struct polytope {
  int vertex_count, face_count;
  int whole; /* 0: rounding stopped the expansion */
  double w[EPA_VERTICES][3];
  double x[EPA_VERTICES][2][3];
  facet face[EPA_FACES];
} polytope;

/* epa.c: direction of least overlap of the cores, to `tolerance` (a length). Also for cores that
 * are separated by rounding only. Returns 0 if no direction has an overlap below `depth`. */
int epa_deepest(polytope *p, const convex_pair *pair, double tolerance, double depth,
                convex_witness *out);
/* Expands the polytope where its facets deviate from n, until a direction with an overlap below
 * `depth` is found. Returns 0 if there is none, or if the polytope is full. */
int epa_other(polytope *p, const convex_pair *pair, const double n[3], double depth,
              convex_witness *out);

/* refine.c: Newton's method on the closest-point conditions of the shapes with their skins. Returns
 * 1 if the conditions hold to rounding and n attains the gap; then *contact and the features are
 * final. */
int closest_refine(const convex_pair *pair, const convex_witness *start, contact_point *contact,
                   int feature[2]);
/* Newton's method on these features, without further checks; `start` holds points on the surfaces.
 * Returns 1 if the conditions hold to rounding. */
int closest_on_features(const convex_pair *pair, const convex_witness *start, const int feature[2],
                        contact_point *contact);
/* Converts a witness to a contact, without refinement. */
void closest_take(const convex_pair *pair, const convex_witness *witness, contact_point *contact,
                  int feature[2]);

#endif
