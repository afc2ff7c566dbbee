/* The energy of a soft pair to second order in the numbers of its bodies' displacements. */
#include "dynamics/problem/pressure_energy.h"

#include "base/quat.h"
#include "base/symmetric.h"

/* Numbers of the relative motion of two bodies: relative displacement, and the rotations of both.
 */
#define RELATIVE 9

void pressure_numbers(double out[6], const pressure_body *body, const screw *twist) {
  screw_point_velocity(out, twist, body->at);
  vec3_copy(out + 3, twist->w);
}

/* Motion of a body's frame for a change of its numbers: velocity of the point that is now at x, and
 * angular velocity. */
static void motion_of(double motion[6], const pressure_body *body, const double x[3],
                      const double numbers[6]) {
  double arm[3];
  vec3_copy(motion, numbers);
  mat3_mul_vec(motion + 3, body->J, numbers + 3);
  vec3_sub(arm, x, body->moved.pos);
  vec3_add_cross(motion, 1.0, motion + 3, arm);
}

void pressure_body_motion(double motion[6], const pressure_body *body, const double x[3],
                          const screw *twist) {
  double numbers[6];
  pressure_numbers(numbers, body, twist);
  motion_of(motion, body, x, numbers);
}

void pressure_relative_motion(double motion[6], const soft_pair *pair, const double x[3],
                              const screw twist[2]) {
  double of_first[6];
  pressure_body_motion(of_first, pair->side, x, twist);
  pressure_body_motion(motion, pair->side + 1, x, twist + 1);
  for (int i = 0; i < 6; ++i) {
    motion[i] -= of_first[i];
  }
}

/* Moment about a body's frame of a force and a moment about x. */
static void moment_at(double out[3], const pressure_body *body, const double x[3],
                      const double numbers[6]) {
  double arm[3], part[3];
  vec3_sub(arm, body->moved.pos, x);
  vec3_cross(part, arm, numbers);
  vec3_sub(out, numbers + 3, part);
}

void pressure_energy_load(soft_pair *pair) {
  for (int b = 0; b < 2; ++b) {
    const pressure_body *body = pair->side + b;
    double *load = pair->load + 6 * b, moment[3];
    moment_at(moment, body, pair->centre, pair->wrench);
    vec3_copy(load, pair->wrench);
    mat3_tmul_vec(load + 3, body->J, moment);
    for (int i = 0; i < 6 && b == 0; ++i) {
      load[i] = -load[i];
    }
  }
}

/* ---------------------------------------------------------------- the Hessian */

/* Change of the wrench on the second body, about the fixed centre, with the motion of one body. */
static void wrench_change(double out[6], const soft_pair *pair, const double motion[6], int side) {
  for (int i = 0; i < 6; ++i) {
    out[i] = 0.0;
    for (int j = 0; j < 6; ++j) {
      out[i] += (side ? -1.0 : 1.0) * pair->tangent[6 * i + j] * motion[j];
    }
  }
  if (side) { /* the second body carries the wrench */
    vec3_add_cross(out, 1.0, motion + 3, pair->wrench);
    vec3_add_cross(out + 3, 1.0, motion + 3, pair->wrench + 3);
    vec3_add_cross(out + 3, 1.0, motion, pair->wrench);
  }
}

/* Column of minus the load's derivative. */
static void fill_column(double H[PRESSURE_NUMBERS * PRESSURE_NUMBERS], const soft_pair *pair,
                        int column) {
  const int side = column / 6;
  double numbers[6] = {0.0}, motion[6], change[6];
  numbers[column % 6] = 1.0;
  motion_of(motion, pair->side + side, pair->centre, numbers);
  wrench_change(change, pair, motion, side);
  for (int b = 0; b < 2; ++b) {
    const pressure_body *body = pair->side + b;
    const double sign = b ? -1.0 : 1.0;
    double moment[3], turned[3], own[3] = {0.0, 0.0, 0.0}, part[3], dJ[9];
    moment_at(moment, body, pair->centre, change);
    if (b == side) {
      vec3_add_cross(moment, -1.0, numbers, pair->wrench);
      rotation_left_jacobian_change(dJ, body->twist.w, numbers + 3);
      moment_at(part, body, pair->centre, pair->wrench);
      mat3_tmul_vec(own, dJ, part);
    }
    mat3_tmul_vec(turned, body->J, moment);
    for (int i = 0; i < 3; ++i) {
      H[PRESSURE_NUMBERS * (6 * b + i) + column] = sign * change[i];
      H[PRESSURE_NUMBERS * (6 * b + 3 + i) + column] = sign * (turned[i] + own[i]);
    }
  }
}

/* Transforms rows of H (n, n) to rotations about another point of a body, at arm from its frame, in
 * this unit; or (back) to rotations about its frame. */
static void recentre_rows(double *H, int n, int at, const double arm[3], double unit, int back) {
  for (int i = 0; i < n; ++i) {
    double v[3], w[3], part[3];
    for (int k = 0; k < 3; ++k) {
      v[k] = H[n * (at + k) + i];
      w[k] = H[n * (at + 3 + k) + i];
    }
    vec3_cross(part, arm, v);
    for (int k = 0; k < 3; ++k) {
      H[n * (at + 3 + k) + i] = back ? unit * w[k] + part[k] : (w[k] - part[k]) / unit;
    }
  }
}

static void transpose(double *H, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      const double kept = H[n * i + j];
      H[n * i + j] = H[n * j + i];
      H[n * j + i] = kept;
    }
  }
}

/* The same for rows and columns of all bodies that move. */
static void recentre(double *H, int n, const soft_pair *pair, const double arm[2][3], double unit,
                     int back) {
  for (int turn = 0; turn < 2; ++turn) {
    int at = 0;
    for (int b = 0; b < 2; ++b) {
      if (pair->side[b].moves) {
        recentre_rows(H, n, at, arm[b], unit, back);
        at += 6;
      }
    }
    transpose(H, n);
  }
}

/* Projects a symmetric matrix on positive semidefinite ones. */
static void cut_to_positive(double *H, int n) {
  double A[SYMMETRIC_MOST * SYMMETRIC_MOST], V[SYMMETRIC_MOST * SYMMETRIC_MOST];
  double values[SYMMETRIC_MOST];
  memcpy(A, H, (size_t)(n * n) * sizeof(double));
  symmetric_eigen(A, V, values, n);
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < n && values[k] < 0.0; ++i) {
      for (int j = 0; j < n; ++j) {
        H[n * i + j] -= values[k] * V[n * i + k] * V[n * j + k];
      }
    }
  }
}

/* Index in cut_relative of one of the bodies' numbers. */
static int relative_of(int i) { return i < 6 ? i : i < 9 ? i - 6 : i - 3; }

/* The same for two bodies that move (12, 12). A common displacement of both changes nothing, so
 * their relative displacement and both rotations, 9 numbers, are sufficient. */
static void cut_relative(double H[PRESSURE_NUMBERS * PRESSURE_NUMBERS]) {
  static const int AT[RELATIVE] = {6, 7, 8, 3, 4, 5, 9, 10, 11};
  const double root = sqrt(2.0);
  double R[RELATIVE * RELATIVE];
  for (int i = 0; i < RELATIVE; ++i) {
    for (int j = 0; j < RELATIVE; ++j) {
      const double unit = (i < 3 ? root : 1.0) * (j < 3 ? root : 1.0);
      R[RELATIVE * i + j] = unit * H[PRESSURE_NUMBERS * AT[i] + AT[j]];
    }
  }
  cut_to_positive(R, RELATIVE);
  for (int i = 0; i < PRESSURE_NUMBERS; ++i) {
    for (int j = 0; j < PRESSURE_NUMBERS; ++j) {
      const int p = relative_of(i), q = relative_of(j);
      const double unit = (p < 3 ? root : 1.0) * (q < 3 ? root : 1.0);
      const double sign = (i < 3) == (j < 3) ? 1.0 : -1.0;
      H[PRESSURE_NUMBERS * i + j] = sign * R[RELATIVE * p + q] / unit;
    }
  }
}

/* Indices in H (12, 12) of the bodies that move; returns their number. */
static int list_moving(int at[PRESSURE_NUMBERS], const soft_pair *pair) {
  int n = 0;
  for (int i = 0; i < PRESSURE_NUMBERS; ++i) {
    if (pair->side[i / 6].moves) {
      at[n++] = i;
    }
  }
  return n;
}

void pressure_energy_hessian(soft_pair *pair, const double arm[2][3]) {
  double full[PRESSURE_NUMBERS * PRESSURE_NUMBERS], H[PRESSURE_NUMBERS * PRESSURE_NUMBERS];
  int at[PRESSURE_NUMBERS];
  const int n = list_moving(at, pair);
  const double unit = sqrt(pair->area);
  for (int j = 0; j < n; ++j) {
    fill_column(full, pair, at[j]);
  }
  for (int i = 0; i < n; ++i) { /* symmetric up to rounding */
    for (int j = 0; j < n; ++j) {
      H[n * i + j] =
          0.5 * (full[PRESSURE_NUMBERS * at[i] + at[j]] + full[PRESSURE_NUMBERS * at[j] + at[i]]);
    }
  }
  recentre(H, n, pair, arm, unit, 0);
  if (n == PRESSURE_NUMBERS) {
    cut_relative(H);
  } else {
    cut_to_positive(H, n);
  }
  recentre(H, n, pair, arm, unit, 1);
  memset(pair->hessian, 0, sizeof pair->hessian);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      pair->hessian[PRESSURE_NUMBERS * at[i] + at[j]] = H[n * i + j];
    }
  }
}

void pressure_energy_add(soft_pair *pair, const double by[36]) {
  double motion[PRESSURE_NUMBERS][6], load[6];
  for (int i = 0; i < PRESSURE_NUMBERS; ++i) {
    double numbers[6] = {0.0};
    numbers[i % 6] = i < 6 ? -1.0 : 1.0;
    motion_of(motion[i], pair->side + i / 6, pair->centre, numbers);
  }
  for (int i = 0; i < PRESSURE_NUMBERS; ++i) {
    for (int k = 0; k < 6; ++k) {
      load[k] = 0.0;
      for (int l = 0; l < 6; ++l) {
        load[k] += by[6 * k + l] * motion[i][l];
      }
    }
    for (int j = 0; j < PRESSURE_NUMBERS; ++j) {
      for (int k = 0; k < 6; ++k) {
        pair->hessian[PRESSURE_NUMBERS * i + j] += load[k] * motion[j][k];
      }
    }
  }
}
