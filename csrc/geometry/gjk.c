/* Gilbert, Johnson, Keerthi 1988: the point v of B - A closest to the origin, by simplices of
 * support points. The closest point of a simplex is found by trying all its faces: 15 small systems
 * at most, no history, no cycling. What it lacks in digits Newton adds (refine.c). */
#include <math.h>

#include "base/vec3.h"
#include "geometry/convex.h"

enum { GJK_ITERATIONS = 64 };
/* Cores closer than this, relative to the shapes, count as overlapping: v has no direction left. */
static const double APART = 1e-11;

typedef struct simplex {
  int count;
  double w[4][3];    /* points of B - A */
  double x[4][2][3]; /* their points of A and B */
  double weight[4];
} simplex;

/* Weights of the point of the affine hull of up to 4 points closest to the origin: with edges e_i =
 * w_i - w_0, E'E t = -E'w_0, by elimination with the diagonal as pivots. Returns 0 if the points
 * are dependent. */
static int affine_weights(double *weight, const double (*w)[3], const int *index, int count) {
  double gram[3][4], edge[3][3];
  const int n = count - 1;
  for (int i = 0; i < n; ++i) {
    vec3_sub(edge[i], w[index[i + 1]], w[index[0]]);
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      gram[i][j] = vec3_dot(edge[i], edge[j]);
    }
    gram[i][n] = -vec3_dot(edge[i], w[index[0]]);
  }
  for (int k = 0; k < n; ++k) {
    if (!(gram[k][k] > 1e-14 * vec3_dot(edge[k], edge[k]))) {
      return 0;
    }
    for (int i = k + 1; i < n; ++i) {
      const double factor = gram[i][k] / gram[k][k];
      for (int j = k; j <= n; ++j) {
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

/* Keeps the face of the simplex that holds its closest point v to the origin. */
static void simplex_reduce(simplex *s, double v[3]) {
  double best = INFINITY, best_weight[4] = {0.0};
  int best_set = 1;
  for (int set = 1; set < 1 << s->count; ++set) {
    int index[4], count = 0, inside = 1;
    double weight[4], point[3] = {0.0, 0.0, 0.0};
    for (int i = 0; i < s->count; ++i) {
      if (set >> i & 1) {
        index[count++] = i;
      }
    }
    if (!affine_weights(weight, (const double (*)[3])s->w, index, count)) {
      continue;
    }
    for (int i = 0; i < count; ++i) {
      inside &= weight[i] >= 0.0;
      vec3_axpy(point, weight[i], s->w[index[i]]);
    }
    const double square = vec3_dot(point, point);
    if (inside && square < best) {
      best = square;
      best_set = set;
      memcpy(best_weight, weight, sizeof best_weight);
      vec3_copy(v, point);
    }
  }
  int kept = 0;
  for (int i = 0; i < s->count; ++i) {
    if (best_set >> i & 1) {
      memcpy(s->w[kept], s->w[i], sizeof s->w[0]);
      memcpy(s->x[kept], s->x[i], sizeof s->x[0]);
      s->weight[kept] = best_weight[kept];
      ++kept;
    }
  }
  s->count = kept;
}

int gjk_closest(const convex_pair *pair, double tolerance, double range, convex_witness *out) {
  simplex s = {.count = 0};
  double v[3], best = -INFINITY;
  vec3_copy(v, pair->d);
  if (!(vec3_norm(v) > APART * pair->size)) {
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
    if (s.count == 4 || !(vec3_norm(v) > APART * pair->size)) {
      return 0;
    }
    if (iteration > 0 && !(vec3_norm(v) < distance)) {
      break; /* rounding */
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
