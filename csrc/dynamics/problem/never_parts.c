/* Contacts whose normal motion is zero and stays zero, within the accuracy of files in single
 * precision.
 *
 * With J_i = n.(v_i + w_i x x) the normal motion per unit rate of DOF i, along DOF j
 *   dJ_i/dq_j = dn.(v_i + w_i x x) + n.(dv_i + dw_i x x + w_i x dx),
 * where (dw_i, dv_i) is the bracket of the screws if j moves i's axis, else zero. */
#include <math.h>

#include "base/rounding.h"
#include "dynamics/problem/contact_dofs.h"
#include "dynamics/problem/problem.h"

/* A DOF that moves one of the two bodies of a contact relative to the other. */
typedef struct pair_dof {
  int dof, side;      /* 0: moves A, 1: moves B */
  double velocity[3]; /* of the body at the contact point */
} pair_dof;

static int pair_dof_at(pair_dof *out, const contact_dofs *dofs, const kinematics *k,
                       const double pos[3], int i) {
  const int_list *on = dofs->on;
  if (i >= on[0].count + on[1].count) {
    return 0;
  }
  out->side = i >= on[0].count;
  out->dof = out->side ? on[1].at[i - on[0].count] : on[0].at[i];
  screw_point_velocity(out->velocity, k->dof_screw + out->dof, pos);
  return 1;
}

/* Derivative of the normal motion per unit rate of DOF i along DOF j, which moves the contact. */
static double normal_change(const qd_model *model, const kinematics *k, const qd_contact *contact,
                            const contact_motion *motion, const pair_dof *i, const pair_dof *j) {
  const screw *S = k->dof_screw + i->dof;
  double change[3];
  vec3_cross(change, S->w, motion->pos);
  if (i->side == j->side && dof_moves(model, j->dof, i->dof)) {
    screw turned;
    double moved[3];
    screw_bracket(&turned, k->dof_screw + j->dof, S);
    screw_point_velocity(moved, &turned, contact->pos);
    vec3_add(change, change, moved);
  }
  return vec3_dot(contact->frame, change) + vec3_dot(motion->frame, i->velocity);
}

int contact_never_parts(const qd_model *model, const int *variable_of_dof, const kinematics *k,
                        const collision *c, int index) {
  static const screw still = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  const qd_contact *contact = c->contact + index;
  contact_point_derivative derivative;
  const contact_dofs dofs = contact_dofs_find(model, contact->body_a, contact->body_b);
  pair_dof i, j;
  double sliding = 0.0, change = 0.0;
  contact_derivative_compute(&derivative, c, index);
  for (int at_j = 0; pair_dof_at(&j, &dofs, k, contact->pos, at_j); ++at_j) {
    const screw *S = k->dof_screw + j.dof;
    contact_motion motion;
    contact_motion_compute(&motion, c, model, contact, &derivative, j.side ? &still : S,
                           j.side ? S : &still);
    for (int at_i = 0; pair_dof_at(&i, &dofs, k, contact->pos, at_i); ++at_i) {
      if (variable_of_dof[i.dof] >= 0) {
        const double one = normal_change(model, k, contact, &motion, &i, &j);
        change += one * one;
        sliding += at_j == 0 ? vec3_dot(i.velocity, i.velocity) : 0.0;
      }
    }
  }
  return change <= SLIGHT * SLIGHT * sliding;
}
