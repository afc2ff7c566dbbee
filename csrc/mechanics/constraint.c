#include "mechanics/constraint.h"

#include <math.h>

#include "base/quat.h"

int constraint_row_count(int constraint_type) {
  static const int counts[] = {3, 6, 1, 1};
  return counts[constraint_type];
}

/* y1 - r1 = sum a_i (y2 - r2)^i, y[1] and r[1] unused without a second one */
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
    s->dof[k] = model->joint_v[joint[k]];
    y[k] = q[model->joint_q[joint[k]]];
    ref[k] = model->joint_ref[joint[k]];
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

/* turn = log(R2 (R1 R)^-1): where body 2 is, seen from where it should be */
static void weld_turn(double turn[3], const kinematics *k, const int *body,
                      const double *relative) {
  double wanted[4], quat[4];
  quat_mul(wanted, k->body_quat + 4 * body[0], relative);
  const double inverse[4] = {wanted[0], -wanted[1], -wanted[2], -wanted[3]};
  quat_mul(quat, k->body_quat + 4 * body[1], inverse);
  quat_normalize(quat);
  quat_log(turn, quat);
}

/* The nearest body that carries both: parents come before children. */
static int carrier_of(const qd_model *model, int a, int b) {
  while (a != b) {
    if (a > b) {
      a = model->body_parent[a];
    } else {
      b = model->body_parent[b];
    }
  }
  return a;
}

void constraint_compute(constraint_state *s, const qd_model *model, const kinematics *k,
                        const tendons *t, const double *q, int index) {
  const int type = model->constraint_type[index];
  const int *object = model->constraint_object + 2 * index;
  const double *data = model->constraint_data + CONSTRAINT_DATA * index;
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
    mat3_mul_vec(s->anchor[side], k->body_rot + 9 * body, data + 3 * side);
    vec3_axpy(s->anchor[side], 1.0, k->body_pos + 3 * body);
  }
  s->body[2] = carrier_of(model, s->body[0], s->body[1]);
  vec3_sub(s->violation, s->anchor[1], s->anchor[0]);
  if (type == QD_WELD) {
    weld_turn(s->turn, k, s->body, data + 6);
    vec3_copy(s->violation + 3, s->turn);
  }
}

/* Numbers of a part of the violation: 3, or 1 of a coupling. */
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
    return; /* what carries both moves neither against the other */
  }
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    if (body_is_behind(model, s->body[side], dof)) {
      double velocity[3];
      screw_point_velocity(velocity, k->dof_screw + dof, s->anchor[side]);
      vec3_axpy(column, sign, velocity);
      if (s->rows == 6) {
        vec3_axpy(column + 3, sign, k->dof_screw[dof].w);
      }
    }
  }
}

/* d turn = J_l^-1(turn) (w2 - exp(turn) w1) when the bodies turn with w1 and w2 */
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

/* What DOF j does to the twist of a body that it moves: it turns what is behind it. */
static void change_twist(screw *out, const kinematics *k, const constraint_motion *m, int body,
                         int j) {
  screw_sub(out, m->body_twist + body, m->unmoved_twist + j);
  screw_bracket(out, k->dof_screw + j, out);
}

void constraint_motion_derivative(double *column, const constraint_state *s, const qd_model *model,
                                  const kinematics *k, const constraint_motion *m, int j) {
  const screw *S = k->dof_screw + j;
  memset(column, 0, (size_t)s->rows * sizeof(double));
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
    double d_anchor[3], part[3], relative[3];
    change_twist(&behind, k, m, s->body[side], j);
    screw_point_velocity(d_anchor, S, s->anchor[side]);
    screw_point_velocity(part, &behind, s->anchor[side]);
    vec3_axpy(column, sign, part);
    vec3_cross(part, carrier.w, s->anchor[side]);
    vec3_axpy(column, -sign, part);
    vec3_sub(relative, m->body_twist[s->body[side]].w, m->body_twist[s->body[2]].w);
    vec3_cross(part, relative, d_anchor);
    vec3_axpy(column, sign, part);
    constraint_cap_change(s, 0, d_anchor);
    vec3_axpy(column, sign, d_anchor);
    if (s->rows == 6) {
      vec3_axpy(column + 3, sign, behind.w);
      add_turn_derivative(column + 3, s, S->w, side);
    }
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

void constraint_subtract_force_derivative(const dof_matrix *D, const constraint_state *s,
                                          const qd_model *model, const kinematics *k,
                                          const double *force) {
  if (s->rows == 1) {
    if (s->dof[1] >= 0) {
      *dof_matrix_at(D, s->dof[1], s->dof[1]) += force[0] * s->curvature;
    }
    return;
  }
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    int count;
    const int *chain = body_chain(model, s->body[side], &count);
    for (int c = 0; c < count; ++c) {
      double d_anchor[3], d_moment[3];
      screw_point_velocity(d_anchor, k->dof_screw + chain[c], s->anchor[side]);
      vec3_cross(d_moment, d_anchor, force);
      for (int i = 0; i < count; ++i) {
        if (!body_is_behind(model, s->body[2], chain[i])) {
          *dof_matrix_at(D, chain[i], chain[c]) -=
              sign * vec3_dot(k->dof_screw[chain[i]].w, d_moment);
        }
      }
    }
  }
}
