/* Any cone program: a status that says what happened, and if it says solved, a point that meets the
 * optimality conditions, worked out here. */
#include "fuzz_input.h"
#include "qdsim.h"

#define VARIABLES_MAX 12
#define CONES_MAX 8
#define ROWS_MAX 48
#define EQUALITIES_MAX 3

typedef struct program_data {
  double Q[VARIABLES_MAX * VARIABLES_MAX], b[VARIABLES_MAX];
  double G[ROWS_MAX * VARIABLES_MAX], g[ROWS_MAX];
  double C[EQUALITIES_MAX * VARIABLES_MAX], c[EQUALITIES_MAX], mu[CONES_MAX];
  int kind[CONES_MAX], dim[CONES_MAX];
} program_data;

static void fill(fuzz_input *in, double *out, int count) {
  for (int i = 0; i < count; ++i) {
    out[i] = fuzz_any(in);
  }
}

/* Q = F F' with a few columns: often singular, or with a diagonal on top. */
static void fill_quadratic(fuzz_input *in, double *Q, int n) {
  double F[VARIABLES_MAX * VARIABLES_MAX];
  const int columns = fuzz_integer(in, 0, n);
  const double diagonal = fuzz_integer(in, 0, 3) == 0 ? 0.0 : fuzz_size(in, 1e-3, 1e3);
  fill(in, F, n * columns);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      Q[n * i + j] = i == j ? diagonal : 0.0;
      for (int k = 0; k < columns; ++k) {
        Q[n * i + j] += F[columns * i + k] * F[columns * j + k];
      }
    }
  }
}

static qd_cone_program read_program(fuzz_input *in, program_data *d) {
  qd_cone_program p = {.variable_count = fuzz_integer(in, 1, VARIABLES_MAX),
                       .cone_count = fuzz_integer(in, 0, CONES_MAX),
                       .equality_count = fuzz_integer(in, 0, EQUALITIES_MAX)};
  const int n = p.variable_count, smoothed = fuzz_integer(in, 0, 1);
  for (int i = 0; i < p.cone_count; ++i) {
    d->kind[i] = fuzz_integer(in, 0, 1);
    d->dim[i] = fuzz_integer(in, 1, 6);
    d->mu[i] = smoothed ? fuzz_size(in, 1e-6, 1e2) : 0.0;
    p.row_count += d->dim[i];
  }
  fill_quadratic(in, d->Q, n);
  fill(in, d->b, n);
  fill(in, d->G, p.row_count * n);
  fill(in, d->g, p.row_count);
  fill(in, d->C, p.equality_count * n);
  fill(in, d->c, p.equality_count);
  p.Q = d->Q;
  p.b = d->b;
  p.G = d->G;
  p.g = d->g;
  p.C = d->C;
  p.c = d->c;
  p.cone_kind = d->kind;
  p.cone_dim = d->dim;
  p.target_mu = smoothed ? d->mu : NULL;
  return p;
}

static int all_finite(const double *values, int count) {
  int finite = 1;
  for (int i = 0; i < count; ++i) {
    finite &= isfinite(values[i]) != 0;
  }
  return finite;
}

static double largest(const double *values, int count) {
  double worst = 0.0;
  for (int i = 0; i < count; ++i) {
    worst = fmax(worst, fabs(values[i]));
  }
  return worst;
}

/* What forces are measured against without b: the force of a unit multiplier, and the one that
 * moves the rows by their offsets (or by 1) against Q. Nothing smaller is given. */
static double natural_force(const qd_cone_program *p) {
  const int n = p->variable_count, rows = p->row_count;
  const double row = largest(p->G, n * rows), length = fmax(1.0, largest(p->g, rows));
  return row > 0.0 ? fmax(row, length * largest(p->Q, n * n) / row) : 0.0;
}

/* What lengths are measured against without offsets, where Q leaves a column free: a step that is b
 * in columns whose largest entry in the rows is 1, as the solver scales them. A program without any
 * length has no other. */
static double natural_length(const qd_cone_program *p) {
  const int n = p->variable_count;
  double worst = 0.0;
  for (int j = 0; j < n; ++j) {
    double size = 0.0;
    for (int i = 0; i < p->row_count + p->equality_count; ++i) {
      const double *row = i < p->row_count ? p->G + n * i : p->C + n * (i - p->row_count);
      size = fmax(size, fabs(row[j]));
    }
    worst = fmax(worst, size > 0.0 ? fabs(p->b[j]) / size : 0.0);
  }
  return worst;
}

/* max |Qx + b - G'dual - C'dual_eq| over the largest term in it, or 1 */
static double relative_dual_residual(const qd_cone_program *p, const double *x, const double *dual,
                                     const double *dual_eq) {
  const int n = p->variable_count;
  double worst = 0.0, scale = largest(p->b, n) > 0.0 ? 1.0 : fmax(1.0, natural_force(p));
  for (int j = 0; j < n; ++j) {
    double sum = p->b[j];
    scale = fmax(scale, fabs(p->b[j]));
    for (int i = 0; i < n; ++i) {
      sum += p->Q[n * j + i] * x[i];
      scale = fmax(scale, fabs(p->Q[n * j + i] * x[i]));
    }
    for (int i = 0; i < p->row_count; ++i) {
      sum -= p->G[n * i + j] * dual[i];
      scale = fmax(scale, fabs(p->G[n * i + j] * dual[i]));
    }
    for (int i = 0; i < p->equality_count; ++i) {
      sum -= p->C[n * i + j] * dual_eq[i];
      scale = fmax(scale, fabs(p->C[n * i + j] * dual_eq[i]));
    }
    worst = fmax(worst, fabs(sum));
  }
  return worst / scale;
}

/* How far a vector is outside its cone. */
static double outside(int kind, int dim, const double *w) {
  double worst = 0.0, rest = 0.0;
  if (kind == QD_ORTHANT) {
    for (int i = 0; i < dim; ++i) {
      worst = fmax(worst, -w[i]);
    }
    return worst;
  }
  for (int i = 1; i < dim; ++i) {
    rest = hypot(rest, w[i]);
  }
  return fmax(0.0, rest - w[0]);
}

/* How far Gx + g is outside the cones, and max |Cx + c|, over the largest term in any row, or 1.
 * The slack is no witness: it may differ from Gx + g by tolerance times a length that other rows
 * set. */
static void check_rows(const qd_cone_program *p, const double *x) {
  const int n = p->variable_count, rows = p->row_count + p->equality_count;
  const int given = largest(p->g, p->row_count) + largest(p->c, p->equality_count) > 0.0;
  double w[ROWS_MAX + EQUALITIES_MAX], worst = 0.0;
  double scale = given ? 1.0 : fmax(1.0, natural_length(p));
  for (int i = 0; i < rows; ++i) {
    const int equality = i >= p->row_count, at = equality ? i - p->row_count : i;
    const double *row = (equality ? p->C : p->G) + n * at;
    w[i] = equality ? p->c[at] : p->g[at];
    scale = fmax(scale, fabs(w[i]));
    for (int j = 0; j < n; ++j) {
      w[i] += row[j] * x[j];
      scale = fmax(scale, fabs(row[j] * x[j]));
      /* where the cost alone would send the row: what lengths are measured against */
      const double q = p->Q[n * j + j];
      scale = fmax(scale, q > 0.0 ? (equality ? 1e-7 : 1.0) * fabs(row[j] * p->b[j] / q) : 0.0);
    }
    worst = fmax(worst, equality ? fabs(w[i]) : 0.0);
  }
  for (int k = 0, row = 0; k < p->cone_count; row += p->cone_dim[k++]) {
    worst = fmax(worst, outside(p->cone_kind[k], p->cone_dim[k], w + row));
  }
  FUZZ_CHECK(worst <= 1e-5 * scale, "outside by %g, largest term %g", worst, scale);
}

static void check_solution(const qd_cone_program *p, const double *x, const double *slack,
                           const double *dual, const double *dual_eq) {
  double slack_scale = 1.0, dual_scale = 1.0;
  FUZZ_CHECK(all_finite(x, p->variable_count) && all_finite(dual, p->row_count), "not finite");
  check_rows(p, x);
  const double residual = relative_dual_residual(p, x, dual, dual_eq);
  FUZZ_CHECK(residual <= 1e-5, "dual residual %g", residual);
  for (int i = 0; i < p->row_count; ++i) {
    slack_scale = fmax(slack_scale, fabs(slack[i]));
    dual_scale = fmax(dual_scale, fabs(dual[i]));
  }
  for (int k = 0, row = 0; k < p->cone_count; row += p->cone_dim[k++]) {
    const double w = outside(p->cone_kind[k], p->cone_dim[k], slack + row);
    const double l = outside(p->cone_kind[k], p->cone_dim[k], dual + row);
    FUZZ_CHECK(w <= 1e-5 * slack_scale, "slack outside by %g", w);
    FUZZ_CHECK(l <= 1e-5 * dual_scale, "dual outside by %g", l);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size};
  program_data d;
  double x[VARIABLES_MAX], slack[ROWS_MAX], dual[ROWS_MAX], dual_eq[EQUALITIES_MAX];
  qd_cone_info info;
  const qd_cone_program p = read_program(&in, &d);
  qd_cone_options options = qd_cone_options_default();
  options.polish = fuzz_integer(&in, 0, 1);
  qd_cone_workspace *workspace =
      qd_cone_workspace_create(p.variable_count, p.row_count, p.equality_count);
  const qd_status status = qd_cone_solve(workspace, &options, &p, x, slack, dual, dual_eq, &info);
  FUZZ_CHECK(status == info.status, "status %d, info %d", status, info.status);
  if (status == QD_OK) {
    check_solution(&p, x, slack, dual, dual_eq);
  }
  qd_cone_workspace_destroy(workspace);
  return 0;
}
