#include "mechanics/actuator.h"

#include "base/quat.h"

/* ---------------------------------------------------------------- actuators */

/* The sum of stiffness and rate times damping, after changes by the command. */
static double softening(const qd_model *model, int i, const actuator_point *at) {
  const model_parameters *p = &model->parameters;
  const double *slope = model->actuator.gain_slope + 2 * i;
  return p->actuator_stiffness[i] - slope[0] * at->u +
         at->rate * (p->actuator_damping[i] - slope[1] * at->u);
}

double actuator_drag(const qd_model *model, int i, const actuator_point *at) {
  return model->parameters.actuator_damping[i] - model->actuator.gain_slope[2 * i + 1] * at->u;
}

actuator_force actuator_force_general(const qd_model *model, int i, const actuator_point *at) {
  const model_parameters *p = &model->parameters;
  const double command = at->u / model->actuator.gear[i];
  const double gain = p->actuator_gain[i] + model->actuator.gain_slope[2 * i] * at->l;
  const double stiffness = at->early ? 0.0 : softening(model, i, at);
  actuator_force force = {
      p->actuator_stiffness[i] * (command - at->l) + gain * at->u + p->actuator_bias[i],
      stiffness > 0.0 ? stiffness : 0.0,
  };
  if (at->early) {
    force.at_rest -= actuator_drag(model, i, at) * at->speed;
  }
  return force;
}

actuator_slopes actuator_slopes_at(const qd_model *model, int i, const actuator_point *at,
                                   double d) {
  const model_parameters *p = &model->parameters;
  const double k = p->actuator_stiffness[i], *slope = model->actuator.gain_slope + 2 * i;
  const double gear = model->actuator.gear[i];
  const double moved = !at->early && softening(model, i, at) > 0.0 ? d : 0.0;
  actuator_slopes slopes = {
      .l = slope[0] * at->u - k,
      .u =
          k / gear + p->actuator_gain[i] + slope[0] * (at->l + moved) + slope[1] * at->rate * moved,
      .stiffness = -(moved + at->l - at->u / gear),
      .gain = at->u,
      .bias = 1.0,
      .damping = -at->rate * moved,
      .h = -at->rate * at->rate * (slope[1] * at->u - p->actuator_damping[i]) * moved,
  };
  if (at->early) {
    slopes.speed = -actuator_drag(model, i, at);
    slopes.u += slope[1] * at->speed;
    slopes.damping = -at->speed;
  }
  return slopes;
}

void actuator_slopes_subtract(actuator_slopes *a, const actuator_slopes *b) {
  a->l -= b->l;
  a->speed -= b->speed;
  a->u -= b->u;
  a->stiffness -= b->stiffness;
  a->gain -= b->gain;
  a->bias -= b->bias;
  a->damping -= b->damping;
  a->h -= b->h;
}

/* ---------------------------------------------------------------- clamping at the beginning */

static int side_of(const double *range, double force) {
  return force <= range[0] ? -1 : (force >= range[1] ? 1 : 0);
}

clamped_force actuator_force_clamped(const qd_model *model, int i, const actuator_point *at,
                                     double speed) {
  const double *range = model->parameters.actuator_force_range + 2 * i;
  const double *own = model->actuator.own_range + 2 * i;
  clamped_force c = {.force = actuator_force_at(model, i, at)};
  const double lost = at->early ? 0.0 : actuator_drag(model, i, at) * speed;
  const double begins = c.force.at_rest - lost;
  c.side = side_of(range, begins);
  if (c.side != 0) {
    c.by_joint = own[0] <= own[1] && side_of(own, begins) == 0;
    c.force.at_rest = actuator_clamp(model, i, begins);
    if (c.by_joint && c.force.stiffness > 0.0) {
      c.force.at_rest += lost;
    } else {
      c.force.stiffness = 0.0;
    }
  }
  return c;
}

actuator_slopes actuator_slopes_clamped(const qd_model *model, int i, const actuator_point *at,
                                        double speed, double d) {
  const clamped_force c = actuator_force_clamped(model, i, at, speed);
  if (c.side == 0) {
    return actuator_slopes_at(model, i, at, d);
  }
  if (!(c.force.stiffness > 0.0)) {
    const actuator_slopes none = {.l = 0.0};
    return none;
  }
  actuator_slopes slopes = actuator_slopes_at(model, i, at, d);
  const actuator_slopes at_rest = actuator_slopes_at(model, i, at, 0.0);
  actuator_slopes_subtract(&slopes, &at_rest);
  slopes.u -= model->actuator.gain_slope[2 * i + 1] * speed;
  slopes.damping += speed;
  slopes.speed = actuator_drag(model, i, at);
  return slopes;
}

/* ---------------------------------------------------------------- springs of joints */

/* The first of the three rotational DOFs of a ball or free joint; -1 if `dof` is not one of them.
 */
static int turn_start(const qd_model *model, int dof) {
  return model->dof.block_last[dof] > model->dof.block_start[dof] ? model->dof.block_start[dof]
                                                                  : -1;
}

/* The rotation from rest to q, as a vector in the axes of its DOFs. */
static void turn_from_rest(const qd_model *model, int joint, const double *q, double turn[3]) {
  static const double none[4] = {1.0, 0.0, 0.0, 0.0};
  const int is_free = model->joint.type[joint] == QD_FREE;
  const int at = model->joint.q[joint] + (is_free ? 3 : 0);
  const double *rest = is_free ? model->body.quat + 4 * model->joint.body[joint] : none;
  const double inverse[4] = {rest[0], -rest[1], -rest[2], -rest[3]};
  double quat[4];
  quat_mul(quat, q + at, inverse);
  quat_log(turn, quat);
}

double joint_stretch(const qd_model *model, int dof, const double *q) {
  const int joint = model->dof.joint[dof], first = turn_start(model, dof);
  if (model->dof.q[dof] >= 0) {
    return q[model->dof.q[dof]] - model->parameters.joint_springref[joint];
  }
  if (first < 0) {
    const int along = dof - model->joint.v[joint];
    return q[model->joint.q[joint] + along] - model->body.pos[3 * model->joint.body[joint] + along];
  }
  double turn[3];
  turn_from_rest(model, joint, q, turn);
  return turn[dof - first];
}

int joint_stretch_row(const qd_model *model, int dof, const double *q, double row[3], int *first) {
  const int start = turn_start(model, dof);
  if (start < 0) {
    *first = dof;
    row[0] = 1.0;
    return 1;
  }
  double turn[3], J[9];
  turn_from_rest(model, model->dof.joint[dof], q, turn);
  rotation_left_jacobian_inverse(J, turn);
  for (int i = 0; i < 3; ++i) {
    row[i] = J[3 * (dof - start) + i];
  }
  *first = start;
  return 3;
}
