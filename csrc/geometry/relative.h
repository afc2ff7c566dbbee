/* A shape in the frame of another shape. */
#ifndef QD_GEOMETRY_RELATIVE_H
#define QD_GEOMETRY_RELATIVE_H

#include "base/vec3.h"
#include "geometry/collide.h"
#include "qdsim.h"

/* The shape with its pose relative to `frame`. */
static inline placed_shape relative_shape(const placed_shape *shape, const placed_shape *frame) {
  placed_shape out = *shape;
  mat3_tmul_sub(out.pos, frame->rot, shape->pos, frame->pos);
  if (shape->type != QD_SPHERE) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        out.rot[3 * i + j] = frame->rot[i] * shape->rot[j] + frame->rot[3 + i] * shape->rot[3 + j] +
                             frame->rot[6 + i] * shape->rot[6 + j];
      }
    }
  }
  return out;
}

#endif
