/* The integrator "discrete" has A = M + S in the place of M. Every spring of stiffness k and damper
 * b along a row m (a dof, a tendon, an actuator's moment) adds s m m' to S, s = h^2 k + h b, and -h
 * k (m v) m to the forces.
 *
 * R of a row J is multiplied by the share of sum J_j^2 / A_jj in sum J_j^2 / M_jj. Its logarithm
 * changes with J, with M_jj, and with S_jj, which depends on the moments of spatial tendons and on
 * the gains of actuators. Source: MuJoCo, Computation, "Discrete". */
#include "mujoco/parts.h"

/* ---------------------------------------------------------------- springs and dampers */

mj_bar mj_tendon_bar(const qd_mj *mj, int tendon) {
  const double *rest = mj->tendon_lengthspring + 2 * tendon, length = mj->ten_length[tendon];
  const double h = mj->timestep;
  double k = 0.0, b = 0.0;
  if (mj->integrator == MJ_DISCRETE) {
    const int pulls = length < rest[0] || length > rest[1];
    k = pulls && !(mj->disableflags & MJ_NO_SPRING) ? mj->tendon_stiffness[tendon] : 0.0;
    b = mj->disableflags & MJ_NO_DAMPER ? 0.0 : mj->tendon_damping[tendon];
  }
  return (mj_bar){.scale = h * (h * fmax(k, 0.0) + fmax(b, 0.0)), .stiff = h * fmax(k, 0.0)};
}

mj_bar mj_drive_bar(const qd_mj *mj, const mj_drive *d) {
  const double h = mj->timestep;
  mj_bar bar = {0};
  if (mj->integrator == MJ_DISCRETE) {
    bar.stiff = h * fmax(0.0, -d->by_length);
    bar.scale = h * (bar.stiff + fmax(0.0, -d->by_velocity));
    bar.stiff_by_input = d->by_length < 0.0 ? -h * d->length_gain : 0.0;
    bar.scale_by_input = h * (bar.stiff_by_input - (d->by_velocity < 0.0 ? d->velocity_gain : 0.0));
  }
  return bar;
}

static double joint_stiffness(const qd_mj *mj, int dof) {
  return mj->disableflags & MJ_NO_SPRING ? 0.0 : fmax(0.0, mj->jnt_stiffness[mj->dof_jntid[dof]]);
}

static void add_dof(const qd_mj *mj, qd_mj_workspace *w, int i) {
  const double h = mj->timestep, k = joint_stiffness(mj, i);
  const double b = mj->disableflags & MJ_NO_DAMPER ? 0.0 : fmax(0.0, mj->dof_damping[i]);
  w->side[i] += h * (h * k + b);
  w->shift[i] -= h * k * mj->qvel[i];
}

/* A dense row in w->wide. */
static void add_row(const qd_mj *mj, qd_mj_workspace *w, const mj_bar *bar) {
  const int nv = (int)mj->nv;
  const double *m = w->wide;
  double speed = 0.0;
  for (int j = 0; j < nv; ++j) {
    speed += m[j] * mj->qvel[j];
  }
  for (int j = 0; j < nv; ++j) {
    w->held[j] |= m[j] != 0.0;
    w->side[j] += bar->scale * m[j] * m[j];
    w->shift[j] -= bar->stiff * speed * m[j];
    for (int k = 0; m[j] != 0.0 && k < nv; ++k) {
      w->M[j * nv + k] += j == k ? 0.0 : bar->scale * m[j] * m[k];
    }
  }
}

void mj_tendon_row(const qd_mj *mj, double *dense, int tendon) {
  const int from = mj->ten_J_rowadr[tendon];
  memset(dense, 0, (size_t)mj->nv * sizeof *dense);
  for (int p = from; p < from + mj->ten_J_rownnz[tendon]; ++p) {
    dense[mj->ten_J_colind[p]] = mj->ten_J[p];
  }
}

static void add_bars(const qd_mj *mj, qd_mj_workspace *w) {
  for (int t = 0; t < mj->ntendon; ++t) {
    const mj_bar bar = mj_tendon_bar(mj, t);
    if (bar.scale > 0.0) {
      mj_tendon_row(mj, w->wide, t);
      add_row(mj, w, &bar);
    }
  }
  for (int i = 0; i < mj->nactuator; ++i) {
    mj_drive d;
    const mj_bar bar = mj_drive_read(mj, i, &d) ? mj_drive_bar(mj, &d) : (mj_bar){0};
    if (bar.scale > 0.0) {
      mj_drive_transmit(mj, w, i);
      add_row(mj, w, &bar);
    }
  }
}

void mj_metric_begin(const qd_mj *mj, qd_mj_workspace *w) {
  const size_t nv = (size_t)mj->nv;
  memset(w->shift, 0, nv * sizeof *w->shift);
  memset(w->held, 0, nv * sizeof *w->held);
  if (mj->integrator != MJ_DISCRETE) {
    return;
  }
  memset(w->side, 0, nv * sizeof *w->side);
  for (size_t i = 0; i < nv; ++i) {
    w->mass[i] = w->M[i * (nv + 1)];
    add_dof(mj, w, (int)i);
  }
  add_bars(mj, w);
  for (size_t i = 0; i < nv; ++i) {
    w->M[i * (nv + 1)] += w->side[i];
  }
}

/* ---------------------------------------------------------------- derivatives of their forces */

static void drive_by_state(const qd_mj *mj, qd_mj_workspace *w, int i) {
  mj_drive d;
  const mj_bar bar = mj_drive_read(mj, i, &d) ? mj_drive_bar(mj, &d) : (mj_bar){0};
  const int nv = (int)mj->nv;
  const double *m = w->wide;
  double rate = 0.0, speed = 0.0;
  if (bar.scale == 0.0) {
    return;
  }
  mj_drive_transmit(mj, w, i);
  for (int j = 0; j < nv; ++j) {
    rate += m[j] * w->x[j];
    speed += m[j] * mj->qvel[j];
  }
  const double by_input = bar.scale_by_input * rate + bar.stiff_by_input * speed;
  for (int j = 0; j < nv; ++j) {
    double *row = w->rhs + (size_t)j * (size_t)w->columns;
    for (int k = 0; m[j] != 0.0 && k < nv; ++k) {
      row[nv + k] -= bar.stiff * m[j] * m[k];
    }
    if (d.act >= 0) {
      row[2 * nv + d.act] -= m[j] * by_input * d.by_act;
    }
    row[2 * nv + mj->na + i] -= m[j] * by_input * d.by_ctrl;
  }
}

void mj_metric_by_state(const qd_mj *mj, qd_mj_workspace *w) {
  if (mj->integrator != MJ_DISCRETE) {
    return;
  }
  for (int i = 0; i < mj->nv; ++i) {
    w->rhs[i * (int64_t)w->columns + mj->nv + i] -= mj->timestep * joint_stiffness(mj, i);
  }
  for (int t = 0; t < mj->ntendon; ++t) {
    mj_add_tendon(mj, w->rhs + mj->nv, w->columns, t, -mj_tendon_bar(mj, t).stiff);
  }
  for (int i = 0; i < mj->nactuator; ++i) {
    drive_by_state(mj, w, i);
  }
}
