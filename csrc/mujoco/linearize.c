/* The stages of qd_mj_linearize. The velocity after a step is v + h P^-1 M x, with P = M, or M + h
 * (damping and velocity gains) for Euler and implicitfast; the configuration follows from the new
 * velocity. */
#include "base/arena.h"
#include "base/block.h"
#include "base/multiversion.h"
#include "base/quat.h"
#include "mujoco/parts.h"

/* ---------------------------------------------------------------- meshes */

void qd_mj_meshes_destroy(qd_mj_meshes *meshes) {
  if (meshes == NULL) {
    return;
  }
  for (int i = 0; i < meshes->count; ++i) {
    if (meshes->mesh[i] != NULL) {
      convex_mesh_destroy(meshes->mesh[i]);
    }
  }
  free(meshes->mesh);
  free(meshes);
}

qd_mj_meshes *qd_mj_meshes_create(int mesh_count, const int32_t *vertex_count, const double *vertex,
                                  const int32_t *face_count, const int32_t *face) {
  qd_mj_meshes *meshes = calloc(1, sizeof *meshes);
  if (meshes == NULL) {
    return NULL;
  }
  meshes->count = mesh_count;
  meshes->mesh = calloc((size_t)mesh_count + 1, sizeof(convex_mesh *));
  if (meshes->mesh == NULL) {
    free(meshes);
    return NULL;
  }
  for (int i = 0; i < mesh_count; ++i) {
    const char *reason;
    int at;
    if (face_count[i] > 0 && convex_mesh_create(meshes->mesh + i, vertex, vertex_count[i], face,
                                                face_count[i], &reason, &at) != QD_OK) {
      meshes->mesh[i] = NULL; /* flat meshes: their contacts have no derivatives */
    }
    vertex += 3 * vertex_count[i];
    face += 3 * face_count[i];
  }
  return meshes;
}

/* ---------------------------------------------------------------- workspace */

qd_mj_workspace *qd_mj_workspace_create(void) { return calloc(1, sizeof(qd_mj_workspace)); }

void qd_mj_workspace_destroy(qd_mj_workspace *workspace) {
  if (workspace != NULL) {
    block_free(workspace->block);
    free(workspace);
  }
}

static void lay_out(const qd_mj *mj, qd_mj_workspace *w, arena *a) {
  const size_t nv = (size_t)mj->nv, rows = (size_t)mj->nefc, columns = (size_t)w->columns;
  w->body = arena_take(a, (size_t)mj->nbody * sizeof *w->body);
  w->dof = arena_take(a, nv * sizeof *w->dof);
  w->last_dof = arena_ints(a, (size_t)mj->nbody);
  ARENA_DOUBLES(a, nv, &w->x, &w->y, &w->a, &w->scratch, &w->mass, &w->side, &w->shift);
  ARENA_DOUBLES(a, nv * nv, &w->M, &w->P, &w->k, &w->by_q, &w->mass_by_q);
  ARENA_DOUBLES(a, nv * columns, &w->rhs, &w->dx);
  ARENA_DOUBLES(a, 6 * nv, &w->spin, &w->spin_inverse, &w->compact, &w->wide, &w->change);
  ARENA_INTS(a, nv, &w->column, &w->moves, &w->held, &w->alone);
  w->along = arena_doubles(a, 2 * nv);
  w->log_R = arena_doubles(a, nv + (size_t)(mj->na + mj->nu));
  w->whole = arena_take(a, (size_t)mj->nbody * sizeof *w->whole);
  w->implicit = arena_doubles(a, nv * (size_t)(mj->na + mj->nu));
  ARENA_DOUBLES(a, rows, &w->f, &w->h, &w->r, &w->speed);
  w->cone = arena_doubles(a, 6 * rows + 36);
  w->point = arena_take(a, 2 * (size_t)mj->nwrap * sizeof *w->point);
  w->motion = arena_take(a, 2 * (size_t)mj->nwrap * sizeof *w->motion);
  w->arc = arena_take(a, (size_t)mj->nwrap * sizeof *w->arc);
}

static int reserve(const qd_mj *mj, qd_mj_workspace *w) {
  arena count = {0};
  w->columns = (int)(2 * mj->nv + mj->na + mj->nu);
  lay_out(mj, w, &count);
  if (count.offset > w->bytes) {
    void *block =
        block_allocate(count.offset + count.offset / 2 / ARENA_ALIGNMENT * ARENA_ALIGNMENT);
    if (block == NULL) {
      return 0;
    }
    block_free(w->block);
    w->block = block;
    w->bytes = count.offset + count.offset / 2 / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
  }
  arena give = {.base = w->block};
  lay_out(mj, w, &give);
  return 1;
}

/* ---------------------------------------------------------------- accelerations */

static void read_mass(const qd_mj *mj, qd_mj_workspace *w) {
  const size_t nv = (size_t)mj->nv;
  memset(w->M, 0, nv * nv * sizeof *w->M);
  for (int i = 0; i < mj->nv; ++i) {
    const int from = mj->M_rowadr[i];
    for (int p = from; p < from + mj->M_rownnz[i]; ++p) {
      const size_t j = (size_t)mj->M_colind[p];
      w->M[(size_t)i * nv + j] = w->M[j * nv + (size_t)i] = mj->M[p];
    }
  }
}

/* Newton's method from MuJoCo's solution, whose last digits depend on its tolerance. */
static int settle(const qd_mj *mj, qd_mj_workspace *w, qd_mj_info *info) {
  enum { MOST = 8 };
  const int nv = (int)mj->nv;
  double before = INFINITY;
  memcpy(w->x, mj->qacc, (size_t)nv * sizeof *w->x);
  for (info->iterations = 0;; ++info->iterations) {
    mj_rows_evaluate(mj, w);
    mj_rows_curvature(mj, w);
    if (!mj_cholesky(w->k, nv)) {
      return 0;
    }
    mj_rows_gradient(mj, w, w->scratch);
    mj_cholesky_solve(w->k, nv, w->scratch, 1);
    double largest = 1e-9, off = 0.0;
    for (int i = 0; i < nv; ++i) {
      largest = fmax(largest, fabs(w->x[i]));
      off = fmax(off, fabs(w->scratch[i]));
    }
    info->residual = off / largest;
    if (info->residual < 1e-12 || info->iterations == MOST || info->residual > before) {
      return 1;
    }
    before = info->residual;
    for (int i = 0; i < nv; ++i) {
      w->x[i] -= w->scratch[i];
    }
  }
}

/* P; and, for the acceleration a, the derivatives of the terms of gains and spins in P a. */
static void read_implicit(const qd_mj *mj, qd_mj_workspace *w) {
  memset(w->implicit, 0, (size_t)mj->nv * (size_t)(mj->na + mj->nu) * sizeof *w->implicit);
  mj_drives_implicit(mj, w);
  mj_spins_implicit(mj, w);
}

static int factor_implicit(const qd_mj *mj, qd_mj_workspace *w) {
  return mj_spins_split(mj, w) && mj_cholesky(w->P, (int)mj->nv);
}

/* rows (nv, columns) = P^-1 rows; uses dx as scratch. */
static void solve_implicit(const qd_mj *mj, qd_mj_workspace *w, double *rows, int columns) {
  if (w->spins) {
    memcpy(w->dx, rows, (size_t)mj->nv * (size_t)columns * sizeof *rows);
  }
  mj_cholesky_solve(w->P, (int)mj->nv, rows, columns);
  mj_spins_solve(mj, w, rows, w->dx, columns);
}

/* a = P^-1 M x and y = x - a; P becomes its factor. */
static int integrate_velocity(const qd_mj *mj, qd_mj_workspace *w) {
  const int nv = (int)mj->nv;
  memcpy(w->a, w->x, (size_t)nv * sizeof *w->a);
  memset(w->y, 0, (size_t)nv * sizeof *w->y);
  read_implicit(mj, w);
  w->damped = memcmp(w->P, w->M, (size_t)nv * (size_t)nv * sizeof *w->P) != 0;
  if (!w->damped) {
    return 1;
  }
  for (int i = 0; i < nv; ++i) {
    w->a[i] = 0.0;
    for (int j = 0; j < nv; ++j) {
      w->a[i] += w->M[i * nv + j] * w->x[j];
    }
  }
  if (!factor_implicit(mj, w)) {
    return 0;
  }
  solve_implicit(mj, w, w->a, 1);
  for (int i = 0; i < nv; ++i) {
    w->y[i] = w->x[i] - w->a[i];
  }
  double *factor = w->P;
  w->P = w->by_q;
  read_implicit(mj, w); /* for the final a */
  w->P = factor;
  return 1;
}

static void add_spins(const qd_mj *mj, qd_mj_workspace *w) {
  for (int i = 3; w->spins && i < mj->nv; ++i) {
    for (int j = i - 3; w->alone[i] && j < i + 3; ++j) {
      double *row = w->rhs + j * (int64_t)w->columns;
      for (int k = 0; k < 3; ++k) {
        row[i + k] += w->spin[6 * j + k];
        row[mj->nv + i + k] += w->spin[6 * j + 3 + k];
      }
    }
  }
}

/* rhs becomes the derivative of the next velocity minus that of v. */
QD_MULTIVERSION
static void finish_velocity(const qd_mj *mj, qd_mj_workspace *w) {
  const size_t nv = (size_t)mj->nv, columns = (size_t)w->columns,
               inputs = (size_t)(mj->na + mj->nu);
  const double h = mj->timestep;
  mj_cholesky_solve(w->k, (int)nv, w->rhs, (int)columns);
  if (w->damped) {
    memcpy(w->dx, w->rhs, nv * columns * sizeof *w->dx);
    memset(w->rhs, 0, nv * columns * sizeof *w->rhs);
    for (size_t i = 0; i < nv; ++i) {
      double *row = w->rhs + i * columns;
      memcpy(row, w->by_q + i * nv, nv * sizeof *row);
      memcpy(row + 2 * nv, w->implicit + i * inputs, inputs * sizeof *row);
      for (size_t j = 0; j < nv; ++j) {
        const double m = w->M[i * nv + j];
        const double *from = w->dx + j * columns;
        for (size_t c = 0; m != 0.0 && c < columns; ++c) {
          row[c] += m * from[c];
        }
      }
    }
    add_spins(mj, w);
    solve_implicit(mj, w, w->rhs, (int)columns);
  }
  for (size_t i = 0; i < nv * columns; ++i) {
    w->rhs[i] *= h;
  }
}

/* ---------------------------------------------------------------- rows of A and B */

/* Adds s times a row of rhs to its row of A and B. */
static void add_row(const qd_mj *mj, const double *from, double s, double *A, double *B) {
  const int64_t state = 2 * mj->nv + mj->na;
  for (int64_t c = 0; c < state; ++c) {
    A[c] += s * from[c];
  }
  for (int64_t c = 0; c < mj->nu; ++c) {
    B[c] += s * from[state + c];
  }
}

static void write_turns(const qd_mj *mj, const qd_mj_workspace *w, int dof, double *A, double *B) {
  const int64_t state = 2 * mj->nv + mj->na;
  double back[3], keeps[9], by[9];
  for (int i = 0; i < 3; ++i) { /* minus the rotation of the step */
    back[i] = -mj->timestep * (mj->qvel[dof + i] + mj->timestep * w->a[dof + i]);
  }
  rotation_exp(keeps, back);
  rotation_left_jacobian(by, back);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const double s = mj->timestep * by[3 * i + j];
      double *row = A + (dof + i) * state;
      row[dof + j] += keeps[3 * i + j];
      row[mj->nv + dof + j] += s;
      add_row(mj, w->rhs + (dof + j) * (int64_t)w->columns, s, row, B + (dof + i) * mj->nu);
    }
  }
}

static void write_matrices(const qd_mj *mj, const qd_mj_workspace *w, double *A, double *B) {
  const int64_t nv = mj->nv, state = 2 * nv + mj->na;
  memset(A, 0, (size_t)(state * state) * sizeof *A);
  memset(B, 0, (size_t)(state * mj->nu) * sizeof *B);
  for (int i = 0; i < nv; ++i) {
    const double *row = w->rhs + i * (int64_t)w->columns;
    A[(nv + i) * state + nv + i] = 1.0;
    add_row(mj, row, 1.0, A + (nv + i) * state, B + (nv + i) * mj->nu);
    const int joint = mj->dof_jntid[i], type = mj->jnt_type[joint];
    const int turns = mj->jnt_dofadr[joint] + (type == MJ_FREE ? 3 : 0);
    if (type != MJ_BALL && (type != MJ_FREE || i < turns)) {
      A[i * state + i] = 1.0;
      A[i * state + nv + i] += mj->timestep;
      add_row(mj, row, mj->timestep, A + i * state, B + i * mj->nu);
    } else if (i == turns) {
      write_turns(mj, w, i, A, B);
    }
  }
  mj_activations(mj, A, B);
}

/* ---------------------------------------------------------------- the linearisation */

qd_status qd_mj_linearize(const qd_mj *mj, const qd_mj_meshes *meshes, int change_count,
                          const qd_mj_change *changes, qd_mj_workspace *w, double *A, double *B,
                          qd_mj_info *info) {
  *info = (qd_mj_info){0};
  if (!reserve(mj, w)) {
    return QD_OUT_OF_MEMORY;
  }
  memset(w->rhs, 0, (size_t)mj->nv * (size_t)w->columns * sizeof *w->rhs);
  read_mass(mj, w);
  mj_bodies_begin(mj, w);
  mj_metric_begin(mj, w);
  mj_shares_begin(mj, w);
  mj_spins_begin(mj, w);
  mj_rows_begin(mj, w);
  if (!settle(mj, w, info) || !integrate_velocity(mj, w)) {
    return QD_NUMERICAL_TROUBLE;
  }
  mj_bodies_move(mj, w);
  mj_drives(mj, w);
  mj_metric_by_state(mj, w);
  mj_rows_by_velocity(mj, w);
  mj_rows_by_position(mj, w);
  mj_tendons_by_position(mj, w);
  mj_contacts_by_position(mj, meshes, change_count, changes, w, info);
  if (info->unknown_count > 0) {
    return QD_BAD_ARGUMENT;
  }
  mj_bodies_derivative(mj, w);
  finish_velocity(mj, w);
  write_matrices(mj, w, A, B);
  return QD_OK;
}
