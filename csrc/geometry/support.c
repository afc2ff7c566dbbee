/* Support points: the farthest point of a core along a direction. Ties go to the positive side. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/convex.h"
#include "qdsim.h"

/* In the frame of the shape; n may have any length. */
static void core_support(double x[3], const placed_shape *shape, const double n[3]) {
  const double *size = shape->size;
  switch (shape->type) {
  case QD_CAPSULE:
    vec3_set(x, 0.0, 0.0, n[2] < 0.0 ? -size[1] : size[1]);
    break;
  case QD_BOX:
    for (int i = 0; i < 3; ++i) {
      x[i] = n[i] < 0.0 ? -size[i] : size[i];
    }
    break;
  case QD_CYLINDER: {
    const double radial = hypot(n[0], n[1]);
    const double scale = radial > 0.0 ? size[0] / radial : 0.0;
    vec3_set(x, radial > 0.0 ? scale * n[0] : size[0], scale * n[1],
             n[2] < 0.0 ? -size[1] : size[1]);
    break;
  }
  case QD_MESH:
    vec3_copy(x, shape->mesh->vertex + 3 * mesh_support(shape->mesh, n));
    break;
  case QD_ELLIPSOID: {
    const double Dn[3] = {size[0] * n[0], size[1] * n[1], size[2] * n[2]};
    const double h = vec3_norm(Dn);
    for (int i = 0; i < 3; ++i) {
      x[i] = h > 0.0 ? size[i] * (Dn[i] / h) : 0.0;
    }
    break;
  }
  default:
    vec3_set(x, 0.0, 0.0, 0.0);
  }
}

static void core_support_world(double x[3], const placed_shape *shape, const double n[3]) {
  double local[3], y[3];
  mat3_tmul_vec(local, shape->rot, n);
  core_support(y, shape, local);
  mat3_mul_vec(x, shape->rot, y);
}

double convex_support(const convex_pair *pair, const double n[3], double x_a[3], double x_b[3]) {
  double minus[3];
  vec3_scale(minus, n, -1.0);
  core_support_world(x_a, pair->shape[0], n);
  core_support_world(x_b, pair->shape[1], minus);
  vec3_add(x_b, x_b, pair->d);
  return vec3_dot_sub(n, x_b, x_a);
}

void convex_pair_init(convex_pair *out, const placed_shape *a, const placed_shape *b) {
  out->shape[0] = a;
  out->shape[1] = b;
  vec3_sub(out->d, b->pos, a->pos);
  for (int k = 0; k < 2; ++k) {
    out->skin[k] = out->shape[k]->type == QD_CAPSULE ? out->shape[k]->size[0] : 0.0;
  }
  out->size = shape_extent(a) + shape_extent(b);
  out->roughness = shape_roughness(a) + shape_roughness(b);
  out->beside = SLIGHT; /* accuracy of approximate start points */
}
