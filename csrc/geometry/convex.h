/* Closest points of any two convex shapes, in three steps: a rough normal from support points (GJK
 * if the cores are apart, EPA's growing polytope if not), the closest-point conditions solved to
 * rounding by Newton's method, and an independent certificate. Floor: geometry. */
#ifndef QD_GEOMETRY_CONVEX_H
#define QD_GEOMETRY_CONVEX_H

#include "geometry/surface.h"

/* Two shapes and their cores: a capsule's core is its axis, with its radius as skin. Positions are
 * relative to the centre of A. */
typedef struct convex_pair {
  const placed_shape *shape[2];
  double d[3];      /* from A's centre to B's */
  double skin[2];   /* of the cores */
  double size;      /* sum of the shapes' extents */
  double roughness; /* and of what their features leave open */
  double beside;    /* relative to the shapes: a point this close to a bound starts on it */
} convex_pair;

/* Points x[0] of A and x[1] of B (without skin), unit normal n from A into B. gap is the separation
 * of the cores along n: for any n a lower bound of their signed distance. */
typedef struct convex_witness {
  double n[3];
  double x[2][3];
  double gap;
} convex_witness;

void convex_pair_init(convex_pair *out, const placed_shape *a, const placed_shape *b);

/* support.c: points of the cores farthest along n (A) and against it (B); returns the gap. */
double convex_support(const convex_pair *pair, const double n[3], double x_a[3], double x_b[3]);

/* gjk.c: closest points of the cores, to tolerance (relative to the distance). Returns 0 if they
 * overlap or almost touch; the witness is then invalid. A gap beyond range is only a bound, without
 * points. */
int gjk_closest(const convex_pair *pair, double tolerance, double range, convex_witness *out);

enum { EPA_VERTICES = 256, EPA_FACES = 2 * EPA_VERTICES };

typedef struct facet {
  int corner[3]; /* counterclockwise seen from outside */
  double m[3], offset;
} facet;

/* A polytope inside B - A, with the points of A and B whose difference is each vertex. */
typedef struct polytope {
  int vertex_count, face_count;
  int whole; /* 0: it stopped growing because of rounding */
  double w[EPA_VERTICES][3];
  double x[EPA_VERTICES][2][3];
  facet face[EPA_FACES];
} polytope;

/* epa.c: the direction of least overlap of the cores, to tolerance (a length). Also for cores that
 * are apart by rounding. Returns 0 if no direction can be better than the given depth. */
int epa_deepest(polytope *p, const convex_pair *pair, double tolerance, double depth,
                convex_witness *out);
/* Grows it further where its facets deviate from n, until one shows a direction with less than this
 * depth. Returns 0 if there is none, or no memory left. */
int epa_other(polytope *p, const convex_pair *pair, const double n[3], double depth,
              convex_witness *out);

/* refine.c: Newton's method on the closest-point conditions of the shapes with their skins. Returns
 * 1 if they hold to rounding and n attains the gap; then *contact and the features are final. */
int closest_refine(const convex_pair *pair, const convex_witness *start, contact_point *contact,
                   int feature[2]);
/* Newton's method on these features, without further checks; start has points of the surfaces.
 * Returns 1 if the conditions hold to rounding. */
int closest_on_features(const convex_pair *pair, const convex_witness *start, const int feature[2],
                        contact_point *contact);
/* The contact of a witness as it is. */
void closest_take(const convex_pair *pair, const convex_witness *witness, contact_point *contact,
                  int feature[2]);

#endif
