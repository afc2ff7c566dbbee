/* Any two shapes anywhere: contacts are finite, unit, in range, and the same in either order; their
 * derivatives are finite; and moving the shapes apart along the normal by t adds t to the distance,
 * which holds for the true distance of convex shapes, separated or not. */
#include "../c/mesh_scenes.h"
#include "base/quat.h"
#include "base/vec3.h"
#include "fuzz_input.h"
#include "geometry/clouds/cloud.h"
#include "geometry/collide.h"
#include "geometry/height_fields/height_field.h"
#include "qdsim.h"

/* Relative to the size of the scene: what rounding explains, far below what a wrong feature gives.
 */
#define TOLERANCE 1e-6
#define POINTS_MAX 48

typedef struct fuzz_shape {
  placed_shape placed;
  double size[3];
  double extent;
} fuzz_shape;

/* A box, a prism or the hull of a few points, of these sizes. NULL where it is none. */
static convex_mesh *read_mesh(fuzz_input *in, const double size[3]) {
  static hull h;
  convex_mesh *mesh;
  const char *reason;
  int at;
  const int kind = fuzz_integer(in, 0, 2);
  if (kind == 0) {
    box_hull(&h, size[0], size[1], size[2]);
  } else if (kind == 1) {
    prism_hull(&h, fuzz_integer(in, 3, 40), size[0], size[1]);
  } else {
    h.vertex_count = fuzz_integer(in, 4, 10);
    for (int i = 0; i < 3 * h.vertex_count; ++i) {
      h.vertex[i] = size[i % 3] * fuzz_unit(in);
    }
    hull_of_points(&h);
  }
  convex_mesh_create(&mesh, h.vertex, h.vertex_count, h.face, h.face_count, &reason, &at);
  return mesh;
}

/* Points in a box of these sizes, some of them balls. */
static point_cloud *read_cloud(fuzz_input *in, double size[3], double *extent) {
  double points[3 * POINTS_MAX];
  const int count = fuzz_integer(in, 1, POINTS_MAX);
  for (int i = 0; i < 3 * count; ++i) {
    points[i] = size[i % 3] * fuzz_unit(in);
  }
  size[0] = fuzz_integer(in, 0, 1) ? size[0] : 0.0;
  *extent += size[0];
  return point_cloud_create(points, count, fuzz_integer(in, 1, CONTACTS_PER_PAIR_MAX));
}

/* A grid of these half lengths and heights. */
static height_field *read_heights(fuzz_input *in, const double size[3]) {
  double height[POINTS_MAX];
  const int rows = fuzz_integer(in, 2, 6), columns = fuzz_integer(in, 2, 8);
  for (int i = 0; i < rows * columns; ++i) {
    height[i] = size[2] * fuzz_unit(in);
  }
  return height_field_create(height, rows, columns, size, -2.0 * size[2]);
}

static void read_shape(fuzz_input *in, fuzz_shape *out) {
  double quat[4];
  out->placed = (placed_shape){.type = fuzz_integer(in, QD_PLANE, QD_SHAPE_TYPE_COUNT - 1)};
  out->placed.size = out->size;
  out->extent = 0.0;
  for (int i = 0; i < 3; ++i) {
    out->size[i] = fuzz_size(in, 1e-2, 1e1);
    out->extent += out->size[i];
    out->placed.pos[i] = 2.0 * fuzz_unit(in);
  }
  fuzz_quaternion(in, quat);
  quat_to_mat3(out->placed.rot, quat);
  if (out->placed.type == QD_MESH) {
    out->placed.mesh = read_mesh(in, out->size);
  } else if (out->placed.type == QD_CLOUD) {
    out->placed.cloud = read_cloud(in, out->size, &out->extent);
  } else if (out->placed.type == QD_HFIELD) {
    out->placed.heights = read_heights(in, out->size);
  }
}

/* Returns the index of the nearest contact, -1 without any. */
static int check_contacts(const placed_shape *a, const placed_shape *b, double margin,
                          contact_point *contacts) {
  const int count = shapes_collide(a, b, margin, contacts);
  int nearest = -1;
  FUZZ_CHECK(count >= 0 && count <= CONTACTS_PER_PAIR_MAX, "%d contacts", count);
  for (int i = 0; i < count; ++i) {
    const contact_point *c = contacts + i;
    contact_point_derivative d;
    FUZZ_CHECK(isfinite(c->dist) && c->dist <= margin, "dist %g, margin %g", c->dist, margin);
    fuzz_check_finite(c->pos, 3, "pos");
    FUZZ_CHECK(fabs(vec3_norm(c->normal) - 1.0) < 1e-12, "normal of length %.17g",
               vec3_norm(c->normal));
    shapes_collide_derivative(a, b, c, &d);
    fuzz_check_finite(d.dist, 6, "derivative of dist");
    fuzz_check_finite(d.pos, 18, "derivative of pos");
    fuzz_check_finite(d.normal, 18, "derivative of normal");
    nearest = nearest < 0 || c->dist < contacts[nearest].dist ? i : nearest;
  }
  return nearest;
}

/* The same contact, asked for by its feature. */
static void check_part(const placed_shape *a, const placed_shape *b, const contact_point *c) {
  contact_point again;
  feature_contact(a, b, c->feature, &again);
  FUZZ_CHECK(again.feature == c->feature && fabs(again.dist - c->dist) <= TOLERANCE,
             "types %d %d: %.17g, of the point alone %.17g", a->type, b->type, c->dist, again.dist);
}

static void check_pair(fuzz_input *in, fuzz_shape a, fuzz_shape b) {
  contact_point straight[CONTACTS_PER_PAIR_MAX], swapped[CONTACTS_PER_PAIR_MAX];
  const double margin = fuzz_integer(in, 0, 3) == 0 ? fuzz_size(in, 1e-3, 10.0) : INFINITY;
  a.placed.size = a.size;
  b.placed.size = b.size;
  const int first = check_contacts(&a.placed, &b.placed, margin, straight);
  const int second = check_contacts(&b.placed, &a.placed, margin, swapped);
  if (isfinite(margin)) {
    return; /* at the margin itself rounding decides */
  }
  double apart[3];
  vec3_sub(apart, a.placed.pos, b.placed.pos);
  const double scale = a.extent + b.extent + vec3_norm(apart);
  FUZZ_CHECK(first >= 0 && second >= 0, "no contact within an infinite margin");
  const double dist = straight[first].dist;
  FUZZ_CHECK(fabs(dist - swapped[second].dist) <= TOLERANCE * scale, "%.17g, swapped %.17g", dist,
             swapped[second].dist);
  if (shape_is_in_parts(a.placed.type) || shape_is_in_parts(b.placed.type)) {
    check_part(&a.placed, &b.placed, straight + first);
    return; /* not convex: moved apart, another part may be the nearest */
  }
  const double step = fuzz_size(in, 1e-3, 1.0) * scale;
  vec3_axpy(b.placed.pos, step, straight[first].normal);
  const int moved = check_contacts(&a.placed, &b.placed, margin, swapped);
  FUZZ_CHECK(moved >= 0 && fabs(swapped[moved].dist - dist - step) <= TOLERANCE * (scale + step),
             "types %d %d: %.17g, moved by %.17g: %.17g", a.placed.type, b.placed.type, dist, step,
             moved < 0 ? NAN : swapped[moved].dist);
}

static int is_complete(const fuzz_shape *s) {
  return (s->placed.type != QD_MESH || s->placed.mesh != NULL) &&
         (s->placed.type != QD_CLOUD || s->placed.cloud != NULL) &&
         (s->placed.type != QD_HFIELD || s->placed.heights != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size};
  fuzz_shape a, b;
  read_shape(&in, &a);
  read_shape(&in, &b);
  if (qd_shape_pair_supported(a.placed.type, b.placed.type) && is_complete(&a) && is_complete(&b)) {
    check_pair(&in, a, b);
  }
  convex_mesh_destroy((convex_mesh *)a.placed.mesh);
  convex_mesh_destroy((convex_mesh *)b.placed.mesh);
  point_cloud_destroy((point_cloud *)a.placed.cloud);
  point_cloud_destroy((point_cloud *)b.placed.cloud);
  height_field_destroy((height_field *)a.placed.heights);
  height_field_destroy((height_field *)b.placed.heights);
  return 0;
}
