/* Pairs in pressure contact: their contact patches in the world. */
#ifndef QD_MECHANICS_PRESSURE_PAIRS_H
#define QD_MECHANICS_PRESSURE_PAIRS_H

#include "geometry/pressure_fields/field.h"
#include "mechanics/kinematics.h"

/* A body's frame in the world. */
typedef struct body_frame {
  double rot[9], pos[3];
} body_frame;

static inline body_frame body_frame_of(const kinematics *k, int body) {
  body_frame frame;
  memcpy(frame.rot, k->body_rot + 9 * body, sizeof frame.rot);
  memcpy(frame.pos, k->body_pos + 3 * body, sizeof frame.pos);
  return frame;
}

/* Contact patch of a soft pair (index of the candidate pair) for given frames of the two bodies, in
 * world axes, with moments about the world's origin. QD_OUT_OF_CAPACITY as in qd_field_patch. */
qd_status pressure_pair_patch(const qd_model *model, int pair, const body_frame *a,
                              const body_frame *b, qd_patch *patch, const patch_room *room);
/* The frame of a geometry's field in the world, for this frame of its body. */
void pressure_field_frame(body_frame *out, const qd_model *model, const body_frame *body, int geom);
/* The smaller of the two fields' depths, m, over which the pressure rises from zero to its largest
 * value (field_depth). */
double pressure_pair_depth(const qd_model *model, int pair);

#endif
