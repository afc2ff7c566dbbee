/* MuJoCo's rows: forces and their curvature, as functions of r = J x - aref.
 *
 * A row's force is -r / R; for dry friction within its loss, for unilateral rows if it pushes. An
 * elliptic contact (normal n, tail t, both scaled: N = mu r_n, U = friction r_t, T = |U|) is free
 * if N >= mu T, sticks if mu N + T <= 0, and otherwise costs D (N - mu T)^2 / 2, D = 1 / (R_n mu^2
 * (1 + mu^2)). Source: MuJoCo, Computation, "Solver: primal". */
#include "mujoco/parts.h"

static void product_row(const qd_mj *mj, int i, const double *x, double *out) {
  double sum = 0.0;
  if (mj->efc_J_rownnz != NULL) {
    const int at = mj->efc_J_rowadr[i];
    for (int p = at; p < at + mj->efc_J_rownnz[i]; ++p) {
      sum += mj->efc_J[p] * x[mj->efc_J_colind[p]];
    }
  } else {
    const double *row = mj->efc_J + (size_t)i * (size_t)mj->nv;
    for (int j = 0; j < mj->nv; ++j) {
      sum += row[j] * x[j];
    }
  }
  *out = sum;
}

/* out += s J_i' */
static void add_row(const qd_mj *mj, int i, double s, double *out) {
  if (mj->efc_J_rownnz != NULL) {
    const int at = mj->efc_J_rowadr[i];
    for (int p = at; p < at + mj->efc_J_rownnz[i]; ++p) {
      out[mj->efc_J_colind[p]] += s * mj->efc_J[p];
    }
  } else {
    const double *row = mj->efc_J + (size_t)i * (size_t)mj->nv;
    for (int j = 0; j < mj->nv; ++j) {
      out[j] += s * row[j];
    }
  }
}

static int rows_of(const qd_mj *mj, int i) {
  return mj->efc_type[i] == MJ_ROW_ELLIPTIC
             ? *mj_contact_ints(mj->contact_dim, mj->contact_stride, mj->efc_id[i])
             : 1;
}

/* ---------------------------------------------------------------- forces */

static void evaluate_single(const qd_mj *mj, qd_mj_workspace *w, int i) {
  const double R = mj->efc_R[i], r = w->r[i];
  const int type = mj->efc_type[i];
  int acts = 1;
  w->f[i] = -r / R;
  if (type == MJ_ROW_FRICTION_DOF || type == MJ_ROW_FRICTION_TENDON) {
    const double most = mj->efc_frictionloss[i];
    acts = fabs(r) < R * most;
    if (!acts) {
      w->f[i] = r > 0.0 ? -most : most;
    }
  } else if (type != MJ_ROW_EQUALITY) {
    acts = r < 0.0;
    if (!acts) {
      w->f[i] = 0.0;
    }
  }
  w->h[i] = acts ? 1.0 / R : 0.0;
}

/* The boundary of the cone: force and Hessian of D (N - mu T)^2 / 2. */
static void evaluate_wall(double *f, double *H, const double *U, const double *scale, int dim,
                          double D, double T) {
  const double mu = scale[0], gap = U[0] - mu * T;
  double u[6] = {0.0}, slope[6];
  slope[0] = 1.0;
  for (int a = 1; a < dim; ++a) {
    u[a] = U[a] / T;
    slope[a] = -mu * u[a];
  }
  for (int a = 0; a < dim; ++a) {
    f[a] = -D * gap * slope[a] * scale[a];
    for (int b = 0; b < dim; ++b) {
      const double bend =
          a > 0 && b > 0 ? -gap * mu / T * ((a == b ? 1.0 : 0.0) - u[a] * u[b]) : 0.0;
      H[6 * a + b] = D * scale[a] * scale[b] * (slope[a] * slope[b] + bend);
    }
  }
}

static void evaluate_elliptic(const qd_mj *mj, qd_mj_workspace *w, int i, int dim) {
  const int contact = mj->efc_id[i];
  const double *friction = mj_contact_doubles(mj->contact_friction, mj->contact_stride, contact);
  const double mu = *mj_contact_doubles(mj->contact_mu, mj->contact_stride, contact);
  double scale[6], U[6], tail = 0.0, *f = w->f + i, *H = w->cone + 6 * i;
  for (int a = 0; a < dim; ++a) {
    scale[a] = a == 0 ? mu : friction[a - 1];
    U[a] = scale[a] * w->r[i + a];
    tail += a > 0 ? U[a] * U[a] : 0.0;
    f[a] = 0.0;
    memset(H + 6 * a, 0, 6 * sizeof *H);
  }
  const double T = sqrt(tail), N = U[0];
  if (N >= mu * T) {
    return;
  }
  if (mu * N + T <= 0.0) {
    for (int a = 0; a < dim; ++a) {
      f[a] = -w->r[i + a] / mj->efc_R[i + a];
      H[7 * a] = 1.0 / mj->efc_R[i + a];
    }
    return;
  }
  evaluate_wall(f, H, U, scale, dim, 1.0 / (mj->efc_R[i] * mu * mu * (1.0 + mu * mu)), T);
}

void mj_rows_begin(const qd_mj *mj, qd_mj_workspace *w) {
  memset(w->speed, 0, (size_t)mj->nefc * sizeof *w->speed);
  for (int i = 0; mj->integrator == MJ_DISCRETE && i < mj->nefc; ++i) {
    product_row(mj, i, mj->qvel, w->speed + i);
  }
}

void mj_rows_evaluate(const qd_mj *mj, qd_mj_workspace *w) {
  for (int i = 0, dim; i < mj->nefc; i += dim) {
    dim = rows_of(mj, i);
    for (int a = 0; a < dim; ++a) {
      product_row(mj, i + a, w->x, w->r + i + a);
      w->r[i + a] -= mj->efc_aref[i + a];
    }
    if (mj->efc_type[i] == MJ_ROW_ELLIPTIC) {
      evaluate_elliptic(mj, w, i, dim);
    } else {
      evaluate_single(mj, w, i);
    }
  }
}

/* ---------------------------------------------------------------- Newton's system */

static int compact_sparse(const qd_mj *mj, qd_mj_workspace *w, int row, int dim) {
  const int count = mj->efc_J_rownnz[row];
  for (int a = 0; a < dim; ++a) {
    memcpy(w->compact + (size_t)a * (size_t)mj->nv, mj->efc_J + mj->efc_J_rowadr[row + a],
           (size_t)count * sizeof *w->compact);
  }
  memcpy(w->column, mj->efc_J_colind + mj->efc_J_rowadr[row], (size_t)count * sizeof *w->column);
  return count;
}

int mj_rows_compact(const qd_mj *mj, qd_mj_workspace *w, int row, int dim) {
  if (mj->efc_J_rownnz != NULL) {
    return compact_sparse(mj, w, row, dim);
  }
  int count = 0;
  const size_t nv = (size_t)mj->nv;
  for (int j = 0; j < mj->nv; ++j) {
    int any = 0;
    for (int a = 0; a < dim; ++a) {
      const double entry = mj->efc_J[(size_t)(row + a) * nv + (size_t)j];
      w->compact[(size_t)a * nv + (size_t)count] = entry;
      any |= entry != 0.0;
    }
    w->column[count] = j;
    count += any;
  }
  return count;
}

/* to += s J'H(scale J) of one block of rows; `to` has this number of columns */
static void add_block(const qd_mj *mj, qd_mj_workspace *w, int row, int dim, const double *scale,
                      double s, double *to, int columns) {
  const int elliptic = mj->efc_type[row] == MJ_ROW_ELLIPTIC;
  if (!elliptic && w->h[row] == 0.0) {
    return;
  }
  const int count = mj_rows_compact(mj, w, row, dim);
  for (int p = 0; p < count; ++p) {
    double load[6];
    for (int a = 0; a < dim; ++a) {
      load[a] = elliptic ? 0.0 : s * w->h[row] * w->compact[p];
      for (int b = 0; elliptic && b < dim; ++b) {
        load[a] += s * w->cone[6 * (row + b) + a] * w->compact[b * mj->nv + p];
      }
      load[a] *= scale != NULL ? scale[a] : 1.0;
    }
    double *out = to + (size_t)w->column[p] * (size_t)columns;
    for (int a = 0; a < dim; ++a) {
      const double *J = w->compact + (size_t)a * (size_t)mj->nv;
      for (int c = 0; load[a] != 0.0 && c < count; ++c) {
        out[w->column[c]] += load[a] * J[c];
      }
    }
  }
}

void mj_rows_curvature(const qd_mj *mj, qd_mj_workspace *w) {
  const int nv = (int)mj->nv;
  memcpy(w->k, w->M, (size_t)nv * (size_t)nv * sizeof *w->k);
  for (int i = 0, dim; i < mj->nefc; i += dim) {
    dim = rows_of(mj, i);
    add_block(mj, w, i, dim, NULL, 1.0, w->k, nv);
  }
}

void mj_rows_by_velocity(const qd_mj *mj, qd_mj_workspace *w) {
  for (int i = 0, dim; i < mj->nefc; i += dim) {
    double damping[6];
    dim = rows_of(mj, i);
    for (int a = 0; a < dim; ++a) {
      damping[a] = mj_row_law(mj, i + a).damping;
    }
    add_block(mj, w, i, dim, damping, -1.0, w->rhs + mj->nv, w->columns);
  }
}

void mj_rows_gradient(const qd_mj *mj, qd_mj_workspace *w, double *gradient) {
  const int nv = (int)mj->nv;
  for (int i = 0; i < nv; ++i) {
    gradient[i] = -mj->qfrc_smooth[i] - w->shift[i];
    for (int j = 0; j < nv; ++j) {
      gradient[i] += w->M[i * nv + j] * w->x[j];
    }
  }
  for (int i = 0; i < mj->nefc; ++i) {
    if (w->f[i] != 0.0) {
      add_row(mj, i, -w->f[i], gradient);
    }
  }
}
