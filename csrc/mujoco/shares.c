/* The R of rows under the integrator "discrete". R of a row J is multiplied by the share of sum
 * J_j^2 / A_jj in sum J_j^2 / M_jj. Its logarithm changes with J, with M_jj, and with S_jj, which
 * depends on the moments of spatial tendons and on the gains of actuators. */
#include "mujoco/parts.h"

/* ---------------------------------------------------------------- the diagonals */

/* mass_by_q: M_jj changes with the dofs k behind j, as the subtree of k turns: by -2 (S_k x S_j) .
 * I_k S_j. Rotations of one block turn with the inertia. */
static void differentiate_mass(const qd_mj *mj, qd_mj_workspace *w) {
  const int nv = (int)mj->nv;
  memset(w->mass_by_q, 0, (size_t)nv * (size_t)nv * sizeof *w->mass_by_q);
  for (int b = 0; b < mj->nbody; ++b) {
    w->whole[b] = w->body[b].inertia;
  }
  for (int b = (int)mj->nbody - 1; b > 0; --b) {
    inertia_add(w->whole + mj->body_parentid[b], w->whole + b);
  }
  for (int k = 0; k < nv; ++k) {
    const mj_dof *d = w->dof + k;
    for (int j = d->parent; j >= 0; j = w->dof[j].parent) {
      double turned[6], momentum[6];
      if (w->dof[j].block != d->block) {
        six_cross(turned, d->S, w->dof[j].S);
        inertia_apply(momentum, w->whole + mj->dof_bodyid[k], w->dof[j].S);
        w->mass_by_q[j * nv + k] = -2.0 * six_dot(turned, momentum);
      }
    }
  }
}

void mj_shares_begin(const qd_mj *mj, qd_mj_workspace *w) {
  w->weighs = 0;
  for (int i = 0; mj->integrator == MJ_DISCRETE && mj->nefc > 0 && i < mj->nv; ++i) {
    w->weighs |= w->side[i] > 0.0;
  }
  if (w->weighs) {
    differentiate_mass(mj, w);
  }
}

/* Adds the changes of S_jj, which have these weights. */
static void add_sides(const qd_mj *mj, qd_mj_workspace *w, const double *weight) {
  const int nv = (int)mj->nv;
  for (int t = 0; t < mj->ntendon; ++t) {
    double scale = mj_tendon_bar(mj, t).scale + mj_tendon_drives(mj, t).scale;
    if (scale == 0.0 || !mj_tendon_is_spatial(mj, t)) {
      continue;
    }
    mj_tendon_row(mj, w->wide, t);
    for (int j = 0; j < nv; ++j) {
      w->wide[j] *= 2.0 * scale * weight[j];
    }
    mj_spread(mj, w, w->wide);
    mj_tendon_turns(mj, w, t, 1.0, w->log_R);
  }
  for (int i = 0; i < mj->nactuator; ++i) {
    mj_drive d;
    const mj_bar bar = mj_drive_read(mj, i, &d) ? mj_drive_bar(mj, &d) : (mj_bar){0};
    double sum = 0.0;
    if (bar.scale_by_input == 0.0) {
      continue;
    }
    mj_drive_transmit(mj, w, i);
    for (int j = 0; j < nv; ++j) {
      sum += weight[j] * w->wide[j] * w->wide[j] * bar.scale_by_input;
    }
    if (d.act >= 0) {
      w->log_R[nv + d.act] += sum * d.by_act;
    }
    w->log_R[nv + mj->na + i] += sum * d.by_ctrl;
  }
}

/* ---------------------------------------------------------------- rows */

void mj_spread(const qd_mj *mj, qd_mj_workspace *w, const double *rates) {
  memset(w->body[0].W, 0, sizeof w->body[0].W);
  for (int i = 1; i < mj->nbody; ++i) {
    mj_body *b = w->body + i;
    double before[6];
    six_copy(b->W, w->body[mj->body_parentid[i]].W);
    six_copy(before, b->W);
    for (int j = mj->body_dofadr[i]; j < mj->body_dofadr[i] + mj->body_dofnum[i]; ++j) {
      if (w->dof[j].block == j) {
        six_copy(before, b->W);
      }
      six_copy(w->dof[j].w_before, before);
      six_axpy(b->W, rates[j], w->dof[j].S);
    }
  }
}

int mj_share_begin(const qd_mj *mj, qd_mj_workspace *w, int row) {
  const int nv = (int)mj->nv, count = w->weighs ? mj_rows_compact(mj, w, row, 1) : 0;
  double by_metric = 0.0, by_mass = 0.0, *along = w->along, *weight = w->along + nv;
  int weighs = 0;
  for (int p = 0; p < count; ++p) {
    const int j = w->column[p];
    const double square = w->compact[p] * w->compact[p];
    by_metric += square / (w->mass[j] + w->side[j]);
    by_mass += square / w->mass[j];
    weighs |= square > 0.0 && w->side[j] > 0.0;
  }
  if (!weighs) {
    return 0;
  }
  memset(w->log_R, 0, (size_t)(nv + mj->na + mj->nu) * sizeof *w->log_R);
  memset(along, 0, 2 * (size_t)nv * sizeof *along);
  for (int p = 0; p < count; ++p) {
    const int j = w->column[p];
    const double J = w->compact[p], mass = w->mass[j], whole = mass + w->side[j];
    const double of_metric = J / (whole * by_metric), of_mass = J / (mass * by_mass);
    along[j] = 2.0 * (of_metric - of_mass);
    weight[j] = -of_metric * J / whole;
    for (int k = j + 1; k < nv; ++k) {
      w->log_R[k] += (weight[j] + of_mass * J / mass) * w->mass_by_q[j * nv + k];
    }
  }
  add_sides(mj, w, weight);
  mj_spread(mj, w, along);
  return 1;
}

void mj_share_end(const qd_mj *mj, qd_mj_workspace *w, int row, int count) {
  const int nv = (int)mj->nv, inputs = (int)(mj->na + mj->nu);
  for (int i = row; i < row + count; ++i) {
    const int entries = w->f[i] != 0.0 ? mj_rows_compact(mj, w, i, 1) : 0;
    for (int p = 0; p < entries; ++p) {
      const double load = w->compact[p] * w->f[i];
      double *to = w->rhs + (size_t)w->column[p] * (size_t)w->columns;
      for (int k = 0; k < nv; ++k) {
        to[k] -= load * w->log_R[k];
      }
      for (int k = 0; k < inputs; ++k) {
        to[2 * nv + k] -= load * w->log_R[nv + k];
      }
    }
  }
}
