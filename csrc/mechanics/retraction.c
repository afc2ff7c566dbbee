#include "mechanics/retraction.h"

#include <math.h>

#include "base/quat.h"
#include "base/vec3.h"
#include "mechanics/kinematics.h"

#define UNIT_TOLERANCE 1e-3

/* Index in q of the quaternion of a ball or free joint, and index in v of its rotation. */
static int quat_index(const qd_model *m, int j) {
  return m->joint.q[j] + (m->joint.type[j] == QD_FREE ? 3 : 0);
}

static int rotation_index(const qd_model *m, int j) {
  return m->joint.v[j] + (m->joint.type[j] == QD_FREE ? 3 : 0);
}

/* Normalises; returns 0 if the length is not near one. */
static int make_unit(double *quat) {
  double unit[4] = {quat[0], quat[1], quat[2], quat[3]};
  const double norm = quat_normalize(unit);
  if (!(fabs(norm - 1.0) <= UNIT_TOLERANCE)) {
    return 0;
  }
  if (fabs(norm - 1.0) > 4e-16) { /* a unit quaternion keeps its bits */
    memcpy(quat, unit, sizeof unit);
  }
  return 1;
}

qd_status qd_normalize(const qd_model *m, const double *q, double *q_out, int *joint) {
  for (int j = 0; j < m->joint.count; ++j) {
    const int start = m->joint.q[j], count = joint_q_count(m->joint.type[j]);
    *joint = j;
    for (int i = start; i < start + count; ++i) {
      if (!isfinite(q[i])) {
        return QD_NOT_FINITE;
      }
      q_out[i] = q[i];
    }
    if (m->joint.type[j] >= QD_BALL) {
      if (!make_unit(q_out + quat_index(m, j))) {
        return QD_BAD_ARGUMENT;
      }
    }
  }
  *joint = -1;
  return QD_OK;
}

void qd_mocap_default(const qd_model *m, double *mocap) {
  for (int i = 0; i < m->mocap_count; ++i) {
    vec3_copy(mocap + QD_POSE * i, m->body.pos + 3 * m->mocap_body[i]);
    memcpy(mocap + QD_POSE * i + 3, m->body.quat + 4 * m->mocap_body[i], 4 * sizeof(double));
  }
}

qd_status qd_mocap_normalize(const qd_model *m, const double *mocap, double *mocap_out,
                             int *index) {
  for (int i = 0; i < m->mocap_count; ++i) {
    const double *from = mocap + QD_POSE * i;
    double *to = mocap_out + QD_POSE * i;
    *index = i;
    for (int k = 0; k < QD_POSE; ++k) {
      if (!isfinite(from[k])) {
        return QD_NOT_FINITE;
      }
      to[k] = from[k];
    }
    if (!make_unit(to + 3)) {
      return QD_BAD_ARGUMENT;
    }
  }
  *index = -1;
  return QD_OK;
}

void qd_integrate(const qd_model *m, const double *q, const double *v, double *q_out) {
  for (int j = 0; j < m->joint.count; ++j) {
    const int iq = m->joint.q[j], iv = m->joint.v[j];
    if (m->joint.type[j] <= QD_SLIDE) {
      q_out[iq] = q[iq] + v[iv];
      continue;
    }
    if (m->joint.type[j] == QD_FREE) {
      vec3_add(q_out + iq, q + iq, v + iv);
    }
    double turn[4], *quat = q_out + quat_index(m, j);
    quat_exp(turn, v + rotation_index(m, j));
    quat_mul(quat, turn, q + quat_index(m, j));
    quat_normalize(quat);
  }
}

void qd_difference(const qd_model *m, const double *q1, const double *q0, double *v) {
  for (int j = 0; j < m->joint.count; ++j) {
    const int iq = m->joint.q[j], iv = m->joint.v[j];
    if (m->joint.type[j] <= QD_SLIDE) {
      v[iv] = q1[iq] - q0[iq];
      continue;
    }
    if (m->joint.type[j] == QD_FREE) {
      vec3_sub(v + iv, q1 + iq, q0 + iq);
    }
    /* turn = q1 q0^-1, so that q1 = exp(v) q0 */
    const double *a = q1 + quat_index(m, j), *b = q0 + quat_index(m, j);
    const double inverse[4] = {b[0], -b[1], -b[2], -b[3]};
    double turn[4];
    quat_mul(turn, a, inverse);
    quat_log(v + rotation_index(m, j), turn);
  }
}

void retraction_apply_derivative(double *D, const qd_model *m, const double *delta, int columns) {
  for (int j = 0; j < m->joint.count; ++j) {
    if (m->joint.type[j] < QD_BALL) {
      continue;
    }
    const int row = rotation_index(m, j);
    double J[9];
    rotation_left_jacobian(J, delta + row);
    double *D0 = D + row * columns, *D1 = D0 + columns, *D2 = D1 + columns;
    for (int c = 0; c < columns; ++c) {
      const double x[3] = {D0[c], D1[c], D2[c]};
      D0[c] = vec3_dot(J, x);
      D1[c] = vec3_dot(J + 3, x);
      D2[c] = vec3_dot(J + 6, x);
    }
  }
}

void retraction_add_base_derivative(double *A, const qd_model *m, const double *delta) {
  const int nv = m->nv;
  for (int j = 0; j < m->joint.count; ++j) {
    const int iv = m->joint.v[j], type = m->joint.type[j];
    const int straight = type <= QD_SLIDE ? 1 : (type == QD_FREE ? 3 : 0);
    for (int i = iv; i < iv + straight; ++i) {
      A[i * nv + i] += 1.0;
    }
    if (type >= QD_BALL) {
      const int row = rotation_index(m, j);
      double R[9];
      rotation_exp(R, delta + row);
      for (int i = 0; i < 9; ++i) {
        A[(row + i / 3) * nv + row + i % 3] += R[i];
      }
    }
  }
}

void retraction_push(double *out, const qd_model *m, const double *delta, const double *dq,
                     const double *d_delta) {
  for (int i = 0; i < m->nv; ++i) {
    out[i] = dq[i] + d_delta[i];
  }
  for (int j = 0; j < m->joint.count; ++j) {
    if (m->joint.type[j] >= QD_BALL) {
      const int row = rotation_index(m, j);
      double matrix[9], part[3];
      rotation_exp(matrix, delta + row);
      mat3_mul_vec(out + row, matrix, dq + row);
      rotation_left_jacobian(matrix, delta + row);
      mat3_mul_vec(part, matrix, d_delta + row);
      vec3_axpy(out + row, 1.0, part);
    }
  }
}

void retraction_pull(double *by_q, double *by_delta, const qd_model *m, const double *delta,
                     const double *y) {
  for (int i = 0; i < m->nv; ++i) {
    by_q[i] = by_delta[i] = y[i];
  }
  for (int j = 0; j < m->joint.count; ++j) {
    if (m->joint.type[j] >= QD_BALL) {
      const int row = rotation_index(m, j);
      double matrix[9];
      rotation_exp(matrix, delta + row);
      mat3_tmul_vec(by_q + row, matrix, y + row);
      rotation_left_jacobian(matrix, delta + row);
      mat3_tmul_vec(by_delta + row, matrix, y + row);
    }
  }
}

/* The inverse Jacobian of the difference v, or its transpose, times x. */
static void apply_inverse(double *out, const qd_model *m, const double *v, const double *x,
                          int transposed) {
  for (int i = 0; i < m->nv; ++i) {
    out[i] = x[i];
  }
  for (int j = 0; j < m->joint.count; ++j) {
    if (m->joint.type[j] >= QD_BALL) {
      const int row = rotation_index(m, j);
      double inverse[9];
      rotation_left_jacobian_inverse(inverse, v + row);
      (transposed ? mat3_tmul_vec : mat3_mul_vec)(out + row, inverse, x + row);
    }
  }
}

void retraction_difference_push(double *out, const qd_model *m, const double *v, const double *dq) {
  apply_inverse(out, m, v, dq, 0);
}

void retraction_difference_pull(double *by_q, const qd_model *m, const double *v, const double *y) {
  apply_inverse(by_q, m, v, y, 1);
}

/* ---------------------------------------------------------------- the numbers of q
 *
 * exp(w) p with p = (p0, v) has the derivative dp = (-w.v, p0 w + w x v) / 2 with respect to w at
 * zero. */

/* out (4) = scale times this derivative for w */
static void turn_quat(double *out, const double *p, const double *w, double scale) {
  vec3_cross(out + 1, w, p + 1);
  vec3_axpy(out + 1, p[0], w);
  vec3_scale(out + 1, out + 1, 0.5 * scale);
  out[0] = -0.5 * scale * vec3_dot(w, p + 1);
}

/* out (3) = scale times the transposed derivative for y */
static void turn_quat_pull(double *out, const double *p, const double *y, double scale) {
  vec3_cross(out, p + 1, y + 1);
  vec3_axpy(out, p[0], y + 1);
  vec3_axpy(out, -y[0], p + 1);
  vec3_scale(out, out, 0.5 * scale);
}

/* 4 / |p|^2: factor from the transposed derivative to its inverse, for functions of the direction
 * of p */
static double inverse_scale(const double *p) {
  return 4.0 / (p[0] * p[0] + vec3_dot(p + 1, p + 1));
}

/* Numbers like q from numbers like v (`pulls` 1: the transpose, numbers like v from those of q);
 * `inverse` 1: the transpose of the inverse. */
static void by_quat(double *out, const qd_model *m, const double *q, const double *in, int pulls,
                    int inverse) {
  for (int j = 0; j < m->joint.count; ++j) {
    const int iq = m->joint.q[j], iv = m->joint.v[j], type = m->joint.type[j];
    const int straight = type <= QD_SLIDE ? 1 : (type == QD_FREE ? 3 : 0);
    for (int i = 0; i < straight; ++i) {
      out[(pulls ? iv : iq) + i] = in[(pulls ? iq : iv) + i];
    }
    if (type >= QD_BALL) {
      const int at = quat_index(m, j), row = rotation_index(m, j);
      const double scale = inverse ? inverse_scale(q + at) : 1.0;
      if (pulls) {
        turn_quat_pull(out + row, q + at, in + at, scale);
      } else {
        turn_quat(out + at, q + at, in + row, scale);
      }
    }
  }
}

void retraction_ambient(double *dq, const qd_model *m, const double *q, const double *v) {
  by_quat(dq, m, q, v, 0, 0);
}

void retraction_ambient_pull(double *by_v, const qd_model *m, const double *q, const double *by_q) {
  by_quat(by_v, m, q, by_q, 1, 0);
}

void retraction_tangent(double *v, const qd_model *m, const double *q, const double *dq) {
  by_quat(v, m, q, dq, 1, 1);
}

void retraction_tangent_pull(double *by_q, const qd_model *m, const double *q, const double *by_v) {
  by_quat(by_q, m, q, by_v, 0, 1);
}
