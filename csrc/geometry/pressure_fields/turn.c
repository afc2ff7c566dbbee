/* Transforms patches to other axes, and exchanges their sides. */
#include "geometry/pressure_fields/field.h"

#include "base/vec3.h"

/* Wrenches transform by T = [R 0; [t]R R], tangents by T on both sides. */
static void tangent_turn(double K[36], const double R[9], const double t[3]) {
  double T[36] = {0}, TK[36];
  for (int j = 0; j < 3; ++j) {
    double column[3], lever[3];
    mat3_column(column, R, j);
    vec3_cross(lever, t, column);
    for (int i = 0; i < 3; ++i) {
      T[6 * i + j] = column[i];
      T[6 * (3 + i) + 3 + j] = column[i];
      T[6 * (3 + i) + j] = lever[i];
    }
  }
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      TK[6 * i + j] = 0.0;
      for (int k = 0; k < 6; ++k) {
        TK[6 * i + j] += T[6 * i + k] * K[6 * k + j];
      }
    }
  }
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      K[6 * i + j] = 0.0;
      for (int k = 0; k < 6; ++k) {
        K[6 * i + j] += TK[6 * i + k] * T[6 * j + k];
      }
    }
  }
}

static void point_turn(double x[3], const double R[9], const double t[3]) {
  mat3_mul_add(x, R, x, t);
}

void field_patch_turn(qd_patch *patch, const patch_room *room, const double R[9],
                      const double t[3]) {
  double force[3], moment[3];
  mat3_mul_vec(force, R, patch->force);
  mat3_mul_vec(moment, R, patch->moment);
  vec3_copy(patch->force, force);
  vec3_cross(patch->moment, t, force);
  vec3_add(patch->moment, patch->moment, moment);
  tangent_turn(patch->tangent, R, t);
  point_turn(patch->centre, R, t);
  const int polygons = polygons_kept(patch, room), vertices = vertices_kept(patch, room);
  for (int i = 0; i < polygons; ++i) {
    qd_patch_polygon *p = room->polygon + i, old = *p;
    point_turn(p->centre, R, t);
    mat3_mul_vec(p->normal, R, old.normal);
    mat3_mul_vec(p->gradient_a, R, old.gradient_a);
    mat3_mul_vec(p->gradient_b, R, old.gradient_b);
  }
  for (int i = 0; i < vertices; ++i) {
    point_turn(room->vertex + 3 * i, R, t);
  }
}

static void polygon_turn_round(qd_patch_polygon *p) {
  const qd_patch_polygon old = *p;
  vec3_scale(p->normal, old.normal, -1.0);
  vec3_copy(p->gradient_a, old.gradient_b);
  vec3_copy(p->gradient_b, old.gradient_a);
  p->element_a = old.element_b;
  p->element_b = old.element_a;
}

/* Reverses the corners, so that they run anticlockwise about the reversed normal. */
static void corners_turn_round(double *corner, int count) {
  for (int i = 0, j = count - 1; i < j; ++i, --j) {
    double kept[3];
    vec3_copy(kept, corner + 3 * i);
    vec3_copy(corner + 3 * i, corner + 3 * j);
    vec3_copy(corner + 3 * j, kept);
  }
}

void field_patch_exchange(qd_patch *patch, const patch_room *room) {
  vec3_scale(patch->force, patch->force, -1.0);
  vec3_scale(patch->moment, patch->moment, -1.0);
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < i; ++j) {
      const double swapped = patch->tangent[6 * i + j];
      patch->tangent[6 * i + j] = patch->tangent[6 * j + i];
      patch->tangent[6 * j + i] = swapped;
    }
  }
  const int has_corners = vertices_kept(patch, room) > 0;
  for (int i = 0; i < polygons_kept(patch, room); ++i) {
    qd_patch_polygon *p = room->polygon + i;
    polygon_turn_round(p);
    if (has_corners) {
      corners_turn_round(room->vertex + 3 * p->vertex_start, p->vertex_count);
    }
  }
}
