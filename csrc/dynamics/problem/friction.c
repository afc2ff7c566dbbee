#include "dynamics/problem/friction.h"

#include <math.h>

void friction_rays(double *rays, int ray_count) {
  for (int j = 0; j < ray_count; ++j) {
    const double angle = 2.0 * acos(-1.0) * j / ray_count;
    rays[2 * j] = cos(angle);
    rays[2 * j + 1] = sin(angle);
  }
  if (ray_count == 2) { /* exactly opposite, along t1 */
    rays[0] = 1.0;
    rays[1] = rays[3] = 0.0;
    rays[2] = -1.0;
  }
}

static void add_row(friction_rows *out, double normal, int component, double weight) {
  const friction_row row = {normal, {weight, 0.0}, {component, component}};
  out->row[out->count++] = row;
}

/* Coefficient of component c of the motion: mu, mu, torsion, roll, roll. */
static double coefficient(const double *friction, int c) { return friction[c - 1]; }

static void add_opposite_rows(friction_rows *out, int component, double weight) {
  add_row(out, 1.0, component, weight);
  add_row(out, 1.0, component, -weight);
}

/* w_n >= |D w_rest|; components that cannot move are zero and are left out. Returns the last
 * component that remains. */
static int fill_cone(friction_rows *out, const double *friction, int dim, const int *present) {
  out->kind = QD_LORENTZ;
  out->log_count = 2;
  add_row(out, 1.0, 0, 0.0);
  int only = 0;
  for (int c = 1; c < dim; ++c) {
    if (present[c] && coefficient(friction, c) > 0.0) {
      add_row(out, 0.0, c, coefficient(friction, c));
      only = c;
    }
  }
  if (out->count == 1) {
    out->kind = QD_ORTHANT;
  }
  return only;
}

/* Writes a cone of two rows as two half planes. */
static void split_cone(friction_rows *out, const double *friction, int only) {
  if (out->count == 2) {
    out->kind = QD_ORTHANT;
    out->log_count = 1;
    out->count = 0;
    add_opposite_rows(out, only, coefficient(friction, only));
  }
}

/* (J_n + mu d_j' J_t) delta + phi >= 0, and two more rows per torsional or rolling direction
 * (Tracy and Manchester, equations 4 to 8). */
static void fill_pyramid(friction_rows *out, const double *friction, int dim, int ray_count,
                         const double *rays) {
  out->kind = QD_ORTHANT;
  for (int j = 0; j < ray_count; ++j) {
    const friction_row row = {
        1.0, {friction[0] * rays[2 * j], friction[0] * rays[2 * j + 1]}, {1, 2}};
    out->row[out->count++] = row;
  }
  for (int c = 3; c < dim; ++c) {
    add_opposite_rows(out, c, coefficient(friction, c));
  }
}

void friction_rows_fill(friction_rows *out, const double *friction, int dim,
                        const int present[MOTION_MAX], int friction_model, int ray_count,
                        const double *rays) {
  out->count = out->halves = out->flat = 0;
  out->log_count = 1;
  out->law = friction_model;
  if (dim == 1) {
    out->kind = QD_ORTHANT;
    add_row(out, 1.0, 0, 0.0);
  } else if (friction_model == QD_CONE) {
    split_cone(out, friction, fill_cone(out, friction, dim, present));
  } else {
    fill_pyramid(out, friction, dim, ray_count, rays);
  }
}

void friction_rows_fill_cone(friction_rows *out, const double *friction, int dim,
                             const int present[MOTION_MAX]) {
  if (dim == 1) {
    friction_rows_fill(out, friction, dim, present, QD_CONE, 0, NULL);
    return;
  }
  out->count = out->halves = out->flat = 0;
  out->law = QD_CONE;
  fill_cone(out, friction, dim, present);
}

void friction_rows_fill_halves(friction_rows *out, const double *friction, int dim,
                               const int present[MOTION_MAX]) {
  out->count = out->halves = out->flat = 0;
  out->law = QD_CONE;
  out->log_count = 2;
  for (int c = 1; c < dim; ++c) {
    if (!present[c] || !(coefficient(friction, c) > 0.0)) {
      ++out->flat;
      continue;
    }
    for (int half = 0; half < 2; ++half, ++out->halves) {
      add_row(out, 1.0, 0, 0.0);
      add_row(out, 0.0, c, coefficient(friction, c));
    }
  }
  out->kind = out->halves > 0 ? QD_LORENTZ : QD_ORTHANT;
  if (out->flat > 0) {
    add_row(out, 1.0, 0, 0.0);
  }
}

void friction_rows_fill_edges(friction_rows *out, const double *friction, int dim) {
  out->count = out->halves = out->flat = 0;
  out->law = QD_CONE;
  out->log_count = 1;
  out->kind = QD_ORTHANT;
  for (int c = 1; c < dim; ++c) {
    add_opposite_rows(out, c, coefficient(friction, c));
  }
}

void friction_row_slopes(double slope[2], int coefficient[2], const friction_rows *rows, int r,
                         int dim, int ray_count, const double *rays) {
  coefficient[0] = coefficient[1] = -1;
  slope[0] = slope[1] = 0.0;
  if (dim == 1) {
    return;
  }
  if (rows->law == QD_PYRAMID && r < ray_count) {
    coefficient[0] = coefficient[1] = 0;
    slope[0] = rays[2 * r];
    slope[1] = rays[2 * r + 1];
    return;
  }
  const int component = rows->row[r].component[0];
  if (component > 0) {
    const int pair_of_rows = rows->law == QD_PYRAMID || rows->kind == QD_ORTHANT;
    const int first = rows->law == QD_PYRAMID ? ray_count : 0;
    coefficient[0] = component - 1;
    slope[0] = pair_of_rows && (r - first) % 2 != 0 ? -1.0 : 1.0;
  }
}
