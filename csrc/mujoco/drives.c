/* Passive forces and actuators: springs, dampers, gravity compensation, applied wrenches, and
 * forces gain * input + bias along a transmission. Their Jacobians by dq, dv, act and ctrl. */
#include "base/quat.h"
#include "mujoco/parts.h"

enum { TRN_JOINT = 0, TRN_JOINT_IN_PARENT = 1, TRN_TENDON = 3, TRN_SITE = 4 };
enum { DYN_NONE = 0, DYN_INTEGRATOR, DYN_FILTER, DYN_FILTER_EXACT };
enum { AFFINE = 1 }; /* type of gains and biases */

static double *row_of(qd_mj_workspace *w, int dof) {
  return w->rhs + (size_t)dof * (size_t)w->columns;
}

/* ---------------------------------------------------------------- passive */

/* Spring of three rotations: -stiffness times their rotation vector from rest. */
static void turn_spring(const qd_mj *mj, qd_mj_workspace *w, int dof, int at, double stiffness) {
  double rest[4], apart[4], r[3], by[9];
  memcpy(rest, mj->qpos_spring + at, sizeof rest);
  vec3_scale(rest + 1, rest + 1, -1.0);
  quat_mul(apart, rest, mj->qpos + at);
  quat_log(r, apart);
  vec3_scale(r, r, -1.0);
  rotation_left_jacobian_inverse(by, r); /* equals the right one of -r */
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      row_of(w, dof + i)[dof + j] -= stiffness * by[3 * i + j];
    }
  }
}

static void joint_spring(const qd_mj *mj, qd_mj_workspace *w, int dof) {
  const int joint = mj->dof_jntid[dof], first = mj->jnt_dofadr[joint], type = mj->jnt_type[joint];
  const int turns = type == MJ_FREE ? first + 3 : first;
  const double stiffness = mj->jnt_stiffness[joint];
  if (stiffness == 0.0) {
    return;
  }
  if (type == MJ_BALL || (type == MJ_FREE && dof >= turns)) {
    if (dof == turns) {
      turn_spring(mj, w, dof, mj->jnt_qposadr[joint] + (type == MJ_FREE ? 3 : 0), stiffness);
    }
    return;
  }
  row_of(w, dof)[dof] -= stiffness;
}

void mj_add_tendon(const qd_mj *mj, double *to, int columns, int tendon, double s) {
  const int from = mj->ten_J_rowadr[tendon], end = from + mj->ten_J_rownnz[tendon];
  for (int p = from; p < end; ++p) {
    for (int q = from; q < end; ++q) {
      to[(size_t)mj->ten_J_colind[p] * (size_t)columns + (size_t)mj->ten_J_colind[q]] +=
          s * mj->ten_J[p] * mj->ten_J[q];
    }
  }
}

/* A force at a body's centre of mass with a fixed direction; its point moves with the body. */
static void hold_force(const qd_mj *mj, qd_mj_workspace *w, int body, const double force[3],
                       const double moment[3]) {
  double p[3], *wrench = w->body[body].wrench;
  vec3_sub(p, mj->xipos + 3 * body, w->origin);
  vec3_add_cross(wrench, 1.0, p, force);
  vec3_axpy(wrench, 1.0, moment);
  vec3_axpy(wrench + 3, 1.0, force);
  for (int k = w->last_dof[body]; k >= 0; k = w->dof[k].parent) {
    double dp[3], change[3];
    six_velocity_at(dp, w->dof[k].S, p);
    vec3_cross(change, dp, force);
    for (int j = w->last_dof[body]; j >= 0; j = w->dof[j].parent) {
      row_of(w, j)[k] += vec3_dot(w->dof[j].S, change);
    }
  }
}

static void hold_bodies(const qd_mj *mj, qd_mj_workspace *w) {
  const int pulls = !(mj->disableflags & MJ_NO_GRAVITY);
  for (int b = 1; b < mj->nbody; ++b) {
    const double *applied = mj->xfrc_applied + 6 * b;
    const double lift = pulls ? -mj->body_gravcomp[b] * mj->body_mass[b] : 0.0;
    double force[3];
    vec3_copy(force, applied);
    vec3_axpy(force, lift, mj->gravity);
    if (vec3_dot(force, force) + vec3_dot(applied + 3, applied + 3) > 0.0) {
      hold_force(mj, w, b, force, applied + 3);
    }
  }
}

static void passive(const qd_mj *mj, qd_mj_workspace *w) {
  const int springs = !(mj->disableflags & MJ_NO_SPRING);
  const int dampers = !(mj->disableflags & MJ_NO_DAMPER);
  for (int i = 0; i < mj->nv; ++i) {
    if (springs) {
      joint_spring(mj, w, i);
    }
    if (dampers) {
      row_of(w, i)[mj->nv + i] -= mj->dof_damping[i];
    }
  }
  for (int t = 0; t < mj->ntendon; ++t) {
    const double *rest = mj->tendon_lengthspring + 2 * t, length = mj->ten_length[t];
    const int slack = rest[0] < rest[1] && length >= rest[0] && length <= rest[1];
    if (springs && mj->tendon_stiffness[t] != 0.0 && !slack) {
      mj_add_tendon(mj, w->rhs, w->columns, t, -mj->tendon_stiffness[t]);
    }
    if (dampers && mj->tendon_damping[t] != 0.0) {
      mj_add_tendon(mj, w->rhs + mj->nv, w->columns, t, -mj->tendon_damping[t]);
    }
  }
}

/* ---------------------------------------------------------------- actuators */

static int is_off(const qd_mj *mj, int i) {
  const int group = mj->actuator_group[i];
  return (mj->disableflags & MJ_NO_ACTUATION) != 0 ||
         (group >= 0 && group < 31 && (mj->disableactuator & (1 << group)) != 0);
}

static int is_clamped(const qd_mj *mj, int i) {
  const double *range = mj->actuator_ctrlrange + 2 * i, u = mj->ctrl[i];
  return !(mj->disableflags & MJ_NO_CLAMP) && mj->actuator_ctrllimited[i] &&
         (u < range[0] || u > range[1]);
}

/* The next activation, and its derivatives by the present one and by the control. */
static double next_activation(const qd_mj *mj, int i, double *by_act, double *by_ctrl) {
  const int at = mj->actuator_actadr[i];
  const double *prm = mj->actuator_dynprm + (size_t)i * (size_t)mj->dynprm_count;
  const double h = mj->timestep, tau = fmax(1e-15, prm[0]), *range = mj->actuator_actrange + 2 * i;
  double share = h, decay = 0.0; /* factor of act_dot; minus its derivative by act */
  if (is_off(mj, i)) {
    share = 0.0;
  } else if (mj->actuator_dyntype[i] == DYN_FILTER) {
    decay = 1.0 / tau;
  } else if (mj->actuator_dyntype[i] == DYN_FILTER_EXACT) {
    decay = 1.0 / tau;
    share = tau * (1.0 - exp(-h / tau));
  }
  const double next = mj->act[at] + share * mj->act_dot[at];
  const int advances = !(mj->disableflags & MJ_NO_ACTUATION);
  const int stops = advances && mj->actuator_actlimited[i] && (next < range[0] || next > range[1]);
  const double drives = decay > 0.0 ? decay : 1.0;
  *by_act = stops ? 0.0 : 1.0 - share * decay;
  *by_ctrl = stops || is_clamped(mj, i) ? 0.0 : share * drives;
  return stops ? fmax(range[0], fmin(range[1], next)) : next;
}

int mj_drive_read(const qd_mj *mj, int i, mj_drive *d) {
  const double *gain = mj->actuator_gainprm + (size_t)i * (size_t)mj->gainprm_count;
  const double *bias = mj->actuator_biasprm + (size_t)i * (size_t)mj->biasprm_count;
  const double *range = mj->actuator_forcerange + 2 * i;
  double input = mj->ctrl[i];
  *d = (mj_drive){.act = mj->actuator_dyntype[i] == DYN_NONE ? -1 : mj->actuator_actadr[i]};
  d->force = mj->actuator_force[i];
  if (is_off(mj, i)) {
    return 0;
  }
  if (mj->actuator_forcelimited[i] && (d->force <= range[0] || d->force >= range[1])) {
    return 0;
  }
  if (d->act < 0) {
    const double *limits = mj->actuator_ctrlrange + 2 * i;
    d->by_ctrl = is_clamped(mj, i) ? 0.0 : 1.0;
    input = is_clamped(mj, i) ? fmax(limits[0], fmin(limits[1], input)) : input;
  } else if (mj->actuator_actearly[i]) {
    input = next_activation(mj, i, &d->by_act, &d->by_ctrl);
  } else {
    d->by_act = 1.0;
    input = mj->act[d->act];
  }
  d->gain = gain[0];
  if (mj->actuator_gaintype[i] == AFFINE) {
    d->gain += gain[1] * mj->actuator_length[i] + gain[2] * mj->actuator_velocity[i];
    d->by_length += gain[1] * input;
    d->by_velocity += gain[2] * input;
    d->length_gain = gain[1];
    d->velocity_gain = gain[2];
  }
  if (mj->actuator_biastype[i] == AFFINE) {
    d->by_length += bias[1];
    d->by_velocity += bias[2];
  }
  return 1;
}

int mj_drive_transmit(const qd_mj *mj, qd_mj_workspace *w, int i) {
  const double *gear = mj->actuator_gear + 6 * i;
  const int object = mj->actuator_trnid[2 * i];
  double *moment = w->wide, *slope = w->wide + mj->nv;
  memset(moment, 0, 2 * (size_t)mj->nv * sizeof *moment);
  if (mj->actuator_trntype[i] == TRN_TENDON) {
    const int from = mj->ten_J_rowadr[object];
    for (int p = from; p < from + mj->ten_J_rownnz[object]; ++p) {
      moment[mj->ten_J_colind[p]] = gear[0] * mj->ten_J[p];
    }
    return 0;
  }
  if (mj->actuator_trntype[i] == TRN_SITE) {
    double force[3], torque[3], p[3];
    const int body = mj->site_bodyid[object];
    mat3_mul_vec(force, mj->site_xmat + 9 * object, gear);
    mat3_mul_vec(torque, mj->site_xmat + 9 * object, gear + 3);
    vec3_sub(p, mj->site_xpos + 3 * object, w->origin);
    vec3_add_cross(torque, 1.0, p, force);
    for (int k = w->last_dof[body]; k >= 0; k = w->dof[k].parent) {
      moment[k] = vec3_dot(w->dof[k].S, torque) + vec3_dot(w->dof[k].S + 3, force);
    }
    return 1;
  }
  const int dof = mj->jnt_dofadr[object], type = mj->jnt_type[object];
  if (type == MJ_BALL) {
    double r[3], by[9];
    quat_log(r, mj->qpos + mj->jnt_qposadr[object]);
    vec3_scale(r, r, -1.0);
    rotation_left_jacobian_inverse(by, r);
    memcpy(moment + dof, gear, 3 * sizeof *moment);
    mat3_tmul_vec(slope + dof, by, gear);
    return 1;
  }
  memcpy(moment + dof, gear, (size_t)(type == MJ_FREE ? 6 : 1) * sizeof *moment);
  return type == MJ_FREE;
}

/* The wrench of a site moves with its body. */
static void carry_wrench(const qd_mj *mj, qd_mj_workspace *w, int i, double force) {
  const int site = mj->actuator_trnid[2 * i], body = mj->site_bodyid[site];
  double wrench[6], p[3];
  mat3_mul_vec(wrench + 3, mj->site_xmat + 9 * site, mj->actuator_gear + 6 * i);
  mat3_mul_vec(wrench, mj->site_xmat + 9 * site, mj->actuator_gear + 6 * i + 3);
  vec3_sub(p, mj->site_xpos + 3 * site, w->origin);
  vec3_add_cross(wrench, 1.0, p, wrench + 3);
  for (int a = 0; a < 6; ++a) {
    wrench[a] *= force;
  }
  six_axpy(w->body[body].wrench, 1.0, wrench);
  for (int k = w->last_dof[body]; k >= 0; k = w->dof[k].parent) {
    double change[6];
    six_cross_wrench(change, w->dof[k].S, wrench);
    for (int j = w->last_dof[body]; j >= 0; j = w->dof[j].parent) {
      row_of(w, j)[k] += six_dot(w->dof[j].S, change);
    }
  }
}

/* 1 if the joint's own limit of actuator forces is reached. */
static int is_saturated(const qd_mj *mj, int dof) {
  const int joint = mj->dof_jntid[dof];
  const double *range = mj->jnt_actfrcrange + 2 * joint, force = mj->qfrc_actuator[dof];
  return mj->jnt_actfrclimited[joint] && (force <= range[0] || force >= range[1]);
}

static void actuate(const qd_mj *mj, qd_mj_workspace *w, int i) {
  mj_drive d;
  if (mj->actuator_trntype[i] == TRN_SITE && !is_off(mj, i)) {
    carry_wrench(mj, w, i, mj->actuator_force[i]);
  }
  if (!mj_drive_read(mj, i, &d)) {
    return;
  }
  const int nv = (int)mj->nv;
  const int differs = mj_drive_transmit(mj, w, i);
  const double *moment = w->wide, *slope = differs ? w->wide + nv : moment;
  for (int j = 0; j < nv; ++j) {
    if (moment[j] == 0.0 || is_saturated(mj, j)) {
      continue;
    }
    double *row = row_of(w, j);
    for (int k = 0; k < nv; ++k) {
      row[k] += moment[j] * d.by_length * slope[k];
      row[nv + k] += moment[j] * d.by_velocity * moment[k];
    }
    if (d.act >= 0) {
      row[2 * nv + d.act] += moment[j] * d.gain * d.by_act;
    }
    row[2 * nv + mj->na + i] += moment[j] * d.gain * d.by_ctrl;
  }
}

void mj_drives(const qd_mj *mj, qd_mj_workspace *w) {
  hold_bodies(mj, w);
  passive(mj, w);
  for (int i = 0; i < mj->nactuator; ++i) {
    actuate(mj, w, i);
  }
}

void mj_activations(const qd_mj *mj, double *A, double *B) {
  const size_t rows = (size_t)(2 * mj->nv), width = rows + (size_t)mj->na;
  for (int i = 0; i < mj->nactuator; ++i) {
    const int at = mj->actuator_dyntype[i] == DYN_NONE ? -1 : mj->actuator_actadr[i];
    if (at >= 0) {
      double *row = A + (rows + (size_t)at) * width + rows + (size_t)at;
      next_activation(mj, i, row, B + (rows + (size_t)at) * (size_t)mj->nu + (size_t)i);
    }
  }
}

/* ---------------------------------------------------------------- implicit integration */

/* 1 for dofs on one path to the world, where M has entries. */
static int are_kin(const qd_mj_workspace *w, int i, int j) {
  int deep = i > j ? i : j;
  const int up = i > j ? j : i;
  while (deep > up) {
    deep = w->dof[deep].parent;
  }
  return deep == up;
}

static void add_implicit_actuator(const qd_mj *mj, qd_mj_workspace *w, int i) {
  mj_drive d;
  if (!mj_drive_read(mj, i, &d) || (d.by_velocity == 0.0 && d.velocity_gain == 0.0)) {
    return;
  }
  const int nv = (int)mj->nv, inputs = (int)(mj->na + mj->nu);
  mj_drive_transmit(mj, w, i);
  for (int j = 0; j < nv; ++j) {
    for (int k = 0; w->wide[j] != 0.0 && k < nv; ++k) {
      const double both = w->wide[j] * w->wide[k];
      if (both == 0.0 || !are_kin(w, j, k)) {
        continue;
      }
      w->P[j * nv + k] -= mj->timestep * d.by_velocity * both;
      double *row = w->implicit + (size_t)j * (size_t)inputs;
      const double pull = mj->timestep * d.velocity_gain * both * w->a[k];
      if (d.act >= 0) {
        row[d.act] += pull * d.by_act;
      }
      row[mj->na + i] += pull * d.by_ctrl;
    }
  }
}

void mj_drives_implicit(const qd_mj *mj, qd_mj_workspace *w) {
  const int nv = (int)mj->nv;
  memcpy(w->P, w->M, (size_t)nv * (size_t)nv * sizeof *w->P);
  const int dampers = !(mj->disableflags & MJ_NO_DAMPER);
  if (mj->integrator == MJ_DISCRETE || /* S is in M */
      (mj->integrator == MJ_EULER && (mj->disableflags & MJ_NO_EULERDAMP))) {
    return;
  }
  for (int i = 0; dampers && i < nv; ++i) {
    w->P[i * nv + i] += mj->timestep * mj->dof_damping[i];
  }
  if (mj->integrator == MJ_EULER) {
    return;
  }
  for (int t = 0; dampers && t < mj->ntendon; ++t) {
    if (mj->tendon_damping[t] != 0.0) {
      const int from = mj->ten_J_rowadr[t], end = from + mj->ten_J_rownnz[t];
      for (int p = from; p < end; ++p) {
        for (int q = from; q < end; ++q) {
          const int i = mj->ten_J_colind[p], j = mj->ten_J_colind[q];
          const double both = mj->timestep * mj->tendon_damping[t] * mj->ten_J[p] * mj->ten_J[q];
          w->P[i * nv + j] += are_kin(w, i, j) ? both : 0.0;
        }
      }
    }
  }
  for (int i = 0; i < mj->nactuator; ++i) {
    add_implicit_actuator(mj, w, i);
  }
}
