/* Derivatives of the closest points of two convex shapes.
 *
 * n is the outward normal of A, -n that of B, and x_B = x_A + gap n. In penetration gap is
 * negative; then the same conditions say that moving B by -gap n is locally the shortest way to
 * separate the shapes. A is fixed, B moves with the twist (omega, v) about pos. Let nu = dn, m the
 * material motion of B at x_B, and w = omega x n the material change of B's normal. Tangentially,
 *
 *   dx_A     = M_A a,    nu     = T_A a       A's feature allows these pairs (M: move, T: turn)
 *   dx_B - m = -M_B b,   nu - w = T_B b       B's feature, with its own normal -n
 *   dx_B = dx_A + gap nu
 *
 *   so   T_A a - T_B b = w,   (M_A + gap T_A) a + M_B b = m:  four equations for a, b.
 *   Along n: d gap = n.m = n.v.
 *
 * Newton's method on the closest-point conditions uses the same matrix, with residuals on the
 * right. The matrix is singular if faces or lines are parallel: undetermined components of a and b
 * are then zero. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/surface.h"

/* The largest entry above PIVOTED among unused rows and columns; *row is -1 if there is none. */
static void find_pivot(const double matrix[16], const int row_used[4], const int column_used[4],
                       int *row, int *column) {
  double largest = PIVOTED;
  *row = *column = -1;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      if (!row_used[i] && !column_used[j] && fabs(matrix[4 * i + j]) > largest) {
        largest = fabs(matrix[4 * i + j]);
        *row = i;
        *column = j;
      }
    }
  }
}

/* inverse = matrix^-1 by Gauss-Jordan elimination with full pivoting; components without a pivot
 * are zero. */
static void invert(double inverse[16], double matrix[16]) {
  int column_of_row[4] = {-1, -1, -1, -1}, row_used[4] = {0}, column_used[4] = {0};
  double right[16] = {0.0};
  for (int i = 0; i < 4; ++i) {
    right[5 * i] = 1.0;
  }
  for (int step = 0; step < 4; ++step) {
    int row, column;
    find_pivot(matrix, row_used, column_used, &row, &column);
    if (row < 0) {
      break;
    }
    row_used[row] = column_used[column] = 1;
    column_of_row[row] = column;
    const double pivot = 1.0 / matrix[4 * row + column];
    for (int j = 0; j < 4; ++j) {
      matrix[4 * row + j] *= pivot;
      right[4 * row + j] *= pivot;
    }
    for (int i = 0; i < 4; ++i) {
      const double factor = matrix[4 * i + column];
      if (i != row && factor != 0.0) {
        for (int j = 0; j < 4; ++j) {
          matrix[4 * i + j] -= factor * matrix[4 * row + j];
          right[4 * i + j] -= factor * right[4 * row + j];
        }
      }
    }
  }
  memset(inverse, 0, 16 * sizeof(double));
  for (int i = 0; i < 4; ++i) {
    if (column_of_row[i] >= 0) {
      memcpy(inverse + 4 * column_of_row[i], right + 4 * i, 4 * sizeof(double));
    }
  }
}

void closest_system_compute(closest_system *out, const local_surface *a, const local_surface *b,
                            const double n[3], double gap) {
  double matrix[16];
  vec3_reject(out->tangent[0], a->axis[0], n);
  vec3_normalize(out->tangent[0]);
  vec3_cross(out->tangent[1], n, out->tangent[0]);
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < 2; ++i) {
      const double from_a = vec3_dot(out->tangent[k], a->axis[i]);
      const double from_b = vec3_dot(out->tangent[k], b->axis[i]);
      matrix[4 * k + i] = from_a * a->turn[i];
      matrix[4 * k + 2 + i] = -from_b * b->turn[i];
      matrix[4 * (k + 2) + i] = from_a * (a->move[i] + gap * a->turn[i]);
      matrix[4 * (k + 2) + 2 + i] = from_b * b->move[i];
    }
  }
  invert(out->inverse, matrix);
}

void closest_derivative(const placed_shape *a, const placed_shape *b, int feature_a, int feature_b,
                        const contact_point *contact, contact_point_derivative *out) {
  const double *n = contact->normal, gap = contact->dist;
  const double length = closest_length(a, b);
  double x[3], minus[3];
  surface_point point;
  local_surface surface_a, surface_b;
  closest_system system;
  vec3_copy(x, contact->pos);
  vec3_axpy(x, -0.5 * gap, n);
  surface_point_place(&point, a, x, n, feature_a);
  surface_compute(&surface_a, a, &point, length);
  vec3_axpy(x, gap, n);
  vec3_scale(minus, n, -1.0);
  surface_point_place(&point, b, x, minus, feature_b);
  surface_compute(&surface_b, b, &point, length);
  closest_system_compute(&system, &surface_a, &surface_b, n, gap / length);
  for (int j = 0; j < 6; ++j) {
    double unit[3] = {0.0, 0.0, 0.0}, w[3] = {0.0, 0.0, 0.0}, m[3];
    unit[j % 3] = 1.0;
    if (j < 3) {
      vec3_cross(w, unit, n);
      vec3_scale(m, w, 0.5 * gap);
    } else {
      vec3_copy(m, unit);
    }
    const double right[4] = {vec3_dot(system.tangent[0], w), vec3_dot(system.tangent[1], w),
                             vec3_dot(system.tangent[0], m) / length,
                             vec3_dot(system.tangent[1], m) / length};
    double move[3] = {0.0, 0.0, 0.0}, turn[3] = {0.0, 0.0, 0.0};
    for (int i = 0; i < 2; ++i) {
      double step = 0.0;
      for (int k = 0; k < 4; ++k) {
        step += system.inverse[4 * i + k] * right[k];
      }
      vec3_axpy(move, step * surface_a.move[i] * length, surface_a.axis[i]);
      vec3_axpy(turn, step * surface_a.turn[i], surface_a.axis[i]);
    }
    out->dist[j] = j < 3 ? 0.0 : n[j - 3];
    for (int i = 0; i < 3; ++i) {
      out->normal[6 * i + j] = turn[i];
      out->pos[6 * i + j] = move[i] + 0.5 * gap * turn[i] + 0.5 * n[i] * out->dist[j];
    }
  }
}
