#include "mechanics/pairs/soft_pairs.h"

#include "base/vec3.h"

void soft_field_frame(body_frame *out, const qd_model *model, const body_frame *body, int geom) {
  mat3_mul(out->rot, body->rot, model->geom_rot + 9 * geom);
  mat3_mul_vec(out->pos, body->rot, model->geom_field_pos + 3 * geom);
  vec3_add(out->pos, out->pos, body->pos);
}

/* out = A' B */
static void tmul(double out[9], const double A[9], const double B[9]) {
  double columns[9];
  for (int i = 0; i < 3; ++i) {
    mat3_column(columns + 3 * i, A, i);
  }
  mat3_mul(out, columns, B);
}

qd_status soft_pair_patch(const qd_model *model, int pair, const body_frame *a, const body_frame *b,
                          qd_patch *patch, const patch_room *room) {
  const int *geom = model->pair_geom + 2 * pair;
  const double *modulus = model->parameters.geom_modulus;
  const double scale[2] = {modulus[geom[0]] > 0.0 ? modulus[geom[0]] : 1.0,
                           modulus[geom[1]] > 0.0 ? modulus[geom[1]] : 1.0};
  body_frame first, second;
  double R[9], between[3], t[3];
  soft_field_frame(&first, model, a, geom[0]);
  soft_field_frame(&second, model, b, geom[1]);
  tmul(R, second.rot, first.rot);
  vec3_sub(between, first.pos, second.pos);
  mat3_tmul_vec(t, second.rot, between);
  const qd_status status = field_patch_scaled(
      model->field[model->geom_field[geom[0]]], model->field[model->geom_field[geom[1]]], scale, R,
      t, 0.0, patch, room->polygon, room->polygons, room->vertex, room->vertices);
  const int polygons =
      patch->polygon_count < room->polygons ? patch->polygon_count : room->polygons;
  const int vertices = patch->vertex_count <= room->vertices ? patch->vertex_count : 0;
  if (patch->polygon_count > 0) {
    field_patch_turn(patch, room->polygon, polygons, room->vertex, vertices, second.rot,
                     second.pos);
  }
  return status;
}

double soft_pair_depth(const qd_model *model, int pair) {
  double depth = INFINITY;
  for (int side = 0; side < 2; ++side) {
    const int field = model->geom_field[model->pair_geom[2 * pair + side]];
    depth = fmin(depth, field_depth(model->field[field]));
  }
  return depth;
}
