#include "mechanics/kinematics.h"

#include "base/quat.h"

void kinematics_lay_out(kinematics *k, const qd_model *model, arena *a) {
  const size_t nb = (size_t)model->body.count;
  k->body_pos = arena_doubles(a, 3 * nb);
  k->body_quat = arena_doubles(a, 4 * nb);
  k->body_rot = arena_doubles(a, 9 * nb);
  k->dof_screw = arena_take(a, (size_t)model->nv * sizeof(screw));
}

/* Unit rotation about an axis through an anchor: v = -w x anchor = anchor x w */
static void set_rotation(screw *s, const double axis[3], const double anchor[3]) {
  vec3_copy(s->w, axis);
  vec3_cross(s->v, anchor, axis);
}

static void set_translation(screw *s, const double axis[3]) {
  vec3_set(s->w, 0.0, 0.0, 0.0);
  vec3_copy(s->v, axis);
}

/* A pose under construction: the joints of the body move it one after the other. */
typedef struct moving_pose {
  double pos[3];
  double quat[4];
  double rot[9];
} moving_pose;

static int is_zero(const double a[3]) { return a[0] == 0.0 && a[1] == 0.0 && a[2] == 0.0; }

/* Rotates the pose by the quaternion `turn` (in its own frame) about the anchor, which is given in
 * body and world frame. */
static void pose_turn(moving_pose *X, const double turn[4], const double anchor_B[3],
                      const double anchor_W[3]) {
  double offset[3];
  quat_mul(X->quat, X->quat, turn);
  quat_normalize(X->quat);
  quat_to_mat3(X->rot, X->quat);
  if (!is_zero(anchor_B)) {
    mat3_mul_vec(offset, X->rot, anchor_B);
    vec3_sub(X->pos, anchor_W, offset);
  }
}

static void apply_free(moving_pose *X, const double *q, screw *s) {
  vec3_copy(X->pos, q);
  for (int i = 0; i < 4; ++i) {
    X->quat[i] = q[3 + i];
  }
  quat_to_mat3(X->rot, X->quat);
  for (int i = 0; i < 3; ++i) {
    double axis[3] = {0.0, 0.0, 0.0};
    axis[i] = 1.0;
    set_translation(s + i, axis);
    set_rotation(s + 3 + i, axis, X->pos);
  }
}

static void apply_joint(const qd_model *model, int j, const double *q, moving_pose *X, screw *s) {
  const double *anchor_B = model->joint.pos + 3 * j;
  const double *axis_B = model->joint.axis + 3 * j;
  double anchor_W[3], axis_W[3], turn[4];
  vec3_copy(anchor_W, X->pos);
  if (!is_zero(anchor_B)) {
    mat3_mul_add(anchor_W, X->rot, anchor_B, X->pos);
  }
  switch (model->joint.type[j]) {
  case QD_HINGE: {
    const double half = 0.5 * (q[0] - model->joint.ref[j]), sine = sin(half);
    turn[0] = cos(half);
    vec3_scale(turn + 1, axis_B, sine);
    mat3_mul_vec(axis_W, X->rot, axis_B);
    set_rotation(s, axis_W, anchor_W);
    pose_turn(X, turn, anchor_B, anchor_W);
    break;
  }
  case QD_SLIDE:
    mat3_mul_vec(axis_W, X->rot, axis_B);
    set_translation(s, axis_W);
    vec3_axpy(X->pos, q[0] - model->joint.ref[j], axis_W);
    break;
  case QD_BALL:
    for (int i = 0; i < 3; ++i) {
      mat3_column(axis_W, X->rot, i);
      set_rotation(s + i, axis_W, anchor_W);
    }
    pose_turn(X, q, anchor_B, anchor_W);
    break;
  default:
    apply_free(X, q, s);
    break;
  }
}

/* The pose of a body's frame before its joints move it. */
static void pose_attach(moving_pose *X, const qd_model *model, const kinematics *k, int b) {
  const int parent = model->body.parent[b];
  const double *quat = model->body.quat + 4 * b;
  mat3_mul_add(X->pos, k->body_rot + 9 * parent, model->body.pos + 3 * b, k->body_pos + 3 * parent);
  if (quat[0] == 1.0 && is_zero(quat + 1)) {
    memcpy(X->quat, k->body_quat + 4 * parent, sizeof X->quat);
    memcpy(X->rot, k->body_rot + 9 * parent, sizeof X->rot);
  } else {
    quat_mul(X->quat, k->body_quat + 4 * parent, quat);
    quat_to_mat3(X->rot, X->quat);
  }
}

/* Sets the given pose of a mocap body: position, quaternion. */
static void pose_take(moving_pose *X, const double *pose) {
  vec3_copy(X->pos, pose);
  memcpy(X->quat, pose + 3, sizeof X->quat);
  quat_to_mat3(X->rot, X->quat);
}

void kinematics_compute(const qd_model *model, const double *q, const double *mocap,
                        kinematics *k) {
  vec3_set(k->body_pos, 0.0, 0.0, 0.0);
  const double identity[4] = {1.0, 0.0, 0.0, 0.0};
  memcpy(k->body_quat, identity, sizeof identity);
  quat_to_mat3(k->body_rot, identity);
  for (int b = 1; b < model->body.count; ++b) {
    moving_pose X;
    if (mocap != NULL && model->body.mocap[b] >= 0) {
      pose_take(&X, mocap + QD_POSE * model->body.mocap[b]);
    } else {
      pose_attach(&X, model, k, b);
    }
    for (int j = model->body.joint_start[b]; j < model->body.joint_start[b + 1]; ++j) {
      apply_joint(model, j, q + model->joint.q[j], &X, k->dof_screw + model->joint.v[j]);
    }
    memcpy(k->body_pos + 3 * b, X.pos, sizeof X.pos);
    memcpy(k->body_quat + 4 * b, X.quat, sizeof X.quat);
    memcpy(k->body_rot + 9 * b, X.rot, sizeof X.rot);
  }
}

void body_twist(screw *twist, const qd_model *model, const kinematics *k, int body,
                const double *delta) {
  const int_list chain = body_chain(model, body);
  memset(twist, 0, sizeof *twist);
  for (int i = 0; i < chain.count; ++i) {
    screw_axpy(twist, delta[chain.at[i]], k->dof_screw + chain.at[i]);
  }
}
