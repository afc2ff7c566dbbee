#include "mechanics/pairs/pressure_pairs.h"

#include "base/vec3.h"

void pressure_field_frame(body_frame *out, const qd_model *model, const body_frame *body,
                          int geom) {
  mat3_mul(out->rot, body->rot, model->geom.rot + 9 * geom);
  mat3_mul_add(out->pos, body->rot, model->geom.field_pos + 3 * geom, body->pos);
}

static void place_field(field_placed *out, const qd_model *model, const body_frame *body,
                        int geom) {
  const double modulus = model->parameters.geom_modulus[geom];
  body_frame frame;
  pressure_field_frame(&frame, model, body, geom);
  out->field = model->field[model->geom.field[geom]];
  out->scale = modulus > 0.0 ? modulus : 1.0;
  memcpy(out->rot, frame.rot, sizeof out->rot);
  vec3_copy(out->pos, frame.pos);
}

qd_status pressure_pair_patch(const qd_model *model, int pair, const body_frame *a,
                              const body_frame *b, qd_patch *patch, const patch_room *room) {
  const int *geom = model->pair.geom + 2 * pair;
  field_placed first, second;
  place_field(&first, model, a, geom[0]);
  place_field(&second, model, b, geom[1]);
  return field_patch_placed(&first, &second, NULL, patch, room);
}

double pressure_pair_depth(const qd_model *model, int pair) {
  double depth = INFINITY;
  for (int side = 0; side < 2; ++side) {
    const int field = model->geom.field[model->pair.geom[2 * pair + side]];
    depth = fmin(depth, field_depth(model->field[field]));
  }
  return depth;
}
