#include "mechanics/tendon.h"

#include "base/quat.h"

void tendons_lay_out(tendons *t, const qd_model *model, arena *a) {
  const size_t points = (size_t)model->tendon_point_total;
  t->length = arena_doubles(a, (size_t)model->tendon_count);
  t->slope = arena_doubles(a, (size_t)model->tendon_dof_total);
  t->rate = arena_doubles(a, (size_t)model->tendon_dof_total);
  t->point = arena_take(a, points * sizeof(tendon_point));
  t->motion = arena_take(a, points * sizeof(tendon_motion));
  t->change = arena_doubles(a, model->tendon_count > 0 ? (size_t)model->nv : 0);
}

/* 1 if a line ends at point i: it is not the first of its tendon. */
static int has_before(const qd_model *model, int i) { return !model->tendon_point_first[i]; }

/* The pull of a unit force on the body of point i: towards neither neighbour. */
static void pull_at(double pull[3], const tendons *t, const qd_model *model, int i) {
  vec3_scale(pull, t->point[i].along, -1.0);
  if (has_before(model, i)) {
    vec3_axpy(pull, 1.0, t->point[i - 1].along);
  }
}

/* ---------------------------------------------------------------- lengths */

static double fixed_length(const qd_model *model, const double *q, int tendon) {
  double length = 0.0;
  for (int i = model->tendon_start[tendon]; i < model->tendon_start[tendon + 1]; ++i) {
    length += model->tendon_data[3 * i] * q[model->joint_q[model->tendon_object[i]]];
  }
  return length;
}

static double spatial_length(const tendons *t, const qd_model *model, const kinematics *k,
                             int tendon) {
  double length = 0.0;
  const int first = model->tendon_start[tendon], end = model->tendon_start[tendon + 1];
  for (int i = first; i < end; ++i) {
    const int body = model->tendon_object[i];
    mat3_mul_vec(t->point[i].pos, k->body_rot + 9 * body, model->tendon_data + 3 * i);
    vec3_axpy(t->point[i].pos, 1.0, k->body_pos + 3 * body);
  }
  for (int i = first; i < end; ++i) {
    tendon_point *here = t->point + i;
    here->distance = 0.0;
    vec3_set(here->along, 0.0, 0.0, 0.0);
    if (i + 1 < end) {
      vec3_sub(here->along, here[1].pos, here->pos);
      here->distance = vec3_norm(here->along);
      vec3_scale(here->along, here->along, here->distance > 0.0 ? 1.0 / here->distance : 0.0);
    }
    length += here->distance;
  }
  return length;
}

/* The point of a thrust, its force (`along` of the first) and its moment about the point (of the
 * second), in the world. */
static void place_thrust(const tendons *t, const qd_model *model, const kinematics *k, int tendon) {
  const int first = model->tendon_start[tendon], body = model->tendon_object[first];
  const double *R = k->body_rot + 9 * body, *data = model->tendon_data + 3 * first;
  mat3_mul_vec(t->point[first].pos, R, data);
  vec3_axpy(t->point[first].pos, 1.0, k->body_pos + 3 * body);
  mat3_mul_vec(t->point[first].along, R, data + 3);
  mat3_mul_vec(t->point[first + 1].along, R, data + 6);
}

static int is_thrust(const qd_model *model, int tendon) {
  return model->tendon_type[tendon] == QD_TENDON_THRUST;
}

static int is_reach(const qd_model *model, int tendon) {
  return model->tendon_type[tendon] == QD_TENDON_REACH;
}

int tendon_reach_turns(const qd_model *model, int tendon) {
  return model->tendon_start[tendon + 1] - model->tendon_start[tendon] == TURNING_POINTS;
}

/* By how much the first body of a reach is turned against the second one, theta = log(R_b' R_a C),
 * along an axis of the second. That axis in the world (`along` of the fourth point) is the couple
 * of a unit force, as MuJoCo has it; the length grows with the relative rotation along R_b
 * J(theta)^-T axis (`along` of the last point), J the left Jacobian of exp. */
static double place_turn(const tendons *t, const qd_model *model, const kinematics *k, int tendon) {
  const int first = model->tendon_start[tendon];
  const int a = model->tendon_object[first], b = model->tendon_object[first + 1];
  const double *data = model->tendon_data + 3 * first, *axis = data + 12;
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

/* The length of a reach: its two points, and its direction in the world (`along` of the first),
 * which the second point's body carries; and by how much one that turns is turned. */
static double place_reach(const tendons *t, const qd_model *model, const kinematics *k,
                          int tendon) {
  const int first = model->tendon_start[tendon];
  const int *body = model->tendon_object + first;
  const double *data = model->tendon_data + 3 * first;
  tendon_point *point = t->point + first;
  double way[3];
  for (int i = 0; i < 2; ++i) {
    mat3_mul_vec(point[i].pos, k->body_rot + 9 * body[i], data + 3 * i);
    vec3_axpy(point[i].pos, 1.0, k->body_pos + 3 * body[i]);
  }
  mat3_mul_vec(point->along, k->body_rot + 9 * body[1], data + 6);
  vec3_sub(way, point[0].pos, point[1].pos);
  const double turned = tendon_reach_turns(model, tendon) ? place_turn(t, model, k, tendon) : 0.0;
  return vec3_dot(point->along, way) + turned;
}

/* Its force, and one of the couples of a reach that turns. */
static void reach_wrench(wrench *W, const tendons *t, const qd_model *model, int tendon,
                         int couple) {
  const tendon_point *point = t->point + model->tendon_start[tendon];
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
  const tendon_point *point = t->point + model->tendon_start[tendon];
  vec3_copy(W->f, point->along);
  vec3_cross(W->m, point->pos, W->f);
  vec3_axpy(W->m, 1.0, point[1].along);
}

static int on_path(const qd_model *model, int body, int dof) {
  int count;
  const int *chain = body_chain(model, body, &count);
  for (int c = 0; c < count; ++c) {
    if (chain[c] == dof) {
      return 1;
    }
  }
  return 0;
}

/* 1 if a DOF moves the first point of a reach alone, -1 the second alone, else 0. */
static double reach_share(const qd_model *model, int tendon, int dof) {
  const int *body = model->tendon_object + model->tendon_start[tendon];
  return on_path(model, body[0], dof) - on_path(model, body[1], dof);
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
  for (int i = model->tendon_start[tendon]; i < model->tendon_start[tendon + 1]; ++i) {
    const int object = model->tendon_object[i];
    if (model->tendon_type[tendon] == QD_TENDON_FIXED) {
      rate += model->joint_v[object] == dof ? model->tendon_data[3 * i] : 0.0;
    } else if (on_path(model, object, dof)) {
      double velocity[3], pull[3];
      screw_point_velocity(velocity, k->dof_screw + dof, t->point[i].pos);
      pull_at(pull, t, model, i);
      rate += vec3_dot(pull, velocity);
    }
  }
  return rate;
}

/* The same of the length, where it differs. */
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
  for (int tendon = 0; tendon < model->tendon_count; ++tendon) {
    t->length[tendon] = 0.0;
    if (is_thrust(model, tendon)) {
      place_thrust(t, model, k, tendon);
    } else if (is_reach(model, tendon)) {
      t->length[tendon] = place_reach(t, model, k, tendon);
    } else {
      t->length[tendon] = model->tendon_type[tendon] == QD_TENDON_FIXED
                              ? fixed_length(model, q, tendon)
                              : spatial_length(t, model, k, tendon);
    }
    for (int d = model->tendon_dof_start[tendon]; d < model->tendon_dof_start[tendon + 1]; ++d) {
      const int dof = model->tendon_dof[d];
      t->rate[d] = model->tendon_dof_counts[d] ? rate_of(t, model, k, tendon, dof) : 0.0;
      t->slope[d] =
          model->tendon_dof_counts[d] ? slope_of(t, model, k, tendon, dof, t->rate[d]) : 0.0;
    }
  }
}

double tendon_rate(const tendons *t, const qd_model *model, int tendon, int dof) {
  for (int d = model->tendon_dof_start[tendon]; d < model->tendon_dof_start[tendon + 1]; ++d) {
    if (model->tendon_dof[d] == dof) {
      return t->rate[d];
    }
  }
  return 0.0;
}

/* ---------------------------------------------------------------- forces */

void tendon_point_wrench(wrench *W, const tendons *t, const qd_model *model, int i, double force) {
  pull_at(W->f, t, model, i);
  vec3_scale(W->f, W->f, force);
  vec3_cross(W->m, t->point[i].pos, W->f);
}

void tendon_add_wrenches(wrench *W, const tendons *t, const qd_model *model, int tendon,
                         double force) {
  wrench on_body;
  if (model->tendon_type[tendon] == QD_TENDON_FIXED) {
    return;
  }
  if (is_thrust(model, tendon)) {
    tendon_thrust_wrench(&on_body, t, model, tendon);
    wrench_axpy(W + model->tendon_object[model->tendon_start[tendon]], force, &on_body);
    return;
  }
  if (is_reach(model, tendon)) {
    const int *body = model->tendon_object + model->tendon_start[tendon];
    tendon_reach_wrench(&on_body, t, model, tendon);
    wrench_axpy(W + body[0], force, &on_body);
    wrench_axpy(W + body[1], -force, &on_body);
    return;
  }
  for (int i = model->tendon_start[tendon]; i < model->tendon_start[tendon + 1]; ++i) {
    tendon_point_wrench(&on_body, t, model, i, force);
    wrench_axpy(W + model->tendon_object[i], 1.0, &on_body);
  }
}

/* ---------------------------------------------------------------- derivatives */

/* out = (change of what leads from point i to the next) across the line, over its length: how much
 * the line turns */
static void turn_of(double out[3], const tendon_point *point, const double change[3]) {
  vec3_copy(out, change);
  vec3_axpy(out, -vec3_dot(point->along, change), point->along);
  vec3_scale(out, out, point->distance > 0.0 ? 1.0 / point->distance : 0.0);
}

/* d (length) and d (rate.delta) from what is known of the points' motions; fills their d_pull. */
static void change_of(double out[2], const tendons *t, const qd_model *model, int tendon) {
  const int first = model->tendon_start[tendon], end = model->tendon_start[tendon + 1];
  out[0] = out[1] = 0.0;
  for (int i = first; i < end; ++i) {
    vec3_set(t->motion[i].d_pull, 0.0, 0.0, 0.0);
  }
  for (int i = first; i + 1 < end; ++i) {
    const tendon_point *point = t->point + i;
    tendon_motion *here = t->motion + i, *next = here + 1;
    double d_line[3], d_along[3], way[3], d_way[3];
    vec3_sub(d_line, next->d_pos, here->d_pos);
    vec3_sub(way, next->velocity, here->velocity);
    vec3_sub(d_way, next->d_velocity, here->d_velocity);
    turn_of(d_along, point, d_line);
    out[0] += vec3_dot(point->along, d_line);
    out[1] += vec3_dot(point->along, d_way) + vec3_dot(d_along, way);
    vec3_axpy(here->d_pull, -1.0, d_along);
    vec3_axpy(next->d_pull, 1.0, d_along);
  }
}

/* What a motion of its body, and a change of that body's twist under delta, do to a point. */
static void move_point(tendon_motion *m, const double pos[3], const screw *delta,
                       const screw *motion, const screw *d_delta) {
  double part[3];
  screw_point_velocity(m->velocity, delta, pos);
  screw_point_velocity(m->d_pos, motion, pos);
  screw_point_velocity(m->d_velocity, d_delta, pos);
  vec3_cross(part, delta->w, m->d_pos);
  vec3_axpy(m->d_velocity, 1.0, part);
}

/* dW of the wrench that a force has on the body of point i */
static void changed_wrench(wrench *dW, const tendons *t, const qd_model *model, int i,
                           double force) {
  double pull[3], part[3];
  pull_at(pull, t, model, i);
  vec3_scale(dW->f, t->motion[i].d_pull, force);
  vec3_cross(dW->m, t->point[i].pos, dW->f);
  vec3_cross(part, t->motion[i].d_pos, pull);
  vec3_axpy(dW->m, force, part);
}

/* Points move with DOF j, which moves all that is behind it. */
static void move_points_along(const tendons *t, const qd_model *model, const kinematics *k,
                              const tendon_twists *twists, int tendon, int j) {
  static const screw still = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  for (int i = model->tendon_start[tendon]; i < model->tendon_start[tendon + 1]; ++i) {
    const int body = model->tendon_object[i], moves = on_path(model, body, j);
    screw behind = still;
    if (moves) {
      screw_sub(&behind, twists->body + body, twists->unmoved + j);
      screw_bracket(&behind, k->dof_screw + j, &behind);
    }
    move_point(t->motion + i, t->point[i].pos, twists->body + body,
               moves ? k->dof_screw + j : &still, &behind);
  }
}

/* Column j of D -= what the points' motion does to the force's generalised forces */
static void subtract_column(const dof_matrix *D, const tendons *t, const qd_model *model,
                            const kinematics *k, int tendon, double force, int j) {
  for (int i = model->tendon_start[tendon]; i < model->tendon_start[tendon + 1]; ++i) {
    wrench dW;
    int count;
    const int *chain = body_chain(model, model->tendon_object[i], &count);
    changed_wrench(&dW, t, model, i, force);
    for (int c = 0; c < count; ++c) {
      *dof_matrix_at(D, chain[c], j) -= screw_dot(k->dof_screw + chain[c], &dW);
    }
  }
}

/* The wrench moves with its body: by DOF j as S_j x* W, and its power of the twist behind j by
 * -W.(S_j x P_j), P_j what j does not move. */
static void linearize_thrust(const tendons *t, const dof_matrix *D, const qd_model *model,
                             const kinematics *k, const tendon_twists *twists, int tendon,
                             double force) {
  const int first = model->tendon_dof_start[tendon], end = model->tendon_dof_start[tendon + 1];
  wrench W;
  tendon_thrust_wrench(&W, t, model, tendon);
  for (int d = first; d < end; ++d) {
    const int j = model->tendon_dof[d];
    screw turned;
    wrench dW;
    screw_bracket(&turned, k->dof_screw + j, twists->unmoved + j);
    t->change[d - first] = -screw_dot(&turned, &W);
    screw_cross_wrench(&dW, k->dof_screw + j, &W);
    for (int c = first; c < end && force != 0.0; ++c) {
      *dof_matrix_at(D, model->tendon_dof[c], j) -=
          force * screw_dot(k->dof_screw + model->tendon_dof[c], &dW);
    }
  }
}

/* dW as the point of a reach moves with one screw, and its direction and axis with another one. */
static void turn_reach(wrench *dW, const tendons *t, const qd_model *model, int tendon,
                       const screw *with_point, const screw *with_direction) {
  const tendon_point *point = t->point + model->tendon_start[tendon];
  double d_pos[3], part[3];
  vec3_cross(dW->f, with_direction->w, point->along);
  vec3_cross(dW->m, point->pos, dW->f);
  screw_point_velocity(d_pos, with_point, point->pos);
  vec3_cross(part, d_pos, point->along);
  vec3_axpy(dW->m, 1.0, part);
  if (tendon_reach_turns(model, tendon)) {
    vec3_cross(part, with_direction->w, point[3].along);
    vec3_axpy(dW->m, 1.0, part);
  }
}

/* What is behind DOF j of each body moves with it, and so do point and direction. */
static void linearize_reach(const tendons *t, const dof_matrix *D, const qd_model *model,
                            const kinematics *k, const tendon_twists *twists, int tendon,
                            double force) {
  static const screw still = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  const int first = model->tendon_dof_start[tendon], end = model->tendon_dof_start[tendon + 1];
  const int *body = model->tendon_object + model->tendon_start[tendon];
  wrench W;
  tendon_reach_wrench(&W, t, model, tendon);
  for (int d = first; d < end; ++d) {
    const int j = model->tendon_dof[d];
    const screw *with[2];
    double change = 0.0;
    wrench dW;
    for (int side = 0; side < 2; ++side) {
      with[side] = on_path(model, body[side], j) ? k->dof_screw + j : &still;
    }
    turn_reach(&dW, t, model, tendon, with[0], with[1]);
    for (int side = 0; side < 2; ++side) {
      const double sign = side == 0 ? 1.0 : -1.0;
      screw behind;
      screw_sub(&behind, twists->body + body[side], twists->unmoved + j);
      screw_bracket(&behind, with[side], &behind);
      change += sign * (screw_dot(twists->body + body[side], &dW) + screw_dot(&behind, &W));
    }
    t->change[d - first] = model->tendon_dof_counts[d] ? change : 0.0;
    for (int c = first; c < end && force != 0.0; ++c) {
      const int dof = model->tendon_dof[c];
      *dof_matrix_at(D, dof, j) -=
          force * reach_share(model, tendon, dof) * screw_dot(k->dof_screw + dof, &dW);
    }
  }
}

void tendon_linearize(const tendons *t, const dof_matrix *D, const qd_model *model,
                      const kinematics *k, const tendon_twists *twists, int tendon, double force) {
  const int first = model->tendon_dof_start[tendon], end = model->tendon_dof_start[tendon + 1];
  if (is_thrust(model, tendon)) {
    linearize_thrust(t, D, model, k, twists, tendon, force);
    return;
  }
  if (is_reach(model, tendon)) {
    linearize_reach(t, D, model, k, twists, tendon, force);
    return;
  }
  for (int d = first; d < end; ++d) {
    if (model->tendon_type[tendon] == QD_TENDON_FIXED) {
      t->change[d - first] = 0.0;
      continue;
    }
    move_points_along(t, model, k, twists, tendon, model->tendon_dof[d]);
    double change[2];
    change_of(change, t, model, tendon);
    t->change[d - first] = model->tendon_dof_counts[d] ? change[1] : 0.0;
    if (force != 0.0) {
      subtract_column(D, t, model, k, tendon, force, model->tendon_dof[d]);
    }
  }
}

static void push_reach(double out[2], wrench *W, const tendons *t, const qd_model *model,
                       int tendon, double force, const screw *delta, const screw *motion,
                       const screw *d_delta) {
  const int *body = model->tendon_object + model->tendon_start[tendon];
  wrench own, slope, dW;
  tendon_reach_wrench(&own, t, model, tendon);
  tendon_reach_slope(&slope, t, model, tendon);
  turn_reach(&dW, t, model, tendon, motion + body[0], motion + body[1]);
  out[0] = out[1] = 0.0;
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? 1.0 : -1.0;
    out[0] += sign * screw_dot(motion + body[side], &slope);
    out[1] += sign * (screw_dot(delta + body[side], &dW) + screw_dot(d_delta + body[side], &own));
    wrench_axpy(W + body[side], sign * force, &dW);
  }
}

void tendon_push(double out[2], wrench *W, const tendons *t, const qd_model *model, int tendon,
                 double force, const screw *delta, const screw *motion, const screw *d_delta) {
  const int first = model->tendon_start[tendon], end = model->tendon_start[tendon + 1];
  if (is_thrust(model, tendon)) {
    const int body = model->tendon_object[first];
    wrench own, dW;
    tendon_thrust_wrench(&own, t, model, tendon);
    screw_cross_wrench(&dW, motion + body, &own);
    out[0] = 0.0;
    out[1] = screw_dot(delta + body, &dW) + screw_dot(d_delta + body, &own);
    wrench_axpy(W + body, force, &dW);
    return;
  }
  if (is_reach(model, tendon)) {
    push_reach(out, W, t, model, tendon, force, delta, motion, d_delta);
    return;
  }
  for (int i = first; i < end; ++i) {
    const int body = model->tendon_object[i];
    move_point(t->motion + i, t->point[i].pos, delta + body, motion + body, d_delta + body);
  }
  change_of(out, t, model, tendon);
  for (int i = first; i < end; ++i) {
    wrench dW;
    changed_wrench(&dW, t, model, i, force);
    wrench_axpy(W + model->tendon_object[i], 1.0, &dW);
  }
}

/* out += sign cotangent of the end of the line behind point i, by the line's direction */
static void pull_line(double out[3], double sign, const tendons *t, const qd_model *model, int i,
                      double force, double cotangent, const screw *z, const screw *delta) {
  const tendon_point *here = t->point + i, *next = here + 1;
  const int a = model->tendon_object[i], b = model->tendon_object[i + 1];
  double va[3], vb[3], way[3], turned[3];
  screw_point_velocity(va, z + a, here->pos);
  screw_point_velocity(vb, z + b, next->pos);
  vec3_sub(way, vb, va);
  vec3_scale(way, way, force);
  screw_point_velocity(va, delta + a, here->pos);
  screw_point_velocity(vb, delta + b, next->pos);
  vec3_axpy(way, cotangent, vb);
  vec3_axpy(way, -cotangent, va);
  turn_of(turned, here, way);
  vec3_axpy(out, sign, turned);
}

void tendon_pull(double on_point[3], const tendons *t, const qd_model *model, int i, double force,
                 const double cotangent[2], const screw *z, const screw *delta) {
  const int body = model->tendon_object[i];
  double pull[3], turning[3];
  pull_at(pull, t, model, i);
  vec3_scale(turning, z[body].w, force);
  vec3_axpy(turning, cotangent[1], delta[body].w);
  vec3_cross(on_point, pull, turning);
  vec3_axpy(on_point, cotangent[0], pull);
  if (has_before(model, i)) {
    pull_line(on_point, 1.0, t, model, i - 1, force, cotangent[1], z, delta);
  }
  if (t->point[i].distance > 0.0) {
    pull_line(on_point, -1.0, t, model, i, force, cotangent[1], z, delta);
  }
}
