/* Derivatives of contacts with respect to the sizes of the shapes, with bodies at rest.
 *
 * Let c be the motion of a surface point per unit of a size, with the point fixed in its feature
 * and its normal fixed: n for the radius of a sphere, the motion of the corner for a vertex.
 * Closest points then satisfy the system of closest.c without rotation (w = 0) and with m = c_B -
 * c_A, and
 *
 *   d dist = n.m,   d n = T_A a,   d pos = c_A + M_A a + (gap d n + n d dist) / 2. */
#include <math.h>

#include "base/vec3.h"
#include "geometry/surface.h"
#include "qdsim.h"

/* Sizes of a cylinder: radius, half length. In: c = 0. */
static void cylinder_motion(double c[3], const surface_point *point, int k) {
  const int feature = point->feature;
  if (k == 0 && feature == CYLINDER_SIDE) {
    vec3_copy(c, point->n);
  } else if (k == 0 && feature >= CYLINDER_LOWER_RIM) {
    vec3_set(c, point->x[0], point->x[1], 0.0);
    vec3_normalize(c);
  } else if (k == 1 && feature != CYLINDER_SIDE) {
    c[2] = feature == CYLINDER_LOWER_CAP || feature == CYLINDER_LOWER_RIM ? -1.0 : 1.0;
  }
}

/* c for size k, in the frame of the point: the shape's, or the world's for a sphere. */
static void size_motion(double c[3], const placed_shape *shape, const surface_point *point, int k) {
  static const int place[3] = {1, 3, 9};
  const double *x = point->x, *n = point->n, *size = shape->size;
  const int feature = point->feature;
  vec3_set(c, 0.0, 0.0, 0.0);
  switch (shape->type) {
  case QD_SPHERE:
    vec3_scale(c, n, k == 0 ? 1.0 : 0.0);
    break;
  case QD_CAPSULE:
    if (k == 0) {
      vec3_copy(c, n);
    } else if (k == 1) {
      c[2] = feature - 1;
    }
    break;
  case QD_BOX:
    c[k] = feature / place[k] % 3 - 1;
    break;
  case QD_CYLINDER:
    cylinder_motion(c, point, k);
    break;
  case QD_ELLIPSOID: {
    /* x = D D n / h, h = |D n| */
    const double Dn[3] = {size[0] * n[0], size[1] * n[1], size[2] * n[2]};
    const double h = vec3_norm(Dn);
    vec3_scale(c, x, -Dn[k] * n[k] / (h * h));
    c[k] += 2.0 * Dn[k] / h;
    break;
  }
  default:
    break;
  }
}

/* c for the three sizes, in the world, and the surface around the point. */
static void surface_sizes(double c[3][3], local_surface *surface, const placed_shape *shape,
                          const double x[3], const double n[3], int feature, double length) {
  surface_point point;
  surface_point_place(&point, shape, x, n, feature);
  surface_compute(surface, shape, &point, length);
  for (int k = 0; k < 3; ++k) {
    double local[3];
    size_motion(local, shape, &point, k);
    if (shape->type == QD_SPHERE) {
      vec3_copy(c[k], local);
    } else {
      mat3_mul_vec(c[k], shape->rot, local);
    }
  }
}

void closest_size_derivative(const placed_shape *a, const placed_shape *b, int feature_a,
                             int feature_b, const contact_point *contact,
                             contact_point_derivative *out) {
  const double *n = contact->normal, gap = contact->dist;
  const double length = closest_length(a, b);
  double x[3], minus[3], c[6][3];
  local_surface surface_a, surface_b;
  closest_system system;
  vec3_copy(x, contact->pos);
  vec3_axpy(x, -0.5 * gap, n);
  surface_sizes(c, &surface_a, a, x, n, feature_a, length);
  vec3_axpy(x, gap, n);
  vec3_scale(minus, n, -1.0);
  surface_sizes(c + 3, &surface_b, b, x, minus, feature_b, length);
  closest_system_compute(&system, &surface_a, &surface_b, n, gap / length);
  for (int j = 0; j < 6; ++j) {
    double m[3], move[3] = {0.0, 0.0, 0.0}, turn[3] = {0.0, 0.0, 0.0};
    vec3_scale(m, c[j], j < 3 ? -1.0 : 1.0);
    if (j < 3) {
      vec3_copy(move, c[j]);
    }
    for (int i = 0; i < 2; ++i) {
      const double step = (system.inverse[4 * i + 2] * vec3_dot(system.tangent[0], m) +
                           system.inverse[4 * i + 3] * vec3_dot(system.tangent[1], m)) /
                          length;
      vec3_axpy(move, step * surface_a.move[i] * length, surface_a.axis[i]);
      vec3_axpy(turn, step * surface_a.turn[i], surface_a.axis[i]);
    }
    out->dist[j] = vec3_dot(n, m);
    for (int i = 0; i < 3; ++i) {
      out->normal[6 * i + j] = turn[i];
      out->pos[6 * i + j] = move[i] + 0.5 * gap * turn[i] + 0.5 * n[i] * out->dist[j];
    }
  }
}
