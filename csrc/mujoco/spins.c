/* Implicitfast and "discrete" for single bodies on a free joint: their gyroscopic forces are
 * evaluated at the end of the step, too, to first order. In world axes about the body's origin,
 * with angular velocity w and centre of mass c: m w x (w x c) and w x J w. Their derivatives along
 * a are m (a x (w x c) + w x (a x c)) and a x Jw + w x Ja. Source: MuJoCo, Computation, "Free
 * bodies". */
#include "mujoco/parts.h"

enum { FREE_DOFS = 6 };

static int is_alone(const qd_mj *mj, const qd_mj_workspace *w, int dof) {
  const int joint = mj->dof_jntid[dof], first = mj->jnt_dofadr[joint], next = first + FREE_DOFS;
  if (mj->jnt_type[joint] != MJ_FREE || dof != first + 3) {
    return 0;
  }
  int alone = w->dof[first].parent < 0 && (next == mj->nv || w->dof[next].parent < 0);
  for (int i = first; i < next; ++i) {
    alone &= !w->held[i];
  }
  return alone;
}

static void hold_by_rows(const qd_mj *mj, qd_mj_workspace *w) {
  for (int i = 0; i < mj->nefc; ++i) {
    const int count = mj_rows_compact(mj, w, i, 1);
    for (int p = 0; p < count; ++p) {
      w->held[w->column[p]] = 1;
    }
  }
}

void mj_spins_begin(const qd_mj *mj, qd_mj_workspace *w) {
  const int spin = mj->integrator == MJ_IMPLICITFAST || mj->integrator == MJ_DISCRETE;
  if (mj->integrator == MJ_DISCRETE) {
    hold_by_rows(mj, w);
  }
  for (int i = 0; i < mj->nv; ++i) {
    w->alone[i] = spin && is_alone(mj, w, i);
  }
}

/* force = m (a x (b x c) + b x (a x c)), moment = a x Jb + b x Ja */
static void slope_of(const inertia10 *inertia, const double a[3], const double b[3],
                     double force[3], double moment[3]) {
  double inner[3];
  vec3_cross(inner, b, inertia->moment);
  vec3_cross(force, a, inner);
  vec3_cross(inner, a, inertia->moment);
  vec3_add_cross(force, 1.0, b, inner);
  mat3_mul_vec(inner, inertia->about, b);
  vec3_cross(moment, a, inner);
  mat3_mul_vec(inner, inertia->about, a);
  vec3_add_cross(moment, 1.0, b, inner);
}

/* Inertia of everything fixed to the body, about its origin. */
static void whole_body(const qd_mj *mj, const qd_mj_workspace *w, int dof, inertia10 *out) {
  double t[3];
  memset(out, 0, sizeof *out);
  for (int b = 1; b < mj->nbody; ++b) {
    if (w->last_dof[b] == dof + 2) {
      inertia_add(out, &w->body[b].inertia);
    }
  }
  vec3_sub(t, w->origin, mj->xpos + 3 * mj->dof_bodyid[dof]);
  inertia_shift(out, t);
}

static void add_body(const qd_mj *mj, qd_mj_workspace *w, int dof) {
  const double h = mj->timestep;
  double omega[3] = {0.0}, alpha[3] = {0.0}, force[3], moment[3], steady[3], turned[3];
  inertia10 inertia;
  whole_body(mj, w, dof, &inertia);
  for (int i = 0; i < 3; ++i) {
    vec3_axpy(omega, mj->qvel[dof + i], w->dof[dof + i].S);
    vec3_axpy(alpha, w->a[dof + i], w->dof[dof + i].S);
  }
  slope_of(&inertia, alpha, omega, steady, moment);
  for (int i = 0; i < 3; ++i) {
    const double *axis = w->dof[dof + i].S;
    double *P = w->P + dof + i;
    slope_of(&inertia, axis, omega, force, moment);
    for (int j = 0; j < 3; ++j) {
      P[(dof - 3 + j) * mj->nv] += h * force[j];
      P[(dof + j) * mj->nv] += h * vec3_dot(w->dof[dof + j].S, moment);
    }
    slope_of(&inertia, axis, alpha, force, moment);
    vec3_cross(turned, axis, steady);
    for (int j = 0; j < 3; ++j) {
      w->spin[6 * (dof - 3 + j) + i] = -h * turned[j];
      w->spin[6 * (dof - 3 + j) + 3 + i] = -h * force[j];
      w->spin[6 * (dof + j) + 3 + i] = -h * vec3_dot(w->dof[dof + j].S, moment);
    }
  }
}

/* Gauss-Jordan elimination with row pivoting; returns 0 if singular. */
static int invert(double A[FREE_DOFS * FREE_DOFS], double *inverse) {
  enum { N = FREE_DOFS };
  memset(inverse, 0, (size_t)(N * N) * sizeof *inverse);
  for (int i = 0; i < N; ++i) {
    inverse[(N + 1) * i] = 1.0;
  }
  for (int c = 0; c < N; ++c) {
    int pivot = c;
    for (int i = c + 1; i < N; ++i) {
      pivot = fabs(A[N * i + c]) > fabs(A[N * pivot + c]) ? i : pivot;
    }
    if (!(fabs(A[N * pivot + c]) > 0.0)) {
      return 0;
    }
    const double scale = 1.0 / A[N * pivot + c];
    for (int j = 0; j < N; ++j) {
      const double a = A[N * pivot + j], b = inverse[N * pivot + j];
      A[N * pivot + j] = A[N * c + j];
      inverse[N * pivot + j] = inverse[N * c + j];
      A[N * c + j] = a * scale;
      inverse[N * c + j] = b * scale;
    }
    for (int i = 0; i < N; ++i) {
      const double s = i == c ? 0.0 : A[N * i + c];
      for (int j = 0; s != 0.0 && j < N; ++j) {
        A[N * i + j] -= s * A[N * c + j];
        inverse[N * i + j] -= s * inverse[N * c + j];
      }
    }
  }
  return 1;
}

int mj_spins_split(const qd_mj *mj, qd_mj_workspace *w) {
  const size_t nv = (size_t)mj->nv;
  w->spins = 0;
  for (int i = 3; i < mj->nv; ++i) {
    double block[FREE_DOFS * FREE_DOFS];
    const size_t first = (size_t)i - 3;
    if (!w->alone[i]) {
      continue;
    }
    for (size_t a = 0; a < FREE_DOFS; ++a) {
      const size_t at = (first + a) * nv + first;
      memcpy(block + FREE_DOFS * a, w->P + at, FREE_DOFS * sizeof *block);
      memcpy(w->P + at, w->M + at, FREE_DOFS * sizeof *block);
    }
    if (!invert(block, w->spin_inverse + FREE_DOFS * first)) {
      return 0;
    }
    w->spins = 1;
  }
  return 1;
}

void mj_spins_solve(const qd_mj *mj, const qd_mj_workspace *w, double *rows, const double *from,
                    int columns) {
  const size_t width = (size_t)columns;
  for (int i = 3; w->spins && i < mj->nv; ++i) {
    const size_t first = (size_t)i - 3;
    for (size_t a = first; w->alone[i] && a < first + FREE_DOFS; ++a) {
      memset(rows + a * width, 0, width * sizeof *rows);
      for (size_t b = 0; b < FREE_DOFS; ++b) {
        const double s = w->spin_inverse[FREE_DOFS * a + b];
        for (size_t c = 0; s != 0.0 && c < width; ++c) {
          rows[a * width + c] += s * from[(first + b) * width + c];
        }
      }
    }
  }
}

void mj_spins_implicit(const qd_mj *mj, qd_mj_workspace *w) {
  memset(w->spin, 0, 6 * (size_t)mj->nv * sizeof *w->spin);
  for (int i = 3; i < mj->nv; ++i) {
    if (w->alone[i]) {
      add_body(mj, w, i);
    }
  }
}
