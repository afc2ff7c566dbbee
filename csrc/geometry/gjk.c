/* Gilbert, Johnson and Keerthi 1988: the point v of B - A closest to the origin, from simplices of
 * support points. The closest point of a simplex is found by testing all its faces that contain the
 * newest corner, at most 7 small systems. Newton's method (refine.c) adds the missing digits. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/convex.h"

enum { GJK_ITERATIONS = 64 };

typedef struct simplex {
  int count;
  double w[4][3];    /* points of B - A */
  double x[4][2][3]; /* the points of A and B behind them */
  double weight[4];
} simplex;

/* Weights of the point of the simplex's affine hull that is closest to the origin. With edges e_i =
 * w_i - w_0 of the n + 1 corners, solves the Gram system E'E t = -E'w_0 by elimination with pivots
 * on the diagonal. Returns 0 if the corners are affinely dependent. n is a constant at each
 * call. */
static inline __attribute__((always_inline)) int affine_weights(double *weight, const double *w[4],
                                                                int n) {
  double gram[3][4], edge[3][3];
  for (int i = 0; i < n; ++i) {
    vec3_sub(edge[i], w[i + 1], w[0]);
  }
  for (int i = 0; i < n; ++i) {
    for (int j = i; j < n; ++j) {
      gram[i][j] = vec3_dot(edge[i], edge[j]);
    }
    gram[i][n] = -vec3_dot(edge[i], w[0]);
  }
  for (int k = 0; k < n; ++k) {
    if (!(gram[k][k] > 1e-14 * vec3_dot(edge[k], edge[k]))) {
      return 0;
    }
    for (int i = k + 1; i < n; ++i) { /* only the upper triangle: the matrix is symmetric */
      const double factor = gram[k][i] / gram[k][k];
      for (int j = i; j <= n; ++j) {
        gram[i][j] -= factor * gram[k][j];
      }
    }
  }
  weight[0] = 1.0;
  for (int k = n - 1; k >= 0; --k) {
    double sum = gram[k][n];
    for (int j = k + 1; j < n; ++j) {
      sum -= gram[k][j] * weight[j + 1];
    }
    weight[k + 1] = sum / gram[k][k];
    weight[0] -= weight[k + 1];
  }
  return 1;
}

/* The face with the closest point found so far. */
typedef struct nearest_face {
  double square, weight[4], point[3];
  int corner[4], count;
} nearest_face;

/* Tests the face with these n + 1 corners. */
static inline __attribute__((always_inline)) void try_face(nearest_face *best, const simplex *s,
                                                           const int *corner, int n) {
  const double *w[4];
  double weight[4], point[3] = {0.0, 0.0, 0.0};
  for (int i = 0; i <= n; ++i) {
    w[i] = s->w[corner[i]];
  }
  if (!affine_weights(weight, w, n)) {
    return;
  }
  int inside = 1;
  for (int i = 0; i <= n; ++i) {
    inside &= weight[i] >= 0.0;
    vec3_axpy(point, weight[i], w[i]);
  }
  const double square = vec3_dot(point, point);
  if (inside && square < best->square) {
    best->square = square;
    best->count = n + 1;
    memcpy(best->weight, weight, (size_t)(n + 1) * sizeof(double));
    memcpy(best->corner, corner, (size_t)(n + 1) * sizeof(int));
    vec3_copy(best->point, point);
  }
}

/* Reduces the simplex to the face that contains its closest point v to the origin. In: v of the
 * simplex without its last, new corner; so only faces with this corner can be closer. */
static void simplex_reduce(simplex *s, double v[3]) {
  const int last = s->count - 1;
  if (last == 0) {
    s->weight[0] = 1.0;
    vec3_copy(v, s->w[0]);
    return;
  }
  nearest_face best = {.square = vec3_dot(v, v), .count = last, .corner = {0, 1, 2, 3}};
  vec3_copy(best.point, v);
  memcpy(best.weight, s->weight, (size_t)last * sizeof(double));
  try_face(&best, s, &last, 0);
  for (int i = 0; i < last; ++i) {
    try_face(&best, s, (const int[2]){i, last}, 1);
    for (int j = 0; j < i; ++j) {
      try_face(&best, s, (const int[3]){j, i, last}, 2);
    }
  }
  if (last == 3) {
    try_face(&best, s, (const int[4]){0, 1, 2, 3}, 3);
  }
  for (int i = 0; i < best.count; ++i) { /* corners ascend: none is overwritten unread */
    memcpy(s->w[i], s->w[best.corner[i]], sizeof s->w[0]);
    memcpy(s->x[i], s->x[best.corner[i]], sizeof s->x[0]);
    s->weight[i] = best.weight[i];
  }
  s->count = best.count;
  vec3_copy(v, best.point);
}

int gjk_closest(const convex_pair *pair, double tolerance, double range, convex_witness *out) {
  simplex s = {.count = 0};
  double v[3], best = -INFINITY;
  vec3_copy(v, pair->d);
  if (!(vec3_norm(v) > PIVOTED * pair->size)) {
    return 0;
  }
  for (int iteration = 0; iteration < GJK_ITERATIONS; ++iteration) {
    const double distance = vec3_norm(v);
    double n[3];
    vec3_scale(n, v, 1.0 / distance);
    const int last = s.count++;
    const double gap = convex_support(pair, n, s.x[last][0], s.x[last][1]);
    vec3_sub(s.w[last], s.x[last][1], s.x[last][0]);
    if (gap > best) { /* a larger lower bound */
      best = gap;
      out->gap = gap;
      vec3_copy(out->n, n);
      if (gap > range) {
        return 1;
      }
    }
    if (last > 0 && distance - gap <= tolerance * distance) {
      --s.count;
      break;
    }
    simplex_reduce(&s, v);
    if (s.count == 4 || !(vec3_norm(v) > PIVOTED * pair->size)) {
      return 0;
    }
    if (iteration > 0 && !(vec3_norm(v) < distance)) {
      break; /* no progress: rounding */
    }
  }
  for (int k = 0; k < 2; ++k) {
    vec3_set(out->x[k], 0.0, 0.0, 0.0);
    for (int i = 0; i < s.count; ++i) {
      vec3_axpy(out->x[k], s.weight[i], s.x[i][k]);
    }
  }
  return 1;
}
