#include <math.h>

#include "mechanics/model.h"
#include "mechanics/spec/parts.h"
#include "mechanics/spec/spec_check.h"

/* Positive semidefinite up to rounding, by its principal minors. */
int is_inertia(const double *I) {
  const double scale = fabs(I[0]) + fabs(I[4]) + fabs(I[8]);
  const double asymmetry = fabs(I[1] - I[3]) + fabs(I[2] - I[6]) + fabs(I[5] - I[7]);
  if (asymmetry > 1e-9 * scale) {
    return 0;
  }
  const double minor = I[0] * I[4] - I[1] * I[3];
  const double det = I[0] * (I[4] * I[8] - I[5] * I[7]) - I[1] * (I[3] * I[8] - I[5] * I[6]) +
                     I[2] * (I[3] * I[7] - I[4] * I[6]);
  const double slack = -1e-9 * scale;
  return I[0] >= slack && I[4] >= slack && I[8] >= slack && minor >= slack * scale &&
         det >= slack * scale * scale;
}

static qd_status check_bodies(const qd_model_spec *s, const report *r) {
  if (s->body_count < 1 || s->body_parent[0] != 0) {
    return spec_fail(r, "body_parent", 0, "body 0 must be the world");
  }
  for (int b = 1; b < s->body_count; ++b) {
    if (s->body_parent[b] < 0 || s->body_parent[b] >= b) {
      return spec_fail(r, "body_parent", b, "parents must come before their children");
    }
  }
  TRY(spec_finite(r, "body_pos", s->body_pos, s->body_count, 3));
  TRY(spec_finite(r, "body_quat", s->body_quat, s->body_count, 4));
  TRY(spec_quats(r, "body_quat", s->body_quat, s->body_count));
  TRY(spec_finite(r, "body_invweight", s->body_invweight, s->body_count, 1));
  TRY(spec_finite(r, "body_turn_invweight", s->body_turn_invweight, s->body_count, 1));
  TRY(spec_finite(r, "body_gravcomp", s->body_gravcomp, s->body_count, 1));
  TRY(spec_not_negative(r, "body_mass", s->body_mass, s->body_count));
  TRY(spec_finite(r, "body_com", s->body_com, s->body_count, 3));
  TRY(spec_finite(r, "body_inertia", s->body_inertia, s->body_count, 9));
  for (int b = 0; b < s->body_count; ++b) {
    if (!is_inertia(s->body_inertia + 9 * b)) {
      return spec_fail(r, "body_inertia", b, "not symmetric positive semidefinite");
    }
  }
  return QD_OK;
}

/* A mocap body has no joints, and its parent is the world. */
static qd_status check_mocap(const qd_model_spec *s, const report *r) {
  for (int i = 0; i < s->mocap_count; ++i) {
    const int body = s->mocap_body[i];
    int joints = 0, twice = 0;
    for (int j = 0; j < s->joint_count; ++j) {
      joints += s->joint_body[j] == body;
    }
    for (int k = 0; k < i; ++k) {
      twice |= s->mocap_body[k] == body;
    }
    if (body < 1 || body >= s->body_count || s->body_parent[body] != 0 || joints > 0 || twice) {
      return spec_fail(r, "mocap_body", i,
                       "must be a child of the world without joints, named once");
    }
  }
  return QD_OK;
}

/* A free joint is the only joint of a body below the world. */
static qd_status check_joint_place(const qd_model_spec *s, int j, const report *r) {
  const int type = s->joint_type[j], body = s->joint_body[j];
  if (type < QD_HINGE || type > QD_FREE) {
    return spec_fail(r, "joint_type", j, "unknown joint type");
  }
  if (body < 1 || body >= s->body_count || (j > 0 && body < s->joint_body[j - 1])) {
    return spec_fail(r, "joint_body", j, "joints must be sorted by body, and the world has none");
  }
  if (type != QD_FREE) {
    return QD_OK;
  }
  if (s->body_parent[body] != 0) {
    return spec_fail(r, "joint_type", j, "a free joint's body must be a child of the world");
  }
  const int shares = (j > 0 && s->joint_body[j - 1] == body) ||
                     (j + 1 < s->joint_count && s->joint_body[j + 1] == body);
  return shares ? spec_fail(r, "joint_type", j, "a free joint must be the only one of its body")
                : QD_OK;
}

static qd_status check_joint_axis(const qd_model_spec *s, int j, const report *r) {
  const double *axis = s->joint_axis + 3 * j;
  const double norm = sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
  const int is_unit = fabs(norm - 1.0) <= 1e-6;
  return s->joint_type[j] > QD_SLIDE || is_unit
             ? QD_OK
             : spec_fail(r, "joint_axis", j, "not a unit vector");
}

static qd_status check_joint_range(const qd_model_spec *s, int j, const report *r) {
  const double *range = s->joint_range + 2 * j;
  if (range_is_empty(range)) {
    return spec_fail(r, "joint_range", j, "lower must not exceed upper");
  }
  if (s->joint_type[j] == QD_FREE && (isfinite(range[0]) || isfinite(range[1]))) {
    return spec_fail(r, "joint_type", j, "a free joint has no limits");
  }
  if (s->joint_type[j] == QD_BALL &&
      ((isfinite(range[0]) && range[0] != 0.0) || !(range[1] > 0.0))) {
    return spec_fail(r, "joint_range", j, "of a ball joint must be 0 and a positive angle");
  }
  return QD_OK;
}

static qd_status check_joint_numbers(const qd_model_spec *s, const report *r) {
  const int count = s->joint_count;
  TRY(spec_finite(r, "joint_pos", s->joint_pos, count, 3));
  TRY(spec_finite(r, "joint_axis", s->joint_axis, count, 3));
  TRY(spec_finite(r, "joint_ref", s->joint_ref, count, 1));
  TRY(spec_finite(r, "joint_springref", s->joint_springref, count, 1));
  TRY(spec_not_negative(r, "joint_stiffness", s->joint_stiffness, count));
  TRY(spec_not_negative(r, "joint_damping", s->joint_damping, count));
  TRY(spec_not_negative(r, "joint_friction", s->joint_friction, count));
  TRY(spec_row_solver(r, "joint_limit_solver", s->joint_limit_solver, count, 9));
  TRY(spec_row_solver(r, "joint_friction_solver", s->joint_friction_solver, count, 8));
  TRY(spec_finite(r, "joint_invweight", s->joint_invweight, count, 1));
  TRY(spec_finite(r, "joint_turn_invweight", s->joint_turn_invweight, count, 1));
  return spec_not_negative(r, "joint_armature", s->joint_armature, count);
}

static qd_status check_joints(const qd_model_spec *s, const report *r) {
  int nq = 0;
  TRY(check_joint_numbers(s, r));
  for (int j = 0; j < s->joint_count; ++j) {
    TRY(check_joint_place(s, j, r));
    TRY(check_joint_axis(s, j, r));
    TRY(check_joint_range(s, j, r));
    nq += joint_q_count(s->joint_type[j]);
  }
  TRY(spec_finite(r, "reference_q", s->reference_q, nq, 1));
  return spec_finite(r, "default_q", s->default_q, nq, 1);
}

qd_status spec_check_tree(const qd_model_spec *s, const report *r) {
  TRY(check_bodies(s, r));
  TRY(check_joints(s, r));
  return check_mocap(s, r);
}
