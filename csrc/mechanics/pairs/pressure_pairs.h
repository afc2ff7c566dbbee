/* Pairs that press by pressure fields: their patches in the world. */
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

/* Contact surface of the geometries of a soft pair (index of the candidate pair) for given frames
 * of their bodies, in world axes, moments about the world's origin. QD_OUT_OF_CAPACITY as in
 * qd_field_patch. */
qd_status pressure_pair_patch(const qd_model *model, int pair, const body_frame *a,
                              const body_frame *b, qd_patch *patch, const patch_room *room);
/* The frame of a geometry's field in the world, with its body there. */
void pressure_field_frame(body_frame *out, const qd_model *model, const body_frame *body, int geom);
/* Depth below the surface of the deepest place of the softer field, m: over it the pressure grows
 * from zero to the modulus. */
double pressure_pair_depth(const qd_model *model, int pair);

#endif
