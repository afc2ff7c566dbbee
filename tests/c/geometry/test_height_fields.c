/* Height fields: planar ones are planes, balls are as far as from the nearest triangle, convex
 * shapes as from the nearest prism, contacts and derivatives are the same again by their features,
 * and nothing that is inside stays without a contact. */
#include "geometry/height_fields/height_field.h"
#include "geometry/projection.h"
#include "geometry_derivatives.h"
#include "mesh_scenes.h"

enum { POINTS_MAX = 40 };

static convex_mesh *meshes[2]; /* of flat faces, and nearly round */

static const int CONVEX[] = {QD_SPHERE, QD_CAPSULE, QD_BOX, QD_CYLINDER, QD_ELLIPSOID, QD_MESH};
enum { CONVEX_COUNT = sizeof CONVEX / sizeof CONVEX[0] };

static shape convex_shape(int type, double scale) {
  shape s = random_shape(type, scale);
  s.placed.mesh = type == QD_MESH ? meshes[uniform(0.0, 1.0) < 0.5] : NULL;
  return s;
}

/* A grid over [-half, half]: slope (2) and bumps of random heights. */
static height_field *random_field(int rows, int columns, const double slope[2], double bumps) {
  static double height[POINTS_MAX * POINTS_MAX];
  const double half[2] = {uniform(3.0, 4.0), uniform(3.0, 4.0)};
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const double x = half[0] * (2.0 * c / (columns - 1) - 1.0);
      const double y = half[1] * (2.0 * r / (rows - 1) - 1.0);
      height[r * columns + c] = slope[0] * x + slope[1] * y + bumps * uniform(-1.0, 1.0);
    }
  }
  return height_field_create(height, rows, columns, half, -10.0);
}

static shape field_shape(const height_field *field) {
  shape s = shape_make(QD_HFIELD, 0.0, 0.0, 0.0);
  s.placed.heights = field;
  random_rotation(s.placed.rot);
  vec3_set(s.placed.pos, uniform(-1, 1), uniform(-1, 1), uniform(-1, 1));
  return s;
}

/* A point of the field's frame in the world, and back. */
static void to_world(double out[3], const shape *field, const double x[3]) {
  double turned[3];
  mat3_mul_vec(turned, field->placed.rot, x);
  vec3_add(out, turned, field->placed.pos);
}

static void from_world(double out[3], const shape *field, const double x[3]) {
  double arm[3];
  vec3_sub(arm, x, field->placed.pos);
  mat3_tmul_vec(out, field->placed.rot, arm);
}

static const contact_point *nearest_of(const contact_point *contact, int count) {
  const contact_point *nearest = contact;
  for (int i = 1; i < count; ++i) {
    nearest = contact[i].dist < nearest->dist ? contact + i : nearest;
  }
  return count > 0 ? nearest : NULL;
}

/* ---------------------------------------------------------------- planes */

/* The plane through the surface of a planar field. */
static shape plane_of(const shape *field, const double slope[2]) {
  shape plane = shape_make(QD_PLANE, 0.0, 0.0, 0.0);
  double rot[9], z[3] = {-slope[0], -slope[1], 1.0}, x[3] = {1.0, 0.0, slope[0]}, y[3];
  vec3_normalize(z);
  vec3_normalize(x);
  vec3_cross(y, z, x);
  for (int i = 0; i < 3; ++i) {
    vec3_set(rot + 3 * i, x[i], y[i], z[i]);
  }
  mat3_mul(plane.placed.rot, field->placed.rot, rot);
  vec3_copy(plane.placed.pos, field->placed.pos);
  return plane;
}

static int has_contact(const contact_point *contact, int count, const contact_point *wanted) {
  for (int i = 0; i < count; ++i) {
    if (fabs(contact[i].dist - wanted->dist) < 1e-11 &&
        vec3_error(contact[i].pos, wanted->pos) < 1e-11 &&
        vec3_error(contact[i].normal, wanted->normal) < 1e-11) {
      return 1;
    }
  }
  return 0;
}

static void planar_fields_are_planes(int type, int tilted) {
  for (int scene = 0; scene < 60; ++scene) {
    scene_begin();
    const double slope[2] = {tilted ? uniform(-1, 1) : 0.0, tilted ? uniform(-1, 1) : 0.0};
    height_field *field = random_field((int)uniform(2, 30), (int)uniform(2, 30), slope, 0.0);
    shape a = field_shape(field), b = convex_shape(type, 1.0), plane = plane_of(&a, slope);
    const double middle[3] = {uniform(-0.5, 0.5), uniform(-0.5, 0.5), 0.0};
    contact_point found[CONTACTS_PER_PAIR_MAX], wanted[CONTACTS_PER_PAIR_MAX];
    to_world(b.placed.pos, &a, middle);
    shape_approach(&plane, &b, uniform(-0.2, 0.2));
    const int wanted_count = shapes_collide(placed(&plane), placed(&b), 0.5, wanted);
    const int count = shapes_collide(placed(&a), placed(&b), 0.5, found);
    CHECK_SAY(count == wanted_count, "%s: %d contacts, of a plane %d", TYPE_NAME[type], count,
              wanted_count);
    for (int i = 0; i < wanted_count; ++i) {
      CHECK_SAY(has_contact(found, count, wanted + i), "%s: contact %d of a plane, dist %.3g",
                TYPE_NAME[type], i, wanted[i].dist);
    }
    height_field_destroy(field);
  }
}

/* ---------------------------------------------------------------- all triangles, all prisms */

/* Squared distance of a point from a triangle. */
static double triangle_distance(const double p[3], double corner[3][3]) {
  double best = INFINITY, u[3], v[3], n[3], arm[3], foot[3], d[3];
  vec3_sub(u, corner[1], corner[0]);
  vec3_sub(v, corner[2], corner[0]);
  vec3_cross(n, u, v);
  vec3_normalize(n);
  vec3_sub(arm, p, corner[0]);
  vec3_copy(foot, p);
  vec3_axpy(foot, -vec3_dot(n, arm), n);
  int inside = 1;
  for (int i = 0; i < 3; ++i) {
    double edge[3], side[3];
    vec3_sub(edge, corner[(i + 1) % 3], corner[i]);
    vec3_sub(arm, p, corner[i]);
    vec3_copy(d, arm);
    vec3_axpy(d, -fmax(0.0, fmin(1.0, vec3_dot(arm, edge) / vec3_dot(edge, edge))), edge);
    best = fmin(best, vec3_norm(d));
    vec3_sub(arm, foot, corner[i]);
    vec3_cross(side, n, edge);
    inside = inside && vec3_dot(side, arm) >= 0.0;
  }
  vec3_sub(d, p, foot);
  return inside ? fmin(best, vec3_norm(d)) : best;
}

static void grid_corner(double out[3], const height_field *field, int column, int row) {
  vec3_set(out, -field->half[0] + column * field->step[0], -field->half[1] + row * field->step[1],
           field->height[row * field->column_count + column]);
}

/* Corners of a cell's triangle, counterclockwise seen from above. */
static void cell_triangle(double corner[3][3], const height_field *field, int column, int row,
                          int right) {
  grid_corner(corner[0], field, column, row);
  grid_corner(corner[1], field, column + 1, row + !right);
  grid_corner(corner[2], field, column + right, row + 1);
}

/* From the surface and the upright sides under its rim. */
static double brute_distance(const height_field *field, const double p[3]) {
  double best = INFINITY, corner[3][3];
  for (int r = 0; r < field->row_count - 1; ++r) {
    for (int c = 0; c < field->column_count - 1; ++c) {
      for (int right = 0; right < 2; ++right) {
        cell_triangle(corner, field, c, r, right);
        best = fmin(best, triangle_distance(p, corner));
      }
    }
  }
  for (int side = 0; side < 4; ++side) {
    const int axis = side / 2, count = axis ? field->column_count : field->row_count;
    const int last = (axis ? field->row_count : field->column_count) - 1;
    for (int i = 0; i < count - 1; ++i) {
      const int fixed = side % 2 ? last : 0;
      for (int k = 0; k < 2; ++k) { /* two triangles: corner k and both points below */
        grid_corner(corner[0], field, axis ? i : fixed, axis ? fixed : i);
        grid_corner(corner[1], field, axis ? i + 1 : fixed, axis ? fixed : i + 1);
        vec3_copy(corner[2], corner[1 - k]);
        corner[2][2] = field->bottom;
        corner[1][2] = k ? field->bottom : corner[1][2];
        best = fmin(best, triangle_distance(p, corner));
      }
    }
  }
  return best;
}

static void balls_are_as_far_as_the_nearest_triangle(double bumps) {
  static const double LEVEL[2] = {0.0, 0.0};
  for (int scene = 0; scene < 300; ++scene) {
    scene_begin();
    height_field *field = random_field((int)uniform(2, 14), (int)uniform(2, 14), LEVEL, bumps);
    shape a = field_shape(field), b = shape_make(QD_SPHERE, uniform(0.01, 1.0), 0.0, 0.0);
    double x[3] = {uniform(-4.5, 4.5), uniform(-4.5, 4.5), 0.0};
    const int over = fabs(x[0]) < field->half[0] && fabs(x[1]) < field->half[1];
    x[2] =
        over ? height_field_height(field, x[0], x[1]) + log_uniform(1e-3, 4.0) : uniform(-5.0, 3.0);
    to_world(b.placed.pos, &a, x);
    contact_point found[CONTACTS_PER_PAIR_MAX];
    const int count = shapes_collide(placed(&a), placed(&b), INFINITY, found);
    const double wanted = brute_distance(field, x) - b.size[0];
    const contact_point *nearest = nearest_of(found, count);
    CHECK_SAY(nearest && fabs(nearest->dist - wanted) < 1e-11, "ball: %.15g, by triangles %.15g",
              nearest ? nearest->dist : NAN, wanted);
    /* its witness lies on the surface */
    if (nearest) {
      double on_field[3], local[3];
      vec3_copy(on_field, nearest->pos);
      vec3_axpy(on_field, -0.5 * nearest->dist, nearest->normal);
      from_world(local, &a, on_field);
      CHECK(brute_distance(field, local) < 1e-11);
    }
    height_field_destroy(field);
  }
}

/* The prism under a triangle, as a mesh in the field's frame. */
static convex_mesh *prism_of(double corner[3][3], double bottom) {
  static const int32_t FACE[24] = {0, 1, 2, 5, 4, 3, 0, 3, 4, 0, 4, 1,
                                   1, 4, 5, 1, 5, 2, 2, 5, 3, 2, 3, 0};
  double vertex[18];
  const char *reason;
  int at;
  convex_mesh *mesh = NULL;
  for (int i = 0; i < 3; ++i) {
    vec3_copy(vertex + 3 * i, corner[i]);
    vec3_set(vertex + 9 + 3 * i, corner[i][0], corner[i][1], bottom);
  }
  CHECK(convex_mesh_create(&mesh, vertex, 6, FACE, 8, &reason, &at) == QD_OK);
  return mesh;
}

/* The signed distance from the nearest prism: of those that penetrate, a bound. */
static double prisms_distance(const shape *a, shape *b) {
  const height_field *field = a->placed.heights;
  double best = INFINITY, corner[3][3];
  for (int r = 0; r < field->row_count - 1; ++r) {
    for (int c = 0; c < field->column_count - 1; ++c) {
      for (int right = 0; right < 2; ++right) {
        contact_point found[CONTACTS_PER_PAIR_MAX];
        cell_triangle(corner, field, c, r, right);
        shape prism = shape_make(QD_MESH, 0.0, 0.0, 0.0);
        convex_mesh *mesh = prism_of(corner, field->bottom);
        prism.placed.mesh = mesh;
        memcpy(prism.placed.rot, a->placed.rot, sizeof prism.placed.rot);
        to_world(prism.placed.pos, a, mesh->center);
        const int count = shapes_collide(placed(&prism), placed(b), INFINITY, found);
        best = count > 0 ? fmin(best, nearest_of(found, count)->dist) : best;
        convex_mesh_destroy(mesh);
      }
    }
  }
  return best;
}

static void shapes_are_as_far_as_the_nearest_prism(int type) {
  static const double LEVEL[2] = {0.0, 0.0};
  for (int scene = 0; scene < 40; ++scene) {
    scene_begin();
    height_field *field =
        random_field((int)uniform(2, 7), (int)uniform(2, 7), LEVEL, log_uniform(0.05, 1.5));
    shape a = field_shape(field), b = convex_shape(type, 0.7);
    const double x[3] = {uniform(-4.0, 4.0), uniform(-4.0, 4.0), 5.0};
    to_world(b.placed.pos, &a, x);
    shape_approach(&a, &b, log_uniform(1e-3, 1.0));
    contact_point found[CONTACTS_PER_PAIR_MAX];
    const double wanted = prisms_distance(&a, &b);
    if (wanted > 1e-6) {
      const int count = shapes_collide(placed(&a), placed(&b), INFINITY, found);
      const contact_point *nearest = nearest_of(found, count);
      CHECK_SAY(nearest && fabs(nearest->dist - wanted) < 1e-9, "%s: %.12g, by prisms %.12g",
                TYPE_NAME[type], nearest ? nearest->dist : NAN, wanted);
    }
    height_field_destroy(field);
  }
}

/* ---------------------------------------------------------------- features, derivatives */

static void contacts_are_the_same_again(int type, tally *result) {
  static const double LEVEL[2] = {0.0, 0.0};
  for (int scene = 0; scene < 60; ++scene) {
    scene_begin();
    height_field *field = random_field((int)uniform(2, 30), (int)uniform(2, 30), LEVEL, 0.3);
    shape a = field_shape(field), b = convex_shape(type, 1.0);
    const double x[3] = {uniform(-4.0, 4.0), uniform(-4.0, 4.0), 2.0};
    to_world(b.placed.pos, &a, x);
    shape_approach(&a, &b, uniform(-0.02, 0.2));
    contact_point found[CONTACTS_PER_PAIR_MAX], again;
    const int count = shapes_collide(placed(&a), placed(&b), 0.3, found);
    for (int i = 0; i < count; ++i) {
      feature_contact(placed(&a), placed(&b), found[i].feature, &again);
      CHECK_SAY(has_contact(&again, 1, found + i) && again.feature == found[i].feature,
                "%s: contact %d of %d: dist %.12g, again %.12g", TYPE_NAME[type], i, count,
                found[i].dist, again.dist);
      feature_contact(placed(&b), placed(&a), found[i].feature, &again);
      contact_point_exchange(&again);
      CHECK(has_contact(&again, 1, found + i));
      compare_derivative(&a, &b, found + i, 1.0, 1.0, result);
    }
    height_field_destroy(field);
  }
}

static void fields_have_no_size_derivative(void) {
  static const double LEVEL[2] = {0.0, 0.0};
  height_field *field = random_field(9, 9, LEVEL, 0.3);
  shape a = field_shape(field), b = shape_make(QD_SPHERE, 0.4, 0.0, 0.0);
  const double x[3] = {0.1, 0.2, 0.5};
  contact_point found[CONTACTS_PER_PAIR_MAX];
  contact_point_derivative derivative;
  to_world(b.placed.pos, &a, x);
  const int count = shapes_collide(placed(&a), placed(&b), INFINITY, found);
  CHECK(count > 0);
  for (int i = 0; i < count; ++i) {
    shapes_size_derivative(placed(&a), placed(&b), found + i, &derivative);
    CHECK(fabs(derivative.dist[3] + 1.0) < 1e-12); /* the ball's radius */
    for (int j = 0; j < 3; ++j) {
      CHECK(derivative.dist[j] == 0.0 && derivative.pos[j] == 0.0 && derivative.normal[j] == 0.0);
    }
  }
  height_field_destroy(field);
}

/* ---------------------------------------------------------------- inside, and on the way there */

static void what_is_inside_has_a_way_out(int type) {
  static const double LEVEL[2] = {0.0, 0.0};
  for (int scene = 0; scene < 100; ++scene) {
    scene_begin();
    height_field *field = random_field((int)uniform(2, 30), (int)uniform(2, 30), LEVEL, 0.5);
    shape a = field_shape(field), b = convex_shape(type, 0.3);
    double x[3] = {uniform(-3.0, 3.0), uniform(-3.0, 3.0), 0.0}, way[3];
    x[2] = height_field_height(field, x[0], x[1]) - log_uniform(1e-3, 2.0);
    to_world(b.placed.pos, &a, x);
    contact_point found[CONTACTS_PER_PAIR_MAX];
    const int count = shapes_collide(placed(&a), placed(&b), 0.01, found);
    const contact_point *deepest = nearest_of(found, count);
    CHECK_SAY(deepest && deepest->dist < 0.0, "%s inside: %d contacts", TYPE_NAME[type], count);
    for (int i = 0; i < count; ++i) {
      mat3_tmul_vec(way, a.placed.rot, found[i].normal);
      CHECK(way[2] >= -1e-9);
    }
    height_field_destroy(field);
  }
}

static void ways_enter_where_they_first_are_below(void) {
  static const double LEVEL[2] = {0.0, 0.0};
  for (int scene = 0; scene < 200; ++scene) {
    scene_begin();
    height_field *field = random_field((int)uniform(2, 12), (int)uniform(2, 12), LEVEL, 1.0);
    const double from[3] = {uniform(-6, 6), uniform(-6, 6), uniform(1.0, 3.0)};
    const double to[3] = {uniform(-6, 6), uniform(-6, 6), uniform(-3.0, 3.0)};
    const int part = height_field_entered(field, from, to);
    double entered = NAN;
    int above = 0;
    for (int i = 0; i <= 20000 && isnan(entered); ++i) {
      double x[3], way[3];
      vec3_sub(way, to, from);
      vec3_copy(x, from);
      vec3_axpy(x, i / 20000.0, way);
      if (fabs(x[0]) > field->half[0] || fabs(x[1]) > field->half[1]) {
        above = 0;
        continue;
      }
      const double height = x[2] - height_field_height(field, x[0], x[1]);
      entered = above && height < 0.0 ? i / 20000.0 : NAN;
      above = height >= 0.0;
    }
    CHECK_SAY((part >= 0) == !isnan(entered), "entered %d, by points %g", part, entered);
    if (part >= 0 && !isnan(entered)) {
      hfield_part face;
      double d[3], normal[3], x[3], way[3];
      hfield_part_place(&face, field, part);
      mat3_column(normal, face.shape.rot, 2);
      vec3_sub(way, to, from);
      vec3_copy(x, from);
      vec3_axpy(x, entered, way);
      vec3_sub(d, x, face.from);
      CHECK(fabs(vec3_dot(normal, d)) <= vec3_norm(way) / 20000.0);
    }
    height_field_destroy(field);
  }
}

int main(void) {
  static hull h;
  const char *reason;
  int at;
  box_hull(&h, 0.5, 0.3, 0.4);
  CHECK(convex_mesh_create(meshes, h.vertex, h.vertex_count, h.face, h.face_count, &reason, &at) ==
        QD_OK);
  sphere_hull(&h, 2, 0.5);
  CHECK(convex_mesh_create(meshes + 1, h.vertex, h.vertex_count, h.face, h.face_count, &reason,
                           &at) == QD_OK);
  for (int i = 0; i < CONVEX_COUNT; ++i) {
    tally result = {.tolerance = 1e-7};
    planar_fields_are_planes(CONVEX[i], 0);
    planar_fields_are_planes(CONVEX[i], 1);
    shapes_are_as_far_as_the_nearest_prism(CONVEX[i]);
    contacts_are_the_same_again(CONVEX[i], &result);
    for (int k = 0; k < 3; ++k) {
      CHECK_SAY(result.error[k] < 1e-6, "%s: derivative %d: error %g, scene %llu",
                TYPE_NAME[CONVEX[i]], k, result.error[k], (unsigned long long)result.scene[k]);
    }
    CHECK(result.compared > 4 * result.skipped);
    what_is_inside_has_a_way_out(CONVEX[i]);
  }
  balls_are_as_far_as_the_nearest_triangle(0.0);
  balls_are_as_far_as_the_nearest_triangle(0.5);
  balls_are_as_far_as_the_nearest_triangle(3.0);
  fields_have_no_size_derivative();
  ways_enter_where_they_first_are_below();
  convex_mesh_destroy(meshes[0]);
  convex_mesh_destroy(meshes[1]);
  return check_report();
}
