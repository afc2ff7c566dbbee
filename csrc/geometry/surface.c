/* Features of the shapes, in the frame of the shape unless the header says world. */
#include "geometry/surface.h"

#include <math.h>

#include "base/vec3.h"
#include "geometry/meshes/mesh_surface.h"
#include "qdsim.h"

static const int BOX_PLACE[3] = {1, 3, 9};

/* Position of coordinate i in a box feature: -1, 0, 1. */
static int box_side(int feature, int i) { return feature / BOX_PLACE[i] % 3 - 1; }

double shape_extent(const placed_shape *shape) {
  const double *size = shape->size;
  switch (shape->type) {
  case QD_SPHERE:
    return size[0];
  case QD_CAPSULE:
  case QD_CYLINDER:
    return size[0] + size[1];
  case QD_BOX:
  case QD_ELLIPSOID:
    return size[0] + size[1] + size[2];
  case QD_MESH:
    return shape->mesh->radius;
  default:
    return 0.0;
  }
}

double shape_roughness(const placed_shape *shape) {
  return shape->type == QD_MESH ? shape->mesh->roughness : 0.0;
}

static void set_flat(local_surface *out, int k) {
  out->move[k] = 1.0;
  out->turn[k] = 0.0;
}

/* radius of curvature move / turn >= 0, in units of length */
static void set_curved(local_surface *out, int k, double move, double turn) {
  const double largest = fmax(fabs(move), fabs(turn));
  out->move[k] = largest > 0.0 ? move / largest : 0.0;
  out->turn[k] = largest > 0.0 ? turn / largest : 1.0;
}

/* Two axes perpendicular to n, the first along `axis` or, if that is parallel to n, along any. */
static void set_axes(local_surface *out, const double n[3], const double axis[3]) {
  double *first = out->axis[0];
  vec3_reject(first, axis, n);
  double length = vec3_normalize(first);
  if (length < 0.5) { /* cancellation left rounding errors along n */
    vec3_axpy(first, -vec3_dot(first, n), n);
    length = vec3_normalize(first);
  }
  if (length < 0.5) {
    const int least = fabs(n[0]) < fabs(n[1]) ? (fabs(n[0]) < fabs(n[2]) ? 0 : 2)
                                              : (fabs(n[1]) < fabs(n[2]) ? 1 : 2);
    vec3_set(first, 0.0, 0.0, 0.0);
    first[least] = 1.0;
    vec3_axpy(first, -n[least], n);
    vec3_normalize(first);
  }
  vec3_cross(out->axis[1], n, first);
}

static const double UNIT[3][3] = {{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}};

static void box_surface(local_surface *out, const surface_point *point) {
  int pinned = 0, inner = 0;
  for (int i = 0; i < 3; ++i) {
    if (box_side(point->feature, i) != 0) {
      ++pinned;
    } else {
      inner = i;
    }
  }
  set_axes(out, point->n, UNIT[inner]);
  for (int k = 0; k < 2; ++k) {
    if (pinned == 1 || (pinned == 2 && k == 0)) {
      set_flat(out, k);
    } else {
      set_curved(out, k, 0.0, 1.0);
    }
  }
}

static void mesh_surface(local_surface *out, const convex_mesh *mesh, const surface_point *point) {
  const int edge = mesh_feature_edge(mesh, point->feature);
  double along[3];
  vec3_copy(along, UNIT[0]);
  if (edge >= 0) {
    vec3_copy(along, mesh->edge_axis + 3 * edge);
  }
  set_axes(out, point->n, along);
  set_curved(out, 0, 0.0, 1.0);
  set_curved(out, 1, 0.0, 1.0);
  if (point->feature >= mesh->vertex_count) {
    set_flat(out, 0);
  }
  if (mesh_feature_polygon(mesh, point->feature) >= 0) {
    set_flat(out, 1);
  }
}

/* Moving along the tangent z x u of a rim x = r u(angle) rotates its normals by n.u per angle. */
static void cylinder_surface(local_surface *out, const placed_shape *shape,
                             const surface_point *point, double length) {
  const double r = shape->size[0];
  if (point->feature == CYLINDER_LOWER_CAP || point->feature == CYLINDER_UPPER_CAP) {
    set_axes(out, point->n, UNIT[0]);
    set_flat(out, 0);
    set_flat(out, 1);
  } else if (point->feature == CYLINDER_SIDE) {
    set_axes(out, point->n, UNIT[2]);
    set_flat(out, 0);
    set_curved(out, 1, r / length, 1.0);
  } else {
    double tangent[3] = {-point->x[1], point->x[0], 0.0};
    const double outward = (point->n[0] * point->x[0] + point->n[1] * point->x[1]) / r;
    set_axes(out, point->n, tangent);
    set_curved(out, 0, r / length, fmax(outward, 0.0));
    set_curved(out, 1, 0.0, 1.0);
  }
}

/* x = D D n / h, h = |D n|, is the gradient of h; its Hessian (D D - x x') / h maps dn to dx. */
static void ellipsoid_surface(local_surface *out, const placed_shape *shape,
                              const surface_point *point, double length) {
  double H[2][2], Dn[3], first[3], second[3];
  for (int i = 0; i < 3; ++i) {
    Dn[i] = shape->size[i] * point->n[i];
  }
  const double h = vec3_norm(Dn);
  set_axes(out, point->n, UNIT[0]);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      double sum = 0.0;
      for (int k = 0; k < 3; ++k) {
        sum += out->axis[i][k] * shape->size[k] * shape->size[k] * out->axis[j][k];
      }
      H[i][j] =
          (sum - vec3_dot(out->axis[i], point->x) * vec3_dot(out->axis[j], point->x)) / h / length;
    }
  }
  const double turn = 0.5 * atan2(2.0 * H[0][1], H[0][0] - H[1][1]);
  const double c = cos(turn), s = sin(turn);
  vec3_scale(first, out->axis[0], c);
  vec3_axpy(first, s, out->axis[1]);
  vec3_cross(second, point->n, first);
  vec3_copy(out->axis[0], first);
  vec3_copy(out->axis[1], second);
  const double mean = 0.5 * (H[0][0] + H[1][1]);
  const double swing = 0.5 * hypot(H[0][0] - H[1][1], 2.0 * H[0][1]);
  /* the product of the radii, the determinant, is (a b c)^2 / h^4; this form does not cancel */
  const double volume = shape->size[0] / h * (shape->size[1] / h) * (shape->size[2] / length) *
                        (shape->size[0] / h * (shape->size[1] / h) * (shape->size[2] / length));
  set_curved(out, 0, fmax(mean + swing, 0.0), 1.0);
  const double larger = mean + swing;
  /* in long thin ellipsoids rounding may cancel both */
  set_curved(out, 1, larger > 0.0 ? fmin(volume / larger, larger) : 0.0, 1.0);
}

void surface_compute(local_surface *out, const placed_shape *shape, const surface_point *point,
                     double length) {
  switch (shape->type) {
  case QD_SPHERE:
    set_axes(out, point->n, UNIT[0]);
    set_curved(out, 0, shape->size[0] / length, 1.0);
    set_curved(out, 1, shape->size[0] / length, 1.0);
    break;
  case QD_CAPSULE:
    set_axes(out, point->n, UNIT[2]);
    set_curved(out, 0, shape->size[0] / length, 1.0);
    set_curved(out, 1, shape->size[0] / length, 1.0);
    if (point->feature == 1) {
      set_flat(out, 0);
    }
    break;
  case QD_BOX:
    box_surface(out, point);
    break;
  case QD_CYLINDER:
    cylinder_surface(out, shape, point, length);
    break;
  case QD_ELLIPSOID:
    ellipsoid_surface(out, shape, point, length);
    break;
  case QD_MESH:
    mesh_surface(out, shape->mesh, point);
    break;
  default:
    set_axes(out, point->n, UNIT[0]);
    set_flat(out, 0);
    set_flat(out, 1);
  }
  if (shape->type != QD_SPHERE) {
    for (int k = 0; k < 2; ++k) {
      double world[3];
      mat3_mul_vec(world, shape->rot, out->axis[k]);
      vec3_copy(out->axis[k], world);
    }
  }
}

int surface_classify(const placed_shape *shape, const double x[3], double tolerance) {
  const double *size = shape->size;
  if (shape->type == QD_CAPSULE) {
    return fabs(x[2]) < size[1] - tolerance ? 1 : (x[2] < 0.0 ? 0 : 2);
  }
  if (shape->type == QD_BOX) {
    int feature = 13, closest = 0;
    for (int i = 0; i < 3; ++i) {
      closest = fabs(x[i]) - size[i] > fabs(x[closest]) - size[closest] ? i : closest;
      if (fabs(x[i]) >= size[i] - tolerance) {
        feature += (x[i] < 0.0 ? -1 : 1) * BOX_PLACE[i];
      }
    }
    return feature != 13 ? feature : 13 + (x[closest] < 0.0 ? -1 : 1) * BOX_PLACE[closest];
  }
  if (shape->type == QD_CYLINDER) {
    const int at_side = hypot(x[0], x[1]) >= size[0] - tolerance;
    const int at_end = fabs(x[2]) >= size[1] - tolerance;
    if (at_end) {
      return (at_side ? CYLINDER_LOWER_RIM : CYLINDER_LOWER_CAP) + (x[2] > 0.0);
    }
    return CYLINDER_SIDE;
  }
  return shape->type == QD_MESH ? mesh_classify(shape->mesh, x, tolerance) : 0;
}

int surface_face(const placed_shape *shape, int face) {
  if (shape->type == QD_MESH) {
    return mesh_polygon_feature(shape->mesh, face);
  }
  if (shape->type == QD_CYLINDER) {
    return face ? CYLINDER_UPPER_CAP : CYLINDER_LOWER_CAP;
  }
  return shape->type == QD_BOX ? 13 + (face % 2 ? 1 : -1) * BOX_PLACE[face / 2] : 0;
}

static void cylinder_retract(const placed_shape *shape, surface_point *point) {
  double *x = point->x, *n = point->n;
  const double r = shape->size[0], half = shape->size[1];
  const int upper = point->feature == CYLINDER_UPPER_CAP || point->feature == CYLINDER_UPPER_RIM;
  const double end = upper ? 1.0 : -1.0;
  if (point->feature == CYLINDER_SIDE) {
    n[2] = 0.0;
    vec3_normalize(n);
    x[0] = r * n[0];
    x[1] = r * n[1];
    return;
  }
  x[2] = end * half;
  if (point->feature == CYLINDER_LOWER_CAP || point->feature == CYLINDER_UPPER_CAP) {
    vec3_set(n, 0.0, 0.0, end);
    return;
  }
  const double rho = hypot(x[0], x[1]);
  const double u[3] = {rho > 0.0 ? x[0] / rho : 1.0, rho > 0.0 ? x[1] / rho : 0.0, 0.0};
  x[0] = r * u[0];
  x[1] = r * u[1];
  const double radial = n[0] * u[0] + n[1] * u[1];
  vec3_set(n, radial * u[0], radial * u[1], n[2]);
  vec3_normalize(n);
}

void surface_retract(const placed_shape *shape, surface_point *point) {
  double *x = point->x, *n = point->n;
  const double *size = shape->size;
  switch (shape->type) {
  case QD_CAPSULE: {
    if (point->feature == 1) {
      n[2] = 0.0;
    }
    vec3_normalize(n);
    const double along = point->feature == 1 ? x[2] : (point->feature - 1) * size[1];
    vec3_scale(x, n, size[0]);
    x[2] += along;
    break;
  }
  case QD_BOX:
    for (int i = 0; i < 3; ++i) {
      const int side = box_side(point->feature, i);
      if (side == 0) {
        n[i] = 0.0;
      } else {
        x[i] = side * size[i];
      }
    }
    vec3_normalize(n);
    break;
  case QD_CYLINDER:
    cylinder_retract(shape, point);
    break;
  case QD_ELLIPSOID: {
    double Dn[3];
    vec3_normalize(n);
    for (int i = 0; i < 3; ++i) {
      Dn[i] = size[i] * n[i];
    }
    const double h = vec3_norm(Dn);
    for (int i = 0; i < 3; ++i) {
      x[i] = size[i] * (Dn[i] / h);
    }
    break;
  }
  case QD_MESH:
    mesh_retract(shape->mesh, point->feature, x, n);
    break;
  default:
    break;
  }
}

static int box_cross(const placed_shape *shape, surface_point *point) {
  int feature = 13, pinned = 0;
  for (int i = 0; i < 3; ++i) {
    int side = box_side(point->feature, i);
    if (side == 0 && fabs(point->x[i]) > shape->size[i]) {
      side = point->x[i] < 0.0 ? -1 : 1;
      point->x[i] = side * shape->size[i];
    } else if (side != 0 && side * point->n[i] < 0.0) {
      side = 0;
    }
    pinned += side != 0;
    feature += side * BOX_PLACE[i];
  }
  if (pinned == 0 || feature == point->feature) {
    return 0;
  }
  point->feature = feature;
  return 1;
}

static int cylinder_cross(const placed_shape *shape, surface_point *point) {
  const double *n = point->n;
  double *x = point->x;
  const double r = shape->size[0], rho = hypot(x[0], x[1]);
  const int before = point->feature;
  if (before == CYLINDER_SIDE) {
    if (fabs(x[2]) > shape->size[1]) {
      point->feature = x[2] < 0.0 ? CYLINDER_LOWER_RIM : CYLINDER_UPPER_RIM;
      x[2] = clamp(x[2], shape->size[1]);
    }
  } else if (before == CYLINDER_LOWER_CAP || before == CYLINDER_UPPER_CAP) {
    if (rho > r) {
      point->feature = before == CYLINDER_LOWER_CAP ? CYLINDER_LOWER_RIM : CYLINDER_UPPER_RIM;
      x[0] *= r / rho;
      x[1] *= r / rho;
    }
  } else {
    const double end = before == CYLINDER_UPPER_RIM ? 1.0 : -1.0;
    if (n[0] * x[0] + n[1] * x[1] < 0.0) {
      point->feature = before == CYLINDER_LOWER_RIM ? CYLINDER_LOWER_CAP : CYLINDER_UPPER_CAP;
    } else if (end * n[2] < 0.0) {
      point->feature = CYLINDER_SIDE;
    }
  }
  return point->feature != before;
}

static int capsule_cross(const placed_shape *shape, surface_point *point) {
  const int before = point->feature;
  const double along = point->x[2] - shape->size[0] * point->n[2];
  if (before == 1) {
    if (fabs(along) > shape->size[1]) {
      point->feature = along < 0.0 ? 0 : 2;
    }
  } else if (shape->size[1] > 0.0 && (before - 1) * point->n[2] < 0.0) {
    point->feature = 1;
  }
  return point->feature != before;
}

int surface_cross(const placed_shape *shape, surface_point *point) {
  int crossed = 0;
  if (shape->type == QD_BOX) {
    crossed = box_cross(shape, point);
  } else if (shape->type == QD_CYLINDER) {
    crossed = cylinder_cross(shape, point);
  } else if (shape->type == QD_CAPSULE) {
    crossed = capsule_cross(shape, point);
  } else if (shape->type == QD_MESH) {
    const int before = point->feature;
    point->feature = mesh_cross(shape->mesh, before, point->x, point->n);
    crossed = point->feature != before;
  }
  if (crossed) {
    surface_retract(shape, point);
  }
  return crossed;
}

void surface_point_place(surface_point *out, const placed_shape *shape, const double x[3],
                         const double n[3], int feature) {
  double difference[3];
  vec3_sub(difference, x, shape->pos);
  out->feature = feature;
  if (shape->type == QD_SPHERE) {
    vec3_copy(out->x, difference);
    vec3_copy(out->n, n);
    return;
  }
  mat3_tmul_vec(out->x, shape->rot, difference);
  mat3_tmul_vec(out->n, shape->rot, n);
}
