#include "mechanics/tendon.h"

#include "base/quat.h"
#include "mechanics/tendon_path.h"

void tendons_lay_out(tendons *t, const qd_model *model, arena *a) {
  const size_t points = (size_t)model->tendon.point_total;
  t->length = arena_doubles(a, (size_t)model->tendon.count);
  ARENA_DOUBLES(a, (size_t)model->tendon.dof_total, &t->slope, &t->rate);
  t->point = arena_take(a, points * sizeof(strand_point));
  t->path_count = arena_ints(a, (size_t)model->tendon.count);
  t->wrap = arena_take(a, (size_t)model->tendon.wrap_count * sizeof(strand_wrap));
  t->motion = arena_take(a, points * sizeof(strand_motion));
  t->change = arena_doubles(a, model->tendon.count > 0 ? 2 * (size_t)model->nv : 0);
}

/* ---------------------------------------------------------------- lengths */

static double fixed_length(const qd_model *model, const double *q, int tendon) {
  double length = 0.0;
  for (int i = model->tendon.start[tendon]; i < model->tendon.start[tendon + 1]; ++i) {
    length += model->tendon.data[3 * i] * q[model->joint.q[model->tendon.object[i]]];
  }
  return length;
}

/* Sets, in the world, the point of a thrust, its force (`along` of the first point) and its moment
 * about the point (`along` of the second). */
static void place_thrust(const tendons *t, const qd_model *model, const kinematics *k, int tendon) {
  const int first = model->tendon.start[tendon], body = model->tendon.object[first];
  const double *R = k->body_rot + 9 * body, *data = model->tendon.data + 3 * first;
  mat3_mul_add(t->point[first].pos, R, data, k->body_pos + 3 * body);
  mat3_mul_vec(t->point[first].along, R, data + 3);
  mat3_mul_vec(t->point[first + 1].along, R, data + 6);
}

static int is_thrust(const qd_model *model, int tendon) {
  return model->tendon.type[tendon] == QD_TENDON_THRUST;
}

static int is_reach(const qd_model *model, int tendon) {
  return model->tendon.type[tendon] == QD_TENDON_REACH;
}

int tendon_reach_turns(const qd_model *model, int tendon) {
  return model->tendon.start[tendon + 1] - model->tendon.start[tendon] == TURNING_POINTS;
}

/* Rotation of the first body of a reach relative to the second, theta = log(R_b' R_a C), projected
 * on an axis of the second. This axis in the world (`along` of the fourth point) is the couple of a
 * unit force, as in MuJoCo. The length increases with the relative rotation along R_b J(theta)^-T
 * axis (`along` of the last point), with J the left Jacobian of exp. */
static double place_turn(const tendons *t, const qd_model *model, const kinematics *k, int tendon) {
  const int first = model->tendon.start[tendon];
  const int a = model->tendon.object[first], b = model->tendon.object[first + 1];
  const double *data = model->tendon.data + 3 * first, *axis = data + 12;
  const double *from = k->body_quat + 4 * b;
  const double back[4] = {from[0], -from[1], -from[2], -from[3]};
  double offset[4], turned[4], relative[4], theta[3], J[9], steepest[3];
  quat_exp(offset, data + 9);
  quat_mul(turned, k->body_quat + 4 * a, offset);
  quat_mul(relative, back, turned);
  quat_normalize(relative);
  quat_log(theta, relative);
  rotation_left_jacobian_inverse(J, theta);
  mat3_tmul_vec(steepest, J, axis);
  mat3_mul_vec(t->point[first + 3].along, k->body_rot + 9 * b, axis);
  mat3_mul_vec(t->point[first + 4].along, k->body_rot + 9 * b, steepest);
  return vec3_dot(axis, theta);
}

/* Sets the two points of a reach and its direction in the world (`along` of the first), fixed to
 * the second point's body. Returns its length, including the rotation of a rotational reach. */
static double place_reach(const tendons *t, const qd_model *model, const kinematics *k,
                          int tendon) {
  const int first = model->tendon.start[tendon];
  const int *body = model->tendon.object + first;
  const double *data = model->tendon.data + 3 * first;
  strand_point *point = t->point + first;
  double way[3];
  for (int i = 0; i < 2; ++i) {
    mat3_mul_add(point[i].pos, k->body_rot + 9 * body[i], data + 3 * i, k->body_pos + 3 * body[i]);
  }
  mat3_mul_vec(point->along, k->body_rot + 9 * body[1], data + 6);
  vec3_sub(way, point[0].pos, point[1].pos);
  const double turned = tendon_reach_turns(model, tendon) ? place_turn(t, model, k, tendon) : 0.0;
  return vec3_dot(point->along, way) + turned;
}

/* The force of a reach, plus a couple if it is rotational. */
static void reach_wrench(wrench *W, const tendons *t, const qd_model *model, int tendon,
                         int couple) {
  const strand_point *point = t->point + model->tendon.start[tendon];
  vec3_copy(W->f, point->along);
  vec3_cross(W->m, point->pos, W->f);
  if (tendon_reach_turns(model, tendon)) {
    vec3_axpy(W->m, 1.0, point[couple].along);
  }
}

void tendon_reach_wrench(wrench *W, const tendons *t, const qd_model *model, int tendon) {
  reach_wrench(W, t, model, tendon, 3);
}

void tendon_reach_slope(wrench *W, const tendons *t, const qd_model *model, int tendon) {
  reach_wrench(W, t, model, tendon, 4);
}

void tendon_thrust_wrench(wrench *W, const tendons *t, const qd_model *model, int tendon) {
  const strand_point *point = t->point + model->tendon.start[tendon];
  wrench_at(W, point->pos, point->along, point[1].along);
}

/* 1 if a DOF moves only the first point of a reach, -1 only the second, else 0. */
static double reach_share(const qd_model *model, int tendon, int dof) {
  const int *body = model->tendon.object + model->tendon.start[tendon];
  return body_is_behind(model, body[0], dof) - body_is_behind(model, body[1], dof);
}

static double rate_of(const tendons *t, const qd_model *model, const kinematics *k, int tendon,
                      int dof) {
  double rate = 0.0;
  if (is_thrust(model, tendon)) {
    wrench W;
    tendon_thrust_wrench(&W, t, model, tendon);
    return screw_dot(k->dof_screw + dof, &W);
  }
  if (is_reach(model, tendon)) {
    wrench W;
    tendon_reach_wrench(&W, t, model, tendon);
    return reach_share(model, tendon, dof) * screw_dot(k->dof_screw + dof, &W);
  }
  for (int i = model->tendon.start[tendon]; i < model->tendon.start[tendon + 1]; ++i) {
    const int joint = model->tendon.object[i];
    rate += model->joint.v[joint] == dof ? model->tendon.data[3 * i] : 0.0;
  }
  return rate;
}

/* Derivative of the length; it differs from the rate for rotational reaches only. */
static double slope_of(const tendons *t, const qd_model *model, const kinematics *k, int tendon,
                       int dof, double rate) {
  if (!is_reach(model, tendon) || !tendon_reach_turns(model, tendon)) {
    return rate;
  }
  wrench W;
  tendon_reach_slope(&W, t, model, tendon);
  return reach_share(model, tendon, dof) * screw_dot(k->dof_screw + dof, &W);
}

void tendons_compute(const tendons *t, const qd_model *model, const kinematics *k,
                     const double *q) {
  int wraps = 0;
  for (int tendon = 0; tendon < model->tendon.count; ++tendon) {
    t->length[tendon] = 0.0;
    if (model->tendon.type[tendon] == QD_TENDON_SPATIAL) {
      t->length[tendon] = path_place(t, model, k, tendon, &wraps);
      path_rates(t, model, k, tendon);
      continue;
    }
    if (is_thrust(model, tendon)) {
      place_thrust(t, model, k, tendon);
    } else {
      t->length[tendon] = is_reach(model, tendon) ? place_reach(t, model, k, tendon)
                                                  : fixed_length(model, q, tendon);
    }
    for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
      const int dof = model->tendon.dof[d];
      t->rate[d] = model->tendon.dof_counts[d] ? rate_of(t, model, k, tendon, dof) : 0.0;
      t->slope[d] =
          model->tendon.dof_counts[d] ? slope_of(t, model, k, tendon, dof, t->rate[d]) : 0.0;
    }
  }
}

double tendon_rate(const tendons *t, const qd_model *model, int tendon, int dof) {
  for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
    if (model->tendon.dof[d] == dof) {
      return t->rate[d];
    }
  }
  return 0.0;
}

/* ---------------------------------------------------------------- forces */

void tendon_add_wrenches(wrench *W, const tendons *t, const qd_model *model, int tendon,
                         double force) {
  wrench on_body;
  if (model->tendon.type[tendon] == QD_TENDON_FIXED) {
    return;
  }
  if (is_thrust(model, tendon)) {
    tendon_thrust_wrench(&on_body, t, model, tendon);
    wrench_axpy(W + model->tendon.object[model->tendon.start[tendon]], force, &on_body);
    return;
  }
  if (is_reach(model, tendon)) {
    const int *body = model->tendon.object + model->tendon.start[tendon];
    tendon_reach_wrench(&on_body, t, model, tendon);
    wrench_axpy(W + body[0], force, &on_body);
    wrench_axpy(W + body[1], -force, &on_body);
    return;
  }
  const strand path = tendon_strand(t, model, tendon);
  for (int i = 0; i < path.count; ++i) {
    strand_wrench(&on_body, &path, i, force);
    wrench_axpy(W + path.point[i].body, 1.0, &on_body);
  }
}

/* ---------------------------------------------------------------- derivatives */

/* The wrench W moves with its body: for DOF j by S_j x* W. Its power with the twist of the body
 * changes by -W.(S_j x P_j), with P_j the part of the twist that j does not move. */
static void linearize_thrust(const tendons *t, const dof_matrix *D, const qd_model *model,
                             const kinematics *k, const tendon_twists *twists, int tendon,
                             double force) {
  const int first = model->tendon.dof_start[tendon], end = model->tendon.dof_start[tendon + 1];
  wrench W;
  tendon_thrust_wrench(&W, t, model, tendon);
  for (int d = first; d < end; ++d) {
    const int j = model->tendon.dof[d];
    screw turned;
    wrench dW;
    screw_bracket(&turned, k->dof_screw + j, twists->unmoved + j);
    t->change[d - first] = -screw_dot(&turned, &W);
    screw_cross_wrench(&dW, k->dof_screw + j, &W);
    for (int c = first; c < end && force != 0.0; ++c) {
      *dof_matrix_at(D, model->tendon.dof[c], j) -=
          force * screw_dot(k->dof_screw + model->tendon.dof[c], &dW);
    }
  }
}

/* dW if the point of a reach moves with one screw, and its direction and axis with another one. */
static void turn_reach(wrench *dW, const tendons *t, const qd_model *model, int tendon,
                       const screw *with_point, const screw *with_direction) {
  const strand_point *point = t->point + model->tendon.start[tendon];
  double d_pos[3];
  vec3_cross(dW->f, with_direction->w, point->along);
  vec3_cross(dW->m, point->pos, dW->f);
  screw_point_velocity(d_pos, with_point, point->pos);
  vec3_add_cross(dW->m, 1.0, d_pos, point->along);
  if (tendon_reach_turns(model, tendon)) {
    vec3_add_cross(dW->m, 1.0, with_direction->w, point[3].along);
  }
}

/* The bodies behind DOF j move with it, and with them the point and the direction on them. */
static void linearize_reach(const tendons *t, const dof_matrix *D, const qd_model *model,
                            const kinematics *k, const tendon_twists *twists, int tendon,
                            double force) {
  static const screw still = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  const int first = model->tendon.dof_start[tendon], end = model->tendon.dof_start[tendon + 1];
  const int *body = model->tendon.object + model->tendon.start[tendon];
  wrench W;
  tendon_reach_wrench(&W, t, model, tendon);
  for (int d = first; d < end; ++d) {
    const int j = model->tendon.dof[d];
    const screw *with[2];
    double change = 0.0;
    wrench dW;
    for (int side = 0; side < 2; ++side) {
      with[side] = body_is_behind(model, body[side], j) ? k->dof_screw + j : &still;
    }
    turn_reach(&dW, t, model, tendon, with[0], with[1]);
    for (int side = 0; side < 2; ++side) {
      const double sign = side == 0 ? 1.0 : -1.0;
      screw behind;
      screw_sub(&behind, twists->body + body[side], twists->unmoved + j);
      screw_bracket(&behind, with[side], &behind);
      change += sign * (screw_dot(twists->body + body[side], &dW) + screw_dot(&behind, &W));
    }
    t->change[d - first] = model->tendon.dof_counts[d] ? change : 0.0;
    for (int c = first; c < end && force != 0.0; ++c) {
      const int dof = model->tendon.dof[c];
      *dof_matrix_at(D, dof, j) -=
          force * reach_share(model, tendon, dof) * screw_dot(k->dof_screw + dof, &dW);
    }
  }
}

void tendon_linearize(const tendons *t, const dof_matrix *D, const qd_model *model,
                      const kinematics *k, const tendon_twists *twists, int tendon, double force) {
  const int first = model->tendon.dof_start[tendon], end = model->tendon.dof_start[tendon + 1];
  if (is_thrust(model, tendon)) {
    linearize_thrust(t, D, model, k, twists, tendon, force);
    return;
  }
  if (is_reach(model, tendon)) {
    linearize_reach(t, D, model, k, twists, tendon, force);
    return;
  }
  for (int d = first; d < end; ++d) {
    if (model->tendon.type[tendon] == QD_TENDON_FIXED) {
      t->change[d - first] = 0.0;
      continue;
    }
    double change[2];
    const strand path = tendon_strand(t, model, tendon);
    path_move_along(&path, model, k, twists, model->tendon.dof[d]);
    strand_change(change, &path);
    t->change[d - first] = model->tendon.dof_counts[d] ? change[1] : 0.0;
    if (force != 0.0) {
      path_subtract_column(D, &path, model, k, force, model->tendon.dof[d]);
    }
  }
}

static void push_reach(double out[2], wrench *W, const tendons *t, const qd_model *model,
                       int tendon, double force, const tendon_direction *along) {
  const screw *motion = along->motion;
  const int *body = model->tendon.object + model->tendon.start[tendon];
  wrench own, slope, dW;
  tendon_reach_wrench(&own, t, model, tendon);
  tendon_reach_slope(&slope, t, model, tendon);
  turn_reach(&dW, t, model, tendon, motion + body[0], motion + body[1]);
  out[0] = out[1] = 0.0;
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? 1.0 : -1.0;
    out[0] += sign * screw_dot(motion + body[side], &slope);
    out[1] += sign * (screw_dot(along->delta + body[side], &dW) +
                      screw_dot(along->d_delta + body[side], &own));
    wrench_axpy(W + body[side], sign * force, &dW);
  }
}

void tendon_push(double out[2], wrench *W, const tendons *t, const qd_model *model, int tendon,
                 double force, const tendon_direction *along) {
  const int first = model->tendon.start[tendon];
  if (is_thrust(model, tendon)) {
    const int body = model->tendon.object[first];
    wrench own, dW;
    tendon_thrust_wrench(&own, t, model, tendon);
    screw_cross_wrench(&dW, along->motion + body, &own);
    out[0] = 0.0;
    out[1] = screw_dot(along->delta + body, &dW) + screw_dot(along->d_delta + body, &own);
    wrench_axpy(W + body, force, &dW);
    return;
  }
  if (is_reach(model, tendon)) {
    push_reach(out, W, t, model, tendon, force, along);
    return;
  }
  const strand path = tendon_strand(t, model, tendon);
  path_push(out, W, &path, force, along);
}
