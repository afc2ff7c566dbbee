/* Derivatives of equality rows by q: couplings of joints and tendons, and coincident points and
 * frames.
 *
 * Connect: p0 - p1 = 0. aref also contains minus (dJ/dt) v, so r = acceleration of p0 - p1 + B
 * times its velocity + K d times its value. With a factor s of (dJ/dt) v, the acceleration is s
 * times the true one plus (1 - s) J x. Weld adds e = s vec(c Q) = 0, with c the conjugate of
 * q1 and Q = q0 times the relative pose; de/dt = s/2 vec(c (w0 - w1) Q), as quaternions. */
#include "base/quat.h"
#include "mujoco/parts.h"

/* ---------------------------------------------------------------- couplings */

static double *row_of(qd_mj_workspace *w, int dof) {
  return w->rhs + (size_t)dof * (size_t)w->columns;
}

/* The Jacobian of joint or tendon `object` into w->wide, dense; zero for object < 0. */
static void follower_row(const qd_mj *mj, qd_mj_workspace *w, int type, int object) {
  memset(w->wide, 0, (size_t)mj->nv * sizeof *w->wide);
  if (object < 0) {
    return;
  }
  if (type == MJ_EQ_JOINT) {
    w->wide[mj->jnt_dofadr[object]] = 1.0;
    return;
  }
  mj_tendon_row(mj, w->wide, object);
}

static double leader_offset(const qd_mj *mj, int type, int object) {
  if (object < 0) {
    return 0.0;
  }
  if (type == MJ_EQ_TENDON) {
    return mj->ten_length[object] - mj->tendon_length0[object];
  }
  const int at = mj->jnt_qposadr[object];
  return mj->qpos[at] - mj->qpos0[at];
}

double mj_follower_slope(const qd_mj *mj, int eq) {
  const double *c = mj->eq_data + (size_t)eq * (size_t)mj->eqdata_count;
  const double off = leader_offset(mj, mj->eq_type[eq], mj->eq_obj2id[eq]);
  return c[1] + off * (2.0 * c[2] + off * (3.0 * c[3] + off * 4.0 * c[4]));
}

/* The slope of the slope. */
static double follower_bend(const qd_mj *mj, int row) {
  const int eq = mj->efc_id[row], leader = mj->eq_obj2id[eq];
  const double *c = mj->eq_data + (size_t)eq * (size_t)mj->eqdata_count;
  const double off = leader_offset(mj, mj->eq_type[eq], leader);
  return leader < 0 ? 0.0 : 2.0 * c[2] + off * (6.0 * c[3] + 12.0 * c[4] * off);
}

static void follower_by_position(const qd_mj *mj, qd_mj_workspace *w, int row, int type) {
  const int eq = mj->efc_id[row], nv = (int)mj->nv, leader = mj->eq_obj2id[eq];
  const double pos = mj->efc_pos[row];
  const mj_law law = mj_row_law(mj, row);
  const double h = w->h[row], f = w->f[row];
  const double bend = follower_bend(mj, row);
  const double by_gap = f * law.shrinks - h * mj_law_slope(&law, pos, w->speed[row]);
  const int count = mj_rows_compact(mj, w, row, 1);
  double moves = 0.0;
  follower_row(mj, w, type, leader);
  for (int j = 0; j < nv; ++j) {
    moves += w->wide[j] * (w->x[j] + law.damping * mj->qvel[j]);
  }
  for (int p = 0; p < count; ++p) {
    double *out = row_of(w, w->column[p]);
    for (int q = 0; q < count; ++q) {
      out[w->column[q]] += by_gap * w->compact[p] * w->compact[q];
    }
    for (int j = 0; bend != 0.0 && j < nv; ++j) {
      out[j] += (h * bend * moves * w->compact[p] - bend * f * w->wide[w->column[p]]) * w->wide[j];
    }
  }
}

/* ---------------------------------------------------------------- points and frames */

/* One side of a bilateral constraint. */
typedef struct side {
  int body;
  double p[3], u[3]; /* its point: position and velocity */
  double A[6];       /* rate of its twist, with X in the share 1 - drift */
  const double *V, *X;
} side;

typedef struct joint_of_two {
  side side[2];
  int dim;                      /* number of rows, 3 or 6 */
  double drift;                 /* factor of (dJ/dt) v */
  double c[4], Q[4], scale;     /* for a weld */
  double spin[3], spin_rate[3]; /* w0 - w1 and its rate */
} joint_of_two;

static void read_side(const qd_mj *mj, const qd_mj_workspace *w, side *s, int object, int is_site,
                      const double *anchor, double drift) {
  double place[3];
  s->body = is_site ? mj->site_bodyid[object] : object;
  if (is_site) {
    vec3_copy(place, mj->site_xpos + 3 * object);
  } else {
    mat3_mul_add(place, mj->xmat + 9 * object, anchor, mj->xpos + 3 * object);
  }
  vec3_sub(s->p, place, w->origin);
  s->V = w->body[s->body].V;
  s->X = w->body[s->body].X;
  for (int i = 0; i < 6; ++i) {
    s->A[i] = drift * w->body[s->body].A[i] + (1.0 - drift) * s->X[i];
  }
  six_velocity_at(s->u, s->V, s->p);
}

/* out = s times the vector part of c z Q */
static void between(double out[3], const joint_of_two *two, const double z[4], double s) {
  double left[4], all[4];
  quat_mul(left, two->c, z);
  quat_mul(all, left, two->Q);
  vec3_scale(out, all + 1, s);
}

/* z += s a b of two vectors as quaternions */
static void add_product(double z[4], double s, const double a[3], const double b[3]) {
  double cross[3];
  vec3_cross(cross, a, b);
  z[0] -= s * vec3_dot(a, b);
  vec3_axpy(z + 1, s, cross);
}

/* z += s a q of a vector and a quaternion; and z += s q a */
static void add_left(double z[4], double s, const double a[3], const double q[4]) {
  z[0] -= s * vec3_dot(a, q + 1);
  vec3_axpy(z + 1, s * q[0], a);
  vec3_add_cross(z + 1, s, a, q + 1);
}
static void add_right(double z[4], double s, const double q[4], const double a[3]) {
  z[0] -= s * vec3_dot(a, q + 1);
  vec3_axpy(z + 1, s * q[0], a);
  vec3_add_cross(z + 1, s, q + 1, a);
}

/* Rotations of both sides with the configuration or velocity of one dof. */
typedef struct turns {
  double theta[2][3]; /* angle */
  double omega[2][3]; /* change of angular velocity */
  double alpha[2][3]; /* change of A's angular part */
} turns;

/* Rates and changes of s/2 c (w) Q, where c' = -c w1 / 2 and Q' = w0 Q / 2. out (3): change of
 * L(rate) + drift dL/dt(spin) + B L(spin); error (3): change of e. */
static void weld_change(const joint_of_two *two, const turns *t, double B, double out[3],
                        double error[3]) {
  const double *w0 = two->side[0].V, *w1 = two->side[1].V;
  double steady[4] = {0.0, 0.0, 0.0, 0.0}, moving[4], z[4] = {0.0, 0.0, 0.0, 0.0}, d_spin[3],
         part[3];
  const double half = 0.5 * two->drift;
  /* L(rate + B spin) + drift dL(spin) = s/2 vec(c steady Q) */
  vec3_copy(steady + 1, two->spin_rate);
  vec3_axpy(steady + 1, B, two->spin);
  memcpy(moving, steady, sizeof moving);
  add_product(moving, -half, w1, two->spin);
  add_product(moving, half, two->spin, w0);
  vec3_sub(d_spin, t->omega[0], t->omega[1]);
  vec3_sub(z + 1, t->alpha[0], t->alpha[1]);
  vec3_axpy(z + 1, B, d_spin);
  add_product(z, -half, t->omega[1], two->spin);
  add_product(z, half, two->spin, t->omega[0]);
  add_product(z, -half, w1, d_spin);
  add_product(z, half, d_spin, w0);
  add_left(z, -0.5, t->theta[1], moving);
  add_right(z, 0.5, moving, t->theta[0]);
  between(out, two, z, 0.5 * two->scale);
  const double turn[4] = {0.0, t->theta[0][0] - t->theta[1][0], t->theta[0][1] - t->theta[1][1],
                          t->theta[0][2] - t->theta[1][2]};
  between(part, two, turn, 0.5 * two->scale);
  vec3_copy(error, part);
}

/* The moment on side 0, L' f; with t not NULL its change with both rotations. */
static void weld_moment(const joint_of_two *two, const double f[3], const turns *t, double out[3]) {
  for (int i = 0; i < 3; ++i) {
    double unit[3] = {0.0, 0.0, 0.0}, z[4] = {0.0, 0.0, 0.0, 0.0}, row[3];
    unit[i] = 1.0;
    if (t == NULL) {
      vec3_copy(z + 1, unit);
    } else {
      add_product(z, -0.5, t->theta[1], unit);
      add_product(z, 0.5, unit, t->theta[0]);
    }
    between(row, two, z, 0.5 * two->scale);
    out[i] = vec3_dot(row, f);
  }
}

static void read_two(const qd_mj *mj, const qd_mj_workspace *w, int row, double drift,
                     joint_of_two *two) {
  enum { OBJECT_SITE = 6 };
  const int eq = mj->efc_id[row], weld = mj->eq_type[eq] == MJ_EQ_WELD;
  const int is_site = mj->eq_objtype[eq] == OBJECT_SITE;
  const double *data = mj->eq_data + (size_t)eq * (size_t)mj->eqdata_count;
  const int object[2] = {mj->eq_obj1id[eq], mj->eq_obj2id[eq]};
  for (int k = 0; k < 2; ++k) {
    read_side(mj, w, two->side + k, object[k], is_site, data + (weld ? 3 * (1 - k) : 3 * k), drift);
  }
  two->dim = weld ? 6 : 3;
  two->drift = drift;
  if (!weld) {
    return;
  }
  two->scale = data[10];
  quat_mul(two->Q, mj->xquat + 4 * object[0], data + 6);
  memcpy(two->c, mj->xquat + 4 * object[1], sizeof two->c);
  vec3_scale(two->c + 1, two->c + 1, -1.0);
  vec3_sub(two->spin, two->side[0].V, two->side[1].V);
  vec3_sub(two->spin_rate, two->side[0].A, two->side[1].A);
}

/* Change of a side's acceleration + B velocity by the changes of its twist and of A, while its
 * point moves by dp. */
static void point_change(const side *s, const double dV[6], const double dA[6], const double dp[3],
                         double B, double drift, double out[3]) {
  double du[3];
  six_velocity_at(du, dV, s->p);
  vec3_add_cross(du, 1.0, s->V, dp);
  six_velocity_at(out, dA, s->p);
  vec3_add_cross(out, 1.0, s->A, dp);
  vec3_add_cross(out, drift, dV, s->u);
  vec3_add_cross(out, drift, s->V, du);
  vec3_axpy(out, B, du);
}

/* What changes: the rows by q or by v of a dof, or J rates by q. */
typedef enum kind { BY_Q, BY_V, OF_RATES } kind;

/* Change of a side's twist and of A with dof k. */
static void side_change(const side *s, const qd_mj_workspace *w, const mj_dof *d, double drift,
                        kind of, double dV[6], double dA[6]) {
  double other[6], rest[6];
  memset(dV, 0, 6 * sizeof *dV);
  memset(dA, 0, 6 * sizeof *dA);
  if (of == BY_V) {
    six_copy(dV, d->S);
    six_cross(other, d->S, s->V);
    six_axpy(dA, drift, other);
    six_axpy(dA, drift, d->turn_rate);
    return;
  }
  six_copy(rest, of == OF_RATES ? s->A : s->X);
  six_axpy(rest, -1.0, of == OF_RATES ? d->w_before : d->x_before);
  six_cross(other, d->S, rest);
  six_axpy(dA, 1.0 - drift, other);
  if (of == BY_Q) {
    six_cross(dV, d->S, s->V);
    six_axpy(dV, 1.0, d->rate);
    six_cross(other, d->S, w->body[s->body].A);
    six_axpy(dA, drift, other);
    six_cross(other, d->rate, s->V);
    six_axpy(dA, drift, other);
    six_axpy(dA, drift, d->rate_rate);
  }
}

/* Changes of the rows with dof k: dr of acceleration + B velocity, and dpos. By v, B = 0, since B J
 * is counted elsewhere. */
static void rows_change(const joint_of_two *two, const qd_mj_workspace *w, const mj_dof *d,
                        int moves, kind of, double B, double dr[6], double dpos[6], turns *t) {
  memset(t, 0, sizeof *t);
  memset(dr, 0, 6 * sizeof *dr);
  memset(dpos, 0, 6 * sizeof *dpos);
  for (int k = 0; k < 2; ++k) {
    const side *s = two->side + k;
    const double sign = k == 0 ? 1.0 : -1.0;
    double dV[6], dA[6], dp[3] = {0.0, 0.0, 0.0}, change[3];
    if (!(moves & (1 << k))) {
      continue;
    }
    side_change(s, w, d, two->drift, of, dV, dA);
    if (of != BY_V) {
      six_velocity_at(dp, d->S, s->p);
      vec3_copy(t->theta[k], d->S);
    }
    vec3_copy(t->omega[k], dV);
    vec3_copy(t->alpha[k], dA);
    point_change(s, dV, dA, dp, B, two->drift, change);
    vec3_axpy(dr, sign, change);
    vec3_axpy(dpos, sign, dp);
  }
  if (two->dim == 6) {
    weld_change(two, t, B, dr + 3, dpos + 3);
  }
}

int mj_dofs_of_two(qd_mj_workspace *w, int body_a, int body_b) {
  int a = w->last_dof[body_a], b = w->last_dof[body_b], count = 0;
  while (a >= 0 || b >= 0) {
    const int dof = a > b ? a : b;
    w->column[count] = dof;
    w->moves[count] = (a == dof) + 2 * (b == dof);
    ++count;
    a = a == dof ? w->dof[dof].parent : a;
    b = b == dof ? w->dof[dof].parent : b;
  }
  return count;
}

/* Wrenches of the forces f (dim) on side 0 (6) and side 1 (6), or their change, if f is the change
 * of the forces. */
static void wrench_of(const joint_of_two *two, const double *f, double out[2][6]) {
  for (int k = 0; k < 2; ++k) {
    vec3_scale(out[k] + 3, f, k == 0 ? 1.0 : -1.0);
    vec3_cross(out[k], two->side[k].p, out[k] + 3);
  }
  if (two->dim == 6) {
    double moment[3];
    weld_moment(two, f + 3, NULL, moment);
    vec3_axpy(out[0], 1.0, moment);
    vec3_axpy(out[1], -1.0, moment);
  }
}

static void add_column(qd_mj_workspace *w, int count, int column, double wrench[2][6]) {
  for (int p = 0; p < count; ++p) {
    const double *S = w->dof[w->column[p]].S;
    double sum = 0.0;
    for (int k = 0; k < 2; ++k) {
      sum += w->moves[p] & (1 << k) ? six_dot(S, wrench[k]) : 0.0;
    }
    row_of(w, w->column[p])[column] += sum;
  }
}

static void column_by_velocity(qd_mj_workspace *w, const joint_of_two *two, int row, int count,
                               int p, int nv) {
  double dr[6], dpos[6], df[6], wrench[2][6];
  turns t;
  rows_change(two, w, w->dof + w->column[p], w->moves[p], BY_V, 0.0, dr, dpos, &t);
  for (int i = 0; i < two->dim; ++i) {
    df[i] = -w->h[row + i] * dr[i];
  }
  wrench_of(two, df, wrench);
  add_column(w, count, nv + w->column[p], wrench);
}

static void column_by_position(const qd_mj *mj, qd_mj_workspace *w, const joint_of_two *two,
                               const mj_law *law, int row, int count, int p) {
  const double *pos = mj->efc_pos + row, *speed = w->speed + row, *f = w->f + row;
  const mj_dof *d = w->dof + w->column[p];
  double dr[6], dpos[6], df[6], wrench[2][6], size = 0.0, grows = 0.0;
  turns t;
  rows_change(two, w, d, w->moves[p], BY_Q, law->damping, dr, dpos, &t);
  for (int i = 0; i < two->dim; ++i) {
    size += pos[i] * pos[i];
    grows += pos[i] * dpos[i];
  }
  grows = size > 0.0 ? grows / sqrt(size) : 0.0;
  for (int i = 0; i < two->dim; ++i) {
    const double along = -(mj->efc_aref[row + i] + law->damping * speed[i] + law->spring * pos[i]);
    const double slope = law->spring_slope * pos[i] + law->damping_slope * speed[i] +
                         law->drift_slope / law->drift * along; /* along: drift (dJ/dt) v */
    df[i] = -w->h[row + i] * (dr[i] + law->spring * dpos[i] + slope * grows) +
            f[i] * law->shrinks * grows;
  }
  wrench_of(two, df, wrench);
  for (int k = 0; k < 2; ++k) { /* the same forces at moved points */
    double dp[3];
    if (w->moves[p] & (1 << k)) {
      six_velocity_at(dp, d->S, two->side[k].p);
      vec3_add_cross(wrench[k], k == 0 ? 1.0 : -1.0, dp, f);
    }
  }
  if (two->dim == 6) {
    double moment[3];
    weld_moment(two, f + 3, &t, moment);
    vec3_axpy(wrench[0], 1.0, moment);
    vec3_axpy(wrench[1], -1.0, moment);
  }
  add_column(w, count, w->column[p], wrench);
}

static void two_by_position(const qd_mj *mj, qd_mj_workspace *w, int row) {
  const mj_law law = mj_row_law(mj, row);
  joint_of_two two;
  double wrench[2][6];
  read_two(mj, w, row, law.drift, &two);
  const int count = mj_dofs_of_two(w, two.side[0].body, two.side[1].body);
  wrench_of(&two, w->f + row, wrench);
  for (int k = 0; k < 2; ++k) {
    six_axpy(w->body[two.side[k].body].wrench, 1.0, wrench[k]);
  }
  for (int p = 0; p < count; ++p) {
    column_by_position(mj, w, &two, &law, row, count, p);
    column_by_velocity(w, &two, row, count, p, (int)mj->nv);
  }
}

void mj_equality_by_position(const qd_mj *mj, qd_mj_workspace *w, int row) {
  const int type = mj->eq_type[mj->efc_id[row]];
  if (type == MJ_EQ_JOINT || type == MJ_EQ_TENDON) {
    follower_by_position(mj, w, row, type);
  } else {
    two_by_position(mj, w, row);
  }
}

/* ---------------------------------------------------------------- R */

/* The change of J rates, for the rates of mj_spread, as that of an acceleration of bodies at rest.
 */
static void two_turn_row(const qd_mj *mj, qd_mj_workspace *w, int row) {
  static const double still[6] = {0.0};
  joint_of_two two;
  int first = row;
  while (first > 0 && mj->efc_type[first - 1] == MJ_ROW_EQUALITY &&
         mj->efc_id[first - 1] == mj->efc_id[row]) {
    --first;
  }
  read_two(mj, w, first, 0.0, &two);
  for (int k = 0; k < 2; ++k) {
    six_copy(two.side[k].A, w->body[two.side[k].body].W);
    two.side[k].V = still;
    vec3_copy(two.side[k].u, still);
  }
  vec3_sub(two.spin_rate, two.side[0].A, two.side[1].A);
  vec3_copy(two.spin, still);
  const int count = mj_dofs_of_two(w, two.side[0].body, two.side[1].body);
  for (int p = 0; p < count; ++p) {
    double dr[6], dpos[6];
    turns t;
    rows_change(&two, w, w->dof + w->column[p], w->moves[p], OF_RATES, 0.0, dr, dpos, &t);
    w->log_R[w->column[p]] += dr[row - first];
  }
}

void mj_equality_turns_row(const qd_mj *mj, qd_mj_workspace *w, int row) {
  const int eq = mj->efc_id[row], type = mj->eq_type[eq], nv = (int)mj->nv;
  if (type != MJ_EQ_JOINT && type != MJ_EQ_TENDON) {
    two_turn_row(mj, w, row);
    return;
  }
  const double bend = follower_bend(mj, row);
  double turn = 0.0;
  follower_row(mj, w, type, mj->eq_obj2id[eq]);
  for (int j = 0; j < nv; ++j) {
    turn -= bend * w->wide[j] * w->along[j];
  }
  for (int j = 0; j < nv; ++j) {
    w->log_R[j] += turn * w->wide[j];
  }
}
