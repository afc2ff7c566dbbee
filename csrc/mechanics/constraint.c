#include "mechanics/constraint.h"

#include <math.h>

#include "base/quat.h"

int constraint_row_count(int constraint_type) {
  static const int counts[] = {3, 6, 1, 1};
  return counts[constraint_type];
}

/* y1 - r1 = sum a_i (y2 - r2)^i; y[1] and r[1] are unused if there is no second one */
static void compute_coupling(constraint_state *s, const double y[2], const double r[2],
                             int has_second, const double *a) {
  const double x = has_second ? y[1] - r[1] : 0.0;
  const double value = a[0] + x * (a[1] + x * (a[2] + x * (a[3] + x * a[4])));
  const double slope = a[1] + x * (2.0 * a[2] + x * (3.0 * a[3] + x * 4.0 * a[4]));
  s->slope = has_second ? slope : 0.0;
  s->curvature = has_second ? 2.0 * a[2] + x * (6.0 * a[3] + x * 12.0 * a[4]) : 0.0;
  s->violation[0] = y[0] - r[0] - value;
}

static void couple_joints(constraint_state *s, const qd_model *model, const double *q,
                          const int *joint, const double *a) {
  double y[2] = {0.0}, ref[2] = {0.0};
  for (int k = 0; k < 2 && joint[k] >= 0; ++k) {
    s->dof[k] = model->joint.v[joint[k]];
    y[k] = q[model->joint.q[joint[k]]];
    ref[k] = model->joint.ref[joint[k]];
  }
  compute_coupling(s, y, ref, joint[1] >= 0, a);
}

static void couple_tendons(constraint_state *s, const int *tendon, const double *data) {
  double length[2] = {0.0};
  for (int k = 0; k < 2 && tendon[k] >= 0; ++k) {
    s->tendon[k] = tendon[k];
    length[k] = s->t->length[tendon[k]];
  }
  compute_coupling(s, length, data + 5, tendon[1] >= 0, data);
}

/* quat = R2 (R1 R)^-1: orientation of body 2 relative to its target */
static void weld_turn(double quat[4], const kinematics *k, const int *body,
                      const double *relative) {
  double wanted[4];
  quat_mul(wanted, k->body_quat + 4 * body[0], relative);
  const double inverse[4] = {wanted[0], -wanted[1], -wanted[2], -wanted[3]};
  quat_mul(quat, k->body_quat + 4 * body[1], inverse);
  quat_normalize(quat);
}

/* The nearest common ancestor: parents have smaller indices than children. */
static int carrier_of(const qd_model *model, int a, int b) {
  while (a != b) {
    if (a > b) {
      a = model->body.parent[a];
    } else {
      b = model->body.parent[b];
    }
  }
  return a;
}

void constraint_compute(constraint_state *s, const qd_model *model, const kinematics *k,
                        const tendons *t, const double *q, int index, int by_quaternion) {
  const int type = model->constraint.type[index];
  const int *object = model->constraint.object + 2 * index;
  const double *data = model->constraint.data + CONSTRAINT_DATA * index;
  memset(s, 0, sizeof *s);
  s->rows = constraint_row_count(type);
  s->dof[0] = s->dof[1] = s->tendon[0] = s->tendon[1] = -1;
  s->t = t;
  if (type == QD_COUPLING) {
    couple_joints(s, model, q, object, data);
    return;
  }
  if (type == QD_TENDON_COUPLING) {
    couple_tendons(s, object, data);
    return;
  }
  for (int side = 0; side < 2; ++side) {
    const int body = s->body[side] = object[side];
    mat3_mul_add(s->anchor[side], k->body_rot + 9 * body, data + 3 * side, k->body_pos + 3 * body);
  }
  s->by_quaternion = by_quaternion;
  s->body[2] = by_quaternion ? 0 : carrier_of(model, s->body[0], s->body[1]);
  vec3_sub(s->violation, s->anchor[1], s->anchor[0]);
  if (type == QD_WELD) {
    weld_turn(s->half, k, s->body, data + 6);
    quat_log(s->turn, s->half);
    s->scale = model->constraint.torquescale[index];
    if (by_quaternion) {
      vec3_scale(s->violation + 3, s->half + 1, s->scale);
    } else {
      vec3_copy(s->violation + 3, s->turn);
    }
  }
}

/* Number of entries of a part of the violation: 3, or 1 for a coupling. */
static int part_size(const constraint_state *s) { return s->rows == 1 ? 1 : 3; }

int constraint_cap(constraint_state *s, double most) {
  int count = 0;
  for (int part = 0; 3 * part < s->rows; ++part) {
    double *violation = s->violation + 3 * part, squared = 0.0;
    for (int i = 0; i < part_size(s); ++i) {
      squared += violation[i] * violation[i];
    }
    const double length = sqrt(squared);
    if (length <= most) {
      continue;
    }
    s->capped[part] = 1;
    s->share[part] = most / length;
    ++count;
    for (int i = 0; i < part_size(s); ++i) {
      s->unit[part][i] = violation[i] / length;
      violation[i] = most * s->unit[part][i];
    }
  }
  return count;
}

void constraint_cap_change(const constraint_state *s, int part, double *change) {
  const double *unit = s->unit[part];
  double along = 0.0;
  for (int i = 0; s->capped[part] && i < part_size(s); ++i) {
    along += unit[i] * change[i];
  }
  for (int i = 0; s->capped[part] && i < part_size(s); ++i) {
    change[i] = s->share[part] * (change[i] - along * unit[i]);
  }
}

/* ---------------------------------------------------------------- MuJoCo's quaternion rows */

static void apply_half(double out[3], double scale, const double half[4], const double x[3],
                       double side) {
  double across[3], result[3];
  vec3_cross(across, half + 1, x);
  vec3_scale(result, x, 0.5 * scale * half[0]);
  vec3_axpy(result, 0.5 * scale * side, across);
  vec3_copy(out, result);
}

void constraint_turn_rows(const constraint_state *s, double turning[3]) {
  if (s->by_quaternion) {
    apply_half(turning, s->scale, s->half, turning, 1.0);
  }
}

void constraint_turn_moment(const constraint_state *s, double moment[3]) {
  if (s->by_quaternion) {
    apply_half(moment, s->scale, s->half, moment, -1.0);
  }
}

void constraint_turn_change(double out[3], const constraint_state *s, const double change[4],
                            const double x[3], int moment) {
  apply_half(out, s->scale, change, x, moment ? -1.0 : 1.0);
}

/* ds = -n.(w2 - w1) / 2, dn = s (w2 - w1) / 2 + (w2 + w1) x n / 2 */
void constraint_half_change(double out[4], const constraint_state *s, const double w1[3],
                            const double w2[3]) {
  double apart[3], both[3];
  vec3_sub(apart, w2, w1);
  vec3_add(both, w2, w1);
  out[0] = -0.5 * vec3_dot(s->half + 1, apart);
  vec3_cross(out + 1, both, s->half + 1);
  vec3_axpy(out + 1, s->half[0], apart);
  vec3_scale(out + 1, out + 1, 0.5);
}

void constraint_half_pull(double out[2][3], const constraint_state *s, const double cotangent[4]) {
  double across[3];
  vec3_cross(across, s->half + 1, cotangent + 1);
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -0.5 : 0.5;
    vec3_axpy(out[side], -sign * cotangent[0], s->half + 1);
    vec3_axpy(out[side], sign * s->half[0], cotangent + 1);
    vec3_axpy(out[side], 0.5, across);
  }
}

/* A body's velocity and acceleration. */
typedef struct moving_body {
  screw T, A;
} moving_body;

/* Acceleration of a point fixed to the body. */
static void point_drift(double out[3], const moving_body *b, const double x[3]) {
  double velocity[3];
  screw_point_velocity(out, &b->A, x);
  screw_point_velocity(velocity, &b->T, x);
  vec3_add_cross(out, 1.0, b->T.w, velocity);
}

/* Change of the point's acceleration for changes d of the motions, and dx of the point. */
static void point_drift_change(double out[3], const moving_body *b, const moving_body *d,
                               const double x[3], const double dx[3]) {
  double velocity[3];
  screw_point_velocity(out, &d->A, x);
  vec3_add_cross(out, 1.0, b->A.w, dx);
  screw_point_velocity(velocity, &b->T, x);
  vec3_add_cross(out, 1.0, d->T.w, velocity);
  screw_point_velocity(velocity, &d->T, x);
  vec3_add_cross(velocity, 1.0, b->T.w, dx);
  vec3_add_cross(out, 1.0, b->T.w, velocity);
}

/* out += W(half) x; W is linear in the half. */
static void add_turn_rows(double out[3], const constraint_state *s, const double half[4],
                          const double x[3]) {
  double part[3];
  constraint_turn_change(part, s, half, x, 0);
  vec3_axpy(out, 1.0, part);
}

/* d/dt (W (w2 - w1)) in the frame of body 2: W (a2 - a1) + W' (w2 - w1) - w2 x W (w2 - w1). */
static void turn_drift(double out[3], const constraint_state *s, const moving_body b[2]) {
  double apart[3], half[4], seen[3] = {0.0, 0.0, 0.0};
  constraint_half_change(half, s, b[0].T.w, b[1].T.w);
  vec3_set(out, 0.0, 0.0, 0.0);
  vec3_sub(apart, b[1].A.w, b[0].A.w);
  add_turn_rows(out, s, s->half, apart);
  vec3_sub(apart, b[1].T.w, b[0].T.w);
  add_turn_rows(out, s, half, apart);
  add_turn_rows(seen, s, s->half, apart);
  vec3_add_cross(out, -1.0, b[1].T.w, seen);
}

/* Change of turn_drift for changes d_half of the half, and d of the bodies' motions. */
static void turn_drift_change(double out[3], const constraint_state *s, const moving_body b[2],
                              const moving_body d[2], const double d_half[4]) {
  constraint_state moved = *s; /* `half` holds the change */
  double apart[3], d_apart[3], rate[4], d_rate[4], seen[3] = {0.0}, d_seen[3] = {0.0};
  memcpy(moved.half, d_half, sizeof moved.half);
  constraint_half_change(rate, s, b[0].T.w, b[1].T.w);
  constraint_half_change(d_rate, s, d[0].T.w, d[1].T.w);
  constraint_half_change(moved.half, &moved, b[0].T.w, b[1].T.w);
  for (int i = 0; i < 4; ++i) {
    d_rate[i] += moved.half[i];
  }
  vec3_set(out, 0.0, 0.0, 0.0);
  vec3_sub(apart, b[1].A.w, b[0].A.w);
  vec3_sub(d_apart, d[1].A.w, d[0].A.w);
  add_turn_rows(out, s, d_half, apart);
  add_turn_rows(out, s, s->half, d_apart);
  vec3_sub(apart, b[1].T.w, b[0].T.w);
  vec3_sub(d_apart, d[1].T.w, d[0].T.w);
  add_turn_rows(out, s, d_rate, apart);
  add_turn_rows(out, s, rate, d_apart);
  add_turn_rows(seen, s, s->half, apart);
  add_turn_rows(d_seen, s, d_half, apart);
  add_turn_rows(d_seen, s, s->half, d_apart);
  vec3_add_cross(out, -1.0, d[1].T.w, seen);
  vec3_add_cross(out, -1.0, b[1].T.w, d_seen);
}

static void find_bodies(moving_body b[2], const constraint_state *s, const body_motion *m) {
  for (int side = 0; side < 2; ++side) {
    b[side].T = m->velocity.body[s->body[side]];
    b[side].A = m->acceleration.body[s->body[side]];
  }
}

void constraint_drift(double *out, const constraint_state *s, const body_motion *m) {
  moving_body b[2];
  double on[2][3];
  find_bodies(b, s, m);
  for (int side = 0; side < 2; ++side) {
    point_drift(on[side], b + side, s->anchor[side]);
  }
  vec3_sub(out, on[1], on[0]);
  if (s->rows == 6) {
    turn_drift(out + 3, s, b);
  }
}

/* Changes of T and A; T_j and A_j are the parts of them that DOF j does not move:
 *   by q_j: dT = S_j x (T - T_j), dA = S_j x (A - A_j) - (S_j x T_j) x (T - T_j);
 *   by v_j: dT = S_j, dA = before_j x S_j + S_j x (T - T_j). */
static void body_changes(moving_body *by_q, moving_body *by_v, const moving_body *b,
                         const kinematics *k, const body_motion *m, int j) {
  const screw *S = k->dof_screw + j;
  screw behind, turned, part;
  screw_sub(&behind, &b->T, m->velocity.unmoved + j);
  screw_bracket(&by_q->T, S, &behind);
  screw_bracket(&turned, S, m->velocity.unmoved + j);
  screw_bracket(&part, &turned, &behind);
  screw_sub(&behind, &b->A, m->acceleration.unmoved + j);
  screw_bracket(&by_q->A, S, &behind);
  screw_axpy(&by_q->A, -1.0, &part);
  by_v->T = *S;
  screw_bracket(&by_v->A, m->before + j, S);
  screw_axpy(&by_v->A, 1.0, &by_q->T);
}

int constraint_next_dof(constraint_walk *walk, const constraint_state *s, const qd_model *model) {
  for (; walk->side < 2; ++walk->side, walk->at = 0) {
    const int_list chain = body_chain(model, s->body[walk->side]);
    while (walk->at < chain.count) {
      const int j = chain.at[walk->at++];
      if (walk->side == 0 || !body_is_behind(model, s->body[0], j)) {
        return j;
      }
    }
  }
  return -1;
}

void constraint_drift_derivative(double *by_q, double *by_v, const constraint_state *s,
                                 const qd_model *model, const kinematics *k, const body_motion *m,
                                 int j) {
  static const double none[3] = {0.0, 0.0, 0.0};
  static const double no_half[4] = {0.0, 0.0, 0.0, 0.0};
  moving_body b[2], d_q[2], d_v[2];
  double moved[2][3] = {{0.0}}, on_q[2][3], on_v[2][3], half[4];
  const double *turned[2] = {none, none};
  memset(d_q, 0, sizeof d_q);
  memset(d_v, 0, sizeof d_v);
  find_bodies(b, s, m);
  for (int side = 0; side < 2; ++side) {
    if (body_is_behind(model, s->body[side], j)) {
      body_changes(d_q + side, d_v + side, b + side, k, m, j);
      screw_point_velocity(moved[side], k->dof_screw + j, s->anchor[side]);
      turned[side] = k->dof_screw[j].w;
    }
    point_drift_change(on_q[side], b + side, d_q + side, s->anchor[side], moved[side]);
    point_drift_change(on_v[side], b + side, d_v + side, s->anchor[side], none);
  }
  vec3_sub(by_q, on_q[1], on_q[0]);
  vec3_sub(by_v, on_v[1], on_v[0]);
  if (s->rows == 6) {
    constraint_half_change(half, s, turned[0], turned[1]);
    turn_drift_change(by_q + 3, s, b, d_q, half);
    turn_drift_change(by_v + 3, s, b, d_v, no_half);
  }
}

/* ---------------------------------------------------------------- columns */

void constraint_column(double *column, const constraint_state *s, const qd_model *model,
                       const kinematics *k, int dof) {
  memset(column, 0, (size_t)s->rows * sizeof(double));
  for (int side = 0; side < 2 && s->tendon[side] >= 0; ++side) {
    column[0] += constraint_tendon_share(s, side) * tendon_rate(s->t, model, s->tendon[side], dof);
  }
  if (s->tendon[0] >= 0) {
    return;
  }
  if (s->rows == 1) {
    column[0] = dof == s->dof[0] ? 1.0 : (dof == s->dof[1] ? -s->slope : 0.0);
    return;
  }
  if (body_is_behind(model, s->body[2], dof)) {
    return; /* a DOF that moves both bodies causes no relative motion */
  }
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    if (body_is_behind(model, s->body[side], dof)) {
      screw_add_point_velocity(column, sign, k->dof_screw + dof, s->anchor[side]);
      if (s->rows == 6) {
        vec3_axpy(column + 3, sign, k->dof_screw[dof].w);
      }
    }
  }
  if (s->rows == 6) {
    constraint_turn_rows(s, column + 3);
  }
}

/* d turn = J_l^-1(turn) (w2 - exp(turn) w1) if the bodies rotate with w1 and w2 */
static void add_turn_derivative(double out[3], const constraint_state *s, const double w[3],
                                int side) {
  double J[9], R[9], moved[3], part[3];
  rotation_left_jacobian_inverse(J, s->turn);
  rotation_exp(R, s->turn);
  mat3_mul_vec(moved, R, w);
  mat3_mul_vec(part, J, side == 0 ? moved : w);
  constraint_cap_change(s, 1, part);
  vec3_axpy(out, side == 0 ? -1.0 : 1.0, part);
}

/* Change of the twist of a body for DOF j, which rotates all parts of the twist that it moves. */
static void change_twist(screw *out, const kinematics *k, const constraint_motion *m, int body,
                         int j) {
  screw_sub(out, m->body_twist + body, m->unmoved_twist + j);
  screw_bracket(out, k->dof_screw + j, out);
}

/* Changes, for DOF j, of a weld's rows and violation in quaternion form. */
static void change_turn_rows(double row[3], double violation[3], const constraint_state *s,
                             const qd_model *model, const screw *S, const constraint_motion *m,
                             int j) {
  static const double none[3] = {0.0, 0.0, 0.0};
  const double *w1 = body_is_behind(model, s->body[0], j) ? S->w : none;
  const double *w2 = body_is_behind(model, s->body[1], j) ? S->w : none;
  double half[4], apart[3], part[3];
  constraint_half_change(half, s, w1, w2);
  vec3_sub(apart, m->body_twist[s->body[1]].w, m->body_twist[s->body[0]].w);
  constraint_turn_change(part, s, half, apart, 0);
  constraint_turn_rows(s, row);
  vec3_axpy(row, 1.0, part);
  vec3_scale(violation, half + 1, s->scale);
}

void constraint_motion_derivative(double *column, double *violation, const constraint_state *s,
                                  const qd_model *model, const kinematics *k,
                                  const constraint_motion *m, int j) {
  const screw *S = k->dof_screw + j;
  memset(column, 0, (size_t)s->rows * sizeof(double));
  memset(violation, 0, (size_t)s->rows * sizeof(double));
  screw carrier = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  if (body_is_behind(model, s->body[2], j)) {
    change_twist(&carrier, k, m, s->body[2], j);
  }
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    if (!body_is_behind(model, s->body[side], j)) {
      continue;
    }
    screw behind;
    double d_anchor[3], relative[3];
    change_twist(&behind, k, m, s->body[side], j);
    screw_point_velocity(d_anchor, S, s->anchor[side]);
    screw_add_point_velocity(column, sign, &behind, s->anchor[side]);
    vec3_add_cross(column, -sign, carrier.w, s->anchor[side]);
    vec3_sub(relative, m->body_twist[s->body[side]].w, m->body_twist[s->body[2]].w);
    vec3_add_cross(column, sign, relative, d_anchor);
    constraint_cap_change(s, 0, d_anchor);
    vec3_axpy(violation, sign, d_anchor);
    if (s->rows == 6) {
      vec3_axpy(column + 3, sign, behind.w);
    }
    if (s->rows == 6 && !s->by_quaternion) {
      add_turn_derivative(violation + 3, s, S->w, side);
    }
  }
  if (s->rows == 6 && s->by_quaternion) {
    change_turn_rows(column + 3, violation + 3, s, model, S, m, j);
  }
}

void constraint_turn_push(double out[3], const constraint_state *s, const double w[3], int side) {
  add_turn_derivative(out, s, w, side);
}

void constraint_turn_pull(double out[3], const constraint_state *s, const double cotangent[3],
                          int side) {
  double J[9], R[9], part[3], counted[3];
  vec3_copy(counted, cotangent);
  constraint_cap_change(s, 1, counted);
  rotation_left_jacobian_inverse(J, s->turn);
  mat3_tmul_vec(out, J, counted);
  if (side == 0) {
    rotation_exp(R, s->turn);
    mat3_tmul_vec(part, R, out);
    vec3_scale(out, part, -1.0);
  }
}

void constraint_wrenches(wrench W[CONSTRAINT_BODIES], const constraint_state *s,
                         const double *force) {
  memset(W, 0, CONSTRAINT_BODIES * sizeof *W);
  for (int side = 0; side < 2 && s->rows > 1; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    vec3_cross(W[side].m, s->anchor[side], force);
    vec3_scale(W[side].m, W[side].m, sign);
    vec3_axpy(W[side].f, sign, force);
    vec3_axpy(W[2].m, -1.0, W[side].m);
    if (s->rows == 6) {
      vec3_axpy(W[side].m, sign, force + 3);
    }
  }
}

/* The part of the derivative due to the motion of a weld's rotation rows. */
static void subtract_turning(const dof_matrix *D, const constraint_state *s, const qd_model *model,
                             const kinematics *k, const double turning[3]) {
  static const double none[3] = {0.0, 0.0, 0.0};
  for (int mover = 0; mover < 2; ++mover) {
    const int_list chain = body_chain(model, s->body[mover]);
    for (int c = 0; c < chain.count; ++c) {
      const double *w = k->dof_screw[chain.at[c]].w;
      double half[4], moment[3];
      constraint_half_change(half, s, mover == 0 ? w : none, mover == 1 ? w : none);
      constraint_turn_change(moment, s, half, turning, 1);
      for (int side = 0; side < 2; ++side) {
        const int_list dofs = body_chain(model, s->body[side]);
        for (int i = 0; i < dofs.count; ++i) {
          *dof_matrix_at(D, dofs.at[i], chain.at[c]) -=
              (side == 0 ? -1.0 : 1.0) * vec3_dot(k->dof_screw[dofs.at[i]].w, moment);
        }
      }
    }
  }
}

void constraint_subtract_force_derivative(const dof_matrix *D, const constraint_state *s,
                                          const qd_model *model, const kinematics *k,
                                          const double *force, const double *turning) {
  if (s->rows == 1) {
    if (s->dof[1] >= 0) {
      *dof_matrix_at(D, s->dof[1], s->dof[1]) += force[0] * s->curvature;
    }
    return;
  }
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    const int_list chain = body_chain(model, s->body[side]);
    for (int c = 0; c < chain.count; ++c) {
      double d_anchor[3], d_moment[3];
      screw_point_velocity(d_anchor, k->dof_screw + chain.at[c], s->anchor[side]);
      vec3_cross(d_moment, d_anchor, force);
      for (int i = 0; i < chain.count; ++i) {
        if (!body_is_behind(model, s->body[2], chain.at[i])) {
          *dof_matrix_at(D, chain.at[i], chain.at[c]) -=
              sign * vec3_dot(k->dof_screw[chain.at[i]].w, d_moment);
        }
      }
    }
  }
  if (s->by_quaternion && s->rows == 6) {
    subtract_turning(D, s, model, k, turning);
  }
}
