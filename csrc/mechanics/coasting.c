#include "mechanics/coasting.h"

#include <math.h>

#include "base/quat.h"
#include "base/rounding.h"

/* Newton's method takes 3 to 5 iterations for rotations of up to half a radian per step. */
#define ITERATIONS_MOST 40
#define HALVINGS_MOST 20

int tree_coasts(const qd_model *model, int tree) {
  const int first = model->tree.dof_start[tree];
  const int count = model->tree.dof_start[tree + 1] - first;
  if (count == 0) {
    return 0;
  }
  const int type = model->joint.type[model->dof.joint[model->tree.dofs[first]]];
  return type >= QD_BALL && count == joint_v_count(type);
}

/* M += s [a] */
static void add_cross(double M[9], double s, const double a[3]) {
  M[1] -= s * a[2];
  M[2] += s * a[1];
  M[3] += s * a[2];
  M[5] -= s * a[0];
  M[6] -= s * a[1];
  M[7] += s * a[0];
}

/* M = T + s/2 ([T m] - [m] T): the derivative of T x - h (T m) x m with respect to x (s = -h), and
 * minus that with respect to the spin before (s = h). */
static void slope_of(double M[9], const double T[9], const double m[3], double s) {
  double turned[9], cross[9] = {0.0}, Tm[3];
  mat3_mul_vec(Tm, T, m);
  add_cross(cross, 1.0, m);
  mat3_mul(turned, cross, T);
  for (int i = 0; i < 9; ++i) {
    M[i] = T[i] - 0.5 * s * turned[i];
  }
  add_cross(M, 0.5 * s, Tm);
}

/* Returns 0 if M is singular. */
static int invert(double out[9], const double M[9]) {
  double column[3][3], cofactor[3][3];
  for (int i = 0; i < 3; ++i) {
    mat3_column(column[i], M, i);
  }
  for (int i = 0; i < 3; ++i) {
    vec3_cross(cofactor[i], column[(i + 1) % 3], column[(i + 2) % 3]);
  }
  const double determinant = vec3_dot(column[0], cofactor[0]);
  for (int i = 0; i < 9; ++i) {
    out[i] = cofactor[i / 3][i % 3] / determinant;
  }
  return isfinite(1.0 / determinant) && determinant != 0.0;
}

/* G = T (x - spin) - h (T m) x m, m = (x + spin) / 2; returns its squared length. */
static double residual(double G[3], double m[3], const coasting *c, const double x[3], double h) {
  double Tm[3], change[3];
  for (int i = 0; i < 3; ++i) {
    m[i] = 0.5 * (x[i] + c->spin[i]);
    change[i] = x[i] - c->spin[i];
  }
  mat3_mul_vec(Tm, c->tensor, m);
  mat3_mul_vec(G, c->tensor, change);
  vec3_add_cross(G, -h, Tm, m);
  return vec3_dot(G, G);
}

/* One step towards the next spin, halved until the residual falls. Returns 1 if x is the next spin
 * to rounding. */
static int advance(coasting *c, double x[3], double h, int *stuck) {
  double G[3], m[3], slope[9], inverse[9], step[3], trial[3], next[3];
  const double before = residual(G, m, c, x, h);
  slope_of(slope, c->tensor, m, -h);
  *stuck = !invert(inverse, slope);
  if (*stuck) {
    return 0;
  }
  mat3_mul_vec(step, inverse, G);
  if (vec3_norm(step) <= LAST_DIGITS * vec3_norm(x)) {
    return 1;
  }
  double share = 1.0;
  for (int i = 0; i < HALVINGS_MOST; ++i, share *= 0.5) {
    vec3_copy(trial, x);
    vec3_axpy(trial, -share, step);
    if (residual(next, m, c, trial, h) < before) {
      vec3_copy(x, trial);
      return 0;
    }
  }
  *stuck = vec3_norm(step) > 1e-12 * vec3_norm(x); /* smaller steps are rounding */
  return !*stuck;
}

static void find_next(coasting *c, double h) {
  double x[3];
  int stuck = 0;
  vec3_copy(x, c->spin);
  c->settled = 0;
  for (int i = 0; i < ITERATIONS_MOST && !stuck && !c->settled; ++i) {
    c->settled = advance(c, x, h, &stuck);
  }
  vec3_copy(c->next, c->settled ? x : c->spin);
}

/* Inertia tensor of a rigid body about a point, in the given axes. */
static void tensor_about(double out[9], const spatial_inertia *I, const double at[3],
                         const double axes[9]) {
  double about[9], part[9], turned[9], shifted[3];
  /* sum m [x - a]'[x - a] = tensor + ([a][c] + [c][a]) - m [a][a], [a][b] = b a' - a.b */
  vec3_copy(shifted, I->moment);
  const double mixed = 2.0 * vec3_dot(at, shifted) - I->mass * vec3_dot(at, at);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      about[3 * i + j] = I->tensor[3 * i + j] + at[i] * shifted[j] + shifted[i] * at[j] -
                         I->mass * at[i] * at[j] - (i == j ? mixed : 0.0);
      turned[3 * j + i] = axes[3 * i + j];
    }
  }
  mat3_mul(part, axes, about);
  mat3_mul(out, part, turned);
}

void coasting_compute(coasting *c, double *next, const qd_model *model, const kinematics *k,
                      const inertia *I, int tree, const double *v, double h) {
  c->dof = model->tree.dofs[model->tree.dof_start[tree]];
  c->count = model->tree.dof_start[tree + 1] - model->tree.dof_start[tree];
  c->body = model->dof.body[c->dof];
  const int turn = c->dof + c->count - 3;
  const spatial_inertia *lump = I->subtree + c->body;
  double pivot[3] = {0.0, 0.0, 0.0};
  for (int i = 0; i < 3; ++i) {
    const screw *S = k->dof_screw + turn + i;
    vec3_copy(c->axes + 3 * i, S->w);
    vec3_add_cross(pivot, 0.5, S->w, S->v); /* v = centre x w: w x v sum up to 2 centre */
  }
  c->mass = lump->mass;
  vec3_copy(c->centre, pivot);
  vec3_set(c->arm, 0.0, 0.0, 0.0);
  if (c->count == 6 && c->mass > 0.0) {
    vec3_scale(c->centre, lump->moment, 1.0 / c->mass);
    vec3_sub(c->arm, c->centre, pivot); /* translations are along the world axes */
  }
  tensor_about(c->tensor, lump, c->centre, c->axes);
  vec3_copy(c->spin, v + turn);
  find_next(c, h);
  vec3_copy(next + turn, c->next);
  if (c->count == 6) {
    double X[9], theta[3], arm_next[3];
    vec3_scale(theta, c->next, h);
    rotation_exp(X, theta);
    mat3_mul_vec(arm_next, X, c->arm);
    vec3_copy(next + c->dof, v + c->dof);
    vec3_add_cross(next + c->dof, 1.0, c->spin, c->arm);
    vec3_add_cross(next + c->dof, -1.0, c->next, arm_next);
  }
}

/* Derivatives of the next angular velocity. */
static void differentiate_spin(coasting_derivative *d, const coasting *c, double h) {
  double G[3], m[3], slope[9], before[9], by_spin[9], Tm[3], turned[3], part[3];
  const int at = c->count - 3;
  residual(G, m, c, c->next, h);
  slope_of(slope, c->tensor, m, -h);
  slope_of(before, c->tensor, m, h);
  if (!c->settled || !invert(d->inverse, slope)) {
    memset(d->inverse, 0, sizeof d->inverse);
    memset(by_spin, 0, sizeof by_spin);
    by_spin[0] = by_spin[4] = by_spin[8] = 1.0;
  } else {
    mat3_mul(by_spin, d->inverse, before);
  }
  mat3_mul_vec(Tm, c->tensor, m);
  vec3_cross(turned, Tm, m);
  mat3_mul_vec(d->by_h + at, d->inverse, turned);
  for (int j = 0; j < 3; ++j) { /* a rotation s of the body rotates everything: next by s x next,
                                   and the spin by s x spin */
    double s[3] = {j == 0, j == 1, j == 2}, moved[3];
    vec3_cross(moved, s, c->next);
    vec3_cross(part, s, c->spin);
    mat3_mul_vec(turned, by_spin, part);
    for (int i = 0; i < 3; ++i) {
      d->by_v[at + i][at + j] = by_spin[3 * i + j];
      d->by_turn[at + i][j] = c->settled ? moved[i] - turned[i] : 0.0;
    }
  }
}

/* velocity_next = velocity + spin x arm - next x X arm, X = exp(h next). */
static void differentiate_velocity(coasting_derivative *d, const coasting *c, double h) {
  double X[9], J[9], theta[3], arm_next[3], part[3], moved[3];
  vec3_scale(theta, c->next, h);
  rotation_exp(X, theta);
  rotation_left_jacobian(J, theta);
  mat3_mul_vec(arm_next, X, c->arm);
  for (int j = 0; j < 3; ++j) {
    double e[3] = {j == 0, j == 1, j == 2}, by_next[3], by_arm[3], by_spin[3];
    vec3_cross(by_next, arm_next, e); /* -e x arm_next - next x (h J e x arm_next) */
    mat3_mul_vec(part, J, e);
    vec3_cross(moved, part, arm_next);
    vec3_add_cross(by_next, -h, c->next, moved);
    mat3_column(moved, X, j);
    vec3_cross(by_arm, c->spin, e);
    vec3_add_cross(by_arm, -1.0, c->next, moved);
    vec3_cross(by_spin, e, c->arm);
    for (int i = 0; i < 3; ++i) {
      d->by_next[i][j] = by_next[i];
      d->by_arm[i][j] = by_arm[i];
      d->by_v[i][3 + j] = by_spin[i];
      d->by_v[i][j] = i == j;
    }
  }
  vec3_cross(moved, c->next, arm_next);
  vec3_cross(part, c->next, moved);
  for (int i = 0; i < 3; ++i) {
    d->by_h[i] = -part[i];
  }
}

void coasting_differentiate(coasting_derivative *d, const coasting *c, double h) {
  memset(d, 0, sizeof *d);
  differentiate_spin(d, c, h);
  if (c->count < 6) {
    return;
  }
  differentiate_velocity(d, c, h);
  for (int j = 0; j < 3; ++j) {
    double s[3] = {j == 0, j == 1, j == 2}, turned[3];
    vec3_cross(turned, s, c->arm);
    for (int i = 0; i < 3; ++i) {
      d->by_h[i] += d->by_next[i][j] * d->by_h[3 + j];
      d->by_turn[i][j] += vec3_dot(d->by_arm[i], turned);
      for (int l = 0; l < 3; ++l) {
        d->by_v[i][3 + j] += d->by_next[i][l] * d->by_v[3 + l][3 + j];
        d->by_turn[i][j] += d->by_next[i][l] * d->by_turn[3 + l][j];
      }
    }
  }
}
