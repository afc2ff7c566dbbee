/* Rows that give way, in the sparse programs of steps: the same answers as of dense ones, and
 * derivatives by every number against central differences. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "check.h"
#include "numerics/conic/conic.h"

#define N 7
#define M 15
#define P 1
#define CONES 6
#define TILES ((N + 3) / 4)

static uint64_t seed = 7;

static double uniform(double low, double high) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * (double)(seed >> 11) / 9007199254740992.0;
}

static int below(int count) { return (int)uniform(0.0, (double)count); }

/* The numbers of a program, all of which an answer depends on smoothly. */
typedef struct numbers {
  double b[N], g[M], c[P], R[M], R_eq[P], lower[M], upper[M];
} numbers;

typedef struct scene {
  double Q[N * N], G[M * N], C[P * N], mu[CONES];
  int kind[CONES], dim[CONES], cones, rows;
  numbers at;
} scene;

typedef struct answer {
  double x[N], slack[M], dual[M], dual_eq[P];
  qd_cone_info info;
  qd_status status;
} answer;

static void scene_fill(scene *s, double mu) {
  memset(s, 0, sizeof *s);
  double F[N * N], x[N];
  for (int i = 0; i < N * N; ++i) {
    F[i] = uniform(-1.0, 1.0);
  }
  for (int i = 0; i < N; ++i) {
    x[i] = uniform(-1.0, 1.0);
    s->at.b[i] = uniform(-3.0, 3.0);
    for (int j = 0; j < N; ++j) {
      s->Q[N * i + j] = i == j ? uniform(0.1, 2.0) : 0.0;
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      for (int k = 0; k < 3; ++k) {
        s->Q[N * i + j] += F[N * i + k] * F[N * j + k];
      }
    }
  }
  for (int k = 0; k < CONES; ++k) {
    const int kind = below(3), dim = kind == QD_LORENTZ ? 2 + below(3) : 1 + below(2);
    if (s->rows + dim > M) {
      break;
    }
    s->kind[k] = kind;
    s->dim[k] = dim;
    s->mu[k] = mu;
    s->cones = k + 1;
    for (int i = s->rows; i < s->rows + dim; ++i) {
      for (int j = 0; j < N; ++j) {
        s->G[N * i + j] = below(2) ? uniform(-1.0, 1.0) : 0.0;
        s->at.g[i] -= s->G[N * i + j] * x[j];
      }
      s->at.g[i] += uniform(-0.5, 1.0) + (kind == QD_LORENTZ && i == s->rows ? 1.0 : 0.0);
      s->at.R[i] = below(3) ? uniform(0.01, 1.0) : 0.0;
      s->at.lower[i] = below(4) ? -uniform(0.1, 1.0) : -INFINITY;
      s->at.upper[i] = below(4) ? uniform(0.1, 1.0) : INFINITY;
    }
    s->rows += dim;
  }
  for (int j = 0; j < N; ++j) {
    s->C[j] = uniform(-1.0, 1.0);
    s->at.c[0] -= s->C[j] * x[j];
  }
  s->at.R_eq[0] = below(2) ? uniform(0.01, 1.0) : 0.0;
}

static qd_cone_program program_of(const scene *s, const numbers *at) {
  return (qd_cone_program){.variable_count = N,
                           .row_count = s->rows,
                           .equality_count = P,
                           .cone_count = s->cones,
                           .Q = s->Q,
                           .b = at->b,
                           .G = s->G,
                           .g = at->g,
                           .C = s->C,
                           .c = at->c,
                           .cone_kind = s->kind,
                           .cone_dim = s->dim,
                           .target_mu = s->mu[0] > 0.0 ? s->mu : NULL,
                           .compliance = at->R,
                           .compliance_eq = at->R_eq,
                           .lower = at->lower,
                           .upper = at->upper};
}

/* A matrix in tiles. */
typedef struct tiled {
  int start[M + N + 1], tiles[(M + N) * TILES];
  double values[4 * (M + N) * TILES];
  sparse_rows view;
} tiled;

static const sparse_rows *tile(tiled *out, const double *dense, int rows) {
  memset(out, 0, sizeof *out);
  for (int i = 0; i < rows; ++i) {
    out->start[i + 1] = (i + 1) * TILES;
    for (int t = 0; t < TILES; ++t) {
      out->tiles[i * TILES + t] = t;
      for (int j = 0; j < 4 && 4 * t + j < N; ++j) {
        out->values[4 * (i * TILES + t) + j] = dense[i * N + 4 * t + j];
      }
    }
  }
  out->view = (sparse_rows){out->start, out->tiles, out->values};
  return &out->view;
}

static const qd_cone_options OPTIONS = {.tolerance = 1e-12, .iteration_limit = 200, .polish = 1};

static void solve(const scene *s, const numbers *at, qd_cone_workspace *workspace, answer *out) {
  static tiled Q, G, C;
  conic_program program = {.program = program_of(s, at), .derivatives = 1};
  program.Q = tile(&Q, s->Q, N);
  program.G = tile(&G, s->G, s->rows);
  program.C = tile(&C, s->C, P);
  const conic_answer into = {out->x, out->slack, out->dual, out->dual_eq};
  out->status = conic_solve(workspace, &OPTIONS, &program, &into, &out->info);
}

static void solve_dense(const scene *s, answer *out) {
  const qd_cone_program program = program_of(s, &s->at);
  qd_cone_workspace *workspace = qd_cone_workspace_create_for(&program);
  out->status = qd_cone_solve(workspace, &OPTIONS, &program, out->x, out->slack, out->dual,
                              out->dual_eq, &out->info);
  qd_cone_workspace_destroy(workspace);
}

/* A random direction in the space of all numbers, in which rigid rows stay rigid and missing limits
 * missing. */
static numbers direction_of(const scene *s) {
  numbers d;
  memset(&d, 0, sizeof d);
  for (int i = 0; i < N; ++i) {
    d.b[i] = uniform(-1.0, 1.0);
  }
  for (int i = 0; i < s->rows; ++i) {
    d.g[i] = uniform(-1.0, 1.0);
    d.R[i] = s->at.R[i] > 0.0 ? 0.01 * uniform(-1.0, 1.0) : 0.0;
    d.lower[i] = isfinite(s->at.lower[i]) ? uniform(-1.0, 1.0) : 0.0;
    d.upper[i] = isfinite(s->at.upper[i]) ? uniform(-1.0, 1.0) : 0.0;
  }
  d.c[0] = uniform(-1.0, 1.0);
  d.R_eq[0] = s->at.R_eq[0] > 0.0 ? 0.01 * uniform(-1.0, 1.0) : 0.0;
  return d;
}

static numbers moved(const numbers *at, const numbers *d, double t) {
  numbers out = *at;
  double *to = (double *)&out;
  for (size_t i = 0; i < sizeof out / sizeof(double); ++i) {
    to[i] += t * ((const double *)d)[i];
  }
  return out;
}

/* The derivative along d, as conic.h says. */
static void differentiate(const scene *s, const numbers *d, const answer *a,
                          qd_cone_workspace *workspace, answer *out) {
  double d_stationarity[N], d_slack[M], d_equality[P], by_lower[M], by_upper[M], e[M];
  conic_sensitivity_limits(workspace, by_lower, by_upper);
  memcpy(d_stationarity, d->b, sizeof d_stationarity);
  for (int i = 0; i < s->rows; ++i) {
    e[i] = by_lower[i] * d->lower[i] + by_upper[i] * d->upper[i];
    d_slack[i] = d->g[i] + d->R[i] * a->dual[i];
    for (int j = 0; j < N; ++j) {
      d_stationarity[j] -= s->G[N * i + j] * e[i];
    }
  }
  d_equality[0] = d->c[0] + d->R_eq[0] * a->dual_eq[0];
  const conic_change change = {1,      d_stationarity, d_slack,     d_equality,
                               out->x, out->dual,      out->dual_eq};
  conic_sensitivity_solve(workspace, &change);
  for (int i = 0; i < s->rows; ++i) {
    out->dual[i] += e[i];
  }
}

static double difference(const double *a, const double *b, int count, double factor,
                         const double *expected) {
  double worst = 0.0;
  for (int i = 0; i < count; ++i) {
    worst = fmax(worst, fabs(factor * (a[i] - b[i]) - expected[i]) / (1.0 + fabs(expected[i])));
  }
  return worst;
}

/* Largest error of the derivative along a random direction; negative where the answer is not
 * differentiable or has none. */
static double derivative_error(const scene *s, qd_cone_workspace *workspace) {
  const double h = s->mu[0] > 0.0 ? 1e-4 : 1e-6;
  const numbers d = direction_of(s);
  answer a, dense, plus, minus, derivative;
  int exact;
  solve(s, &s->at, workspace, &a);
  solve_dense(s, &dense);
  CHECK(a.status == dense.status);
  CHECK(a.status == QD_OK || a.status == QD_INFEASIBLE);
  if (a.status != QD_OK) {
    return -1.0;
  }
  CHECK(difference(a.x, dense.x, N, 1.0, (double[N]){0}) < 1e-7);
  CHECK(conic_sensitivity_prepare(workspace, &exact) == QD_OK);
  differentiate(s, &d, &a, workspace, &derivative);
  const numbers up = moved(&s->at, &d, h), down = moved(&s->at, &d, -h);
  solve(s, &up, workspace, &plus);
  solve(s, &down, workspace, &minus);
  if (!exact || plus.status != QD_OK || minus.status != QD_OK) {
    return -1.0;
  }
  const double per = 0.5 / h;
  return fmax(difference(plus.x, minus.x, N, per, derivative.x),
              fmax(difference(plus.dual, minus.dual, s->rows, per, derivative.dual),
                   difference(plus.dual_eq, minus.dual_eq, P, per, derivative.dual_eq)));
}

static void test_derivatives(double mu, double allowed, int least) {
  const conic_size size = {.variables = N,
                           .rows = M,
                           .equalities = P,
                           .largest_cone = 6,
                           .row_tiles = (M + P) * TILES,
                           .fill = TILES * (TILES + 1) / 2,
                           .compliant = M + P,
                           .intervals = M};
  void *memory = block_allocate(conic_workspace_size(&size));
  qd_cone_workspace *workspace = conic_workspace_place(memory, &size);
  int right = 0, counted = 0;
  for (int round = 0; round < 400; ++round) {
    scene s;
    scene_fill(&s, mu);
    const double error = derivative_error(&s, workspace);
    counted += error >= 0.0;
    right += error >= 0.0 && error < allowed;
  }
  CHECK(counted > 250);
  CHECK(right * 100 >= counted * least); /* of an exact program, the set may change in between */
  block_free(memory);
}

int main(void) {
  test_derivatives(1e-2, 1e-5, 100);
  test_derivatives(1.0, 1e-5, 100);
  test_derivatives(0.0, 1e-4, 99);
  return check_report();
}
