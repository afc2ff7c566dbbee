/* Any cone program, with rows that give way too: a status that says what happened; if it says
 * solved, a point that meets the optimality conditions, if it says infeasible, multipliers that
 * prove it, worked out here. */
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
  double compliance[ROWS_MAX], compliance_eq[EQUALITIES_MAX], lower[ROWS_MAX], upper[ROWS_MAX];
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

/* The rest of the input, if there is any: rows with a compliance, and cones that are intervals. */
static void give_way(fuzz_input *in, qd_cone_program *p, program_data *d) {
  if (fuzz_integer(in, 0, 1) == 0) {
    return;
  }
  for (int k = 0, row = 0; k < p->cone_count; row += d->dim[k++]) {
    d->kind[k] = fuzz_integer(in, 0, 2) == 2 ? QD_INTERVAL : d->kind[k];
    for (int i = row; i < row + d->dim[k]; ++i) {
      const double one = fuzz_any(in), other = fuzz_any(in);
      d->lower[i] = fuzz_integer(in, 0, 3) == 3 ? -INFINITY : fmin(one, other);
      d->upper[i] = fuzz_integer(in, 0, 3) == 3 ? INFINITY : fmax(one, other);
    }
  }
  for (int i = 0; i < p->row_count; ++i) {
    d->compliance[i] = fuzz_integer(in, 0, 1) == 1 ? fuzz_size(in, 1e-6, 1e6) : 0.0;
  }
  for (int i = 0; i < p->equality_count; ++i) {
    d->compliance_eq[i] = fuzz_integer(in, 0, 1) == 1 ? fuzz_size(in, 1e-6, 1e6) : 0.0;
  }
  p->compliance = d->compliance;
  p->compliance_eq = d->compliance_eq;
  p->lower = d->lower;
  p->upper = d->upper;
}

/* R of a row, or behind those of an equality. */
static double compliance_of(const qd_cone_program *p, int i) {
  if (!p->compliance) {
    return 0.0;
  }
  return i < p->row_count ? p->compliance[i] : p->compliance_eq[i - p->row_count];
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

/* Q_jj, and what rows that give way add to it. */
static double curvature_of(const qd_cone_program *p, int j) {
  const int n = p->variable_count;
  double sum = p->Q[n * j + j];
  for (int i = 0; i < p->row_count + p->equality_count; ++i) {
    const double *row = i < p->row_count ? p->G + n * i : p->C + n * (i - p->row_count);
    const double R = compliance_of(p, i);
    sum += R > 0.0 ? row[j] * row[j] / R : 0.0;
  }
  return sum;
}

/* Column scales: a unit of curvature, or of the largest entry where there is none. */
static void find_scales(const qd_cone_program *p, double *d, double *is_curved) {
  const int n = p->variable_count;
  double most = 0.0;
  for (int j = 0; j < n; ++j) {
    most = fmax(most, curvature_of(p, j));
  }
  for (int j = 0; j < n; ++j) {
    double size = 0.0;
    for (int i = 0; i < p->row_count + p->equality_count; ++i) {
      const double *row = i < p->row_count ? p->G + n * i : p->C + n * (i - p->row_count);
      size = fmax(size, fabs(row[j]));
    }
    const double curvature = curvature_of(p, j);
    is_curved[j] = curvature > 0.0;
    if (curvature > 1e-20 * most) {
      d[j] = 1.0 / sqrt(curvature);
    } else {
      d[j] = size > 0.0 ? 1.0 / size : 1.0;
    }
  }
}

static double row_norm(const qd_cone_program *p, const double *row, const double *d) {
  double sum = 0.0;
  for (int j = 0; j < p->variable_count; ++j) {
    sum = hypot(sum, row[j] * d[j]);
  }
  return sum;
}

static const double *row_of(const qd_cone_program *p, int i) {
  return i < p->row_count ? p->G + p->variable_count * i
                          : p->C + p->variable_count * (i - p->row_count);
}

/* R without x, and how far away offsets are. */
static double free_reach(const qd_cone_program *p, const double *d, const double *is_curved,
                         double *far) {
  const double offset = fmax(largest(p->g, p->row_count), largest(p->c, p->equality_count));
  double reach = 0.0, norm = 0.0;
  for (int j = 0; j < p->variable_count; ++j) {
    reach = fmax(reach, is_curved[j] > 0.0 ? fabs(p->b[j]) * d[j] : 0.0);
  }
  for (int i = 0; i < p->row_count + p->equality_count; ++i) {
    norm = fmax(norm, row_norm(p, row_of(p, i), d));
  }
  const double away = norm > 0.0 ? offset / norm : 0.0;
  *far = fmax(reach, away);
  if (p->target_mu) {
    return fmax(reach, 1e-2 * away);
  }
  return away <= 1e-14 * reach ? 1e-8 * reach : 1e-2 * away;
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

/* What qdsim.h promises, worked out here: s is a tenth larger than there, and nothing else. */
#define SHARE 1.1e-6

/* Rows from x, cone by cone; the slack is no witness. */
static void check_rows(const qd_cone_program *p, const double *x, const double *dual,
                       const double *dual_eq, const double *d, double reach) {
  const int n = p->variable_count, rows = p->row_count + p->equality_count;
  double w[ROWS_MAX + EQUALITIES_MAX], norm[ROWS_MAX + EQUALITIES_MAX];
  double rounding[ROWS_MAX + EQUALITIES_MAX];
  for (int i = 0; i < rows; ++i) {
    const double *row = row_of(p, i), R = compliance_of(p, i);
    const double moved = R * (i < p->row_count ? dual[i] : dual_eq[i - p->row_count]);
    w[i] = (i < p->row_count ? p->g[i] : p->c[i - p->row_count]) + moved;
    norm[i] = row_norm(p, row, d);
    rounding[i] = R > 0.0 ? SHARE * (fabs(moved) + fabs(w[i] - moved)) : 0.0;
    for (int j = 0; j < n; ++j) {
      w[i] += row[j] * x[j];
      rounding[i] += (R > 0.0 ? SHARE : 1e-14) * fabs(row[j] * x[j]);
    }
    if (i >= p->row_count) {
      const double c = fabs(p->c[i - p->row_count]);
      FUZZ_CHECK(fabs(w[i]) <= SHARE * fmax(c, reach * norm[i]) + rounding[i],
                 "equality %d off by %g, offset %g, reach %g", i - p->row_count, w[i], c,
                 reach * norm[i]);
    }
  }
  for (int k = 0, row = 0; k < p->cone_count; row += p->cone_dim[k++]) {
    const int step = p->cone_kind[k] == QD_ORTHANT ? 1 : p->cone_dim[k];
    for (int i = row; i < row + p->cone_dim[k] && p->cone_kind[k] != QD_INTERVAL; i += step) {
      const double out = outside(p->cone_kind[k], step, w + i);
      const double allowed = fmax(largest(p->g + i, step), reach * largest(norm + i, step));
      FUZZ_CHECK(out <= SHARE * allowed + largest(rounding + i, step),
                 "cone %d outside by %g, offset or reach %g", k, out, allowed);
    }
  }
}

/* Columns; returns S. */
static double check_columns(const qd_cone_program *p, const double *x, const double *dual,
                            const double *dual_eq, const double *d, double reach) {
  const int n = p->variable_count, no_b = largest(p->b, n) == 0.0;
  double residual[VARIABLES_MAX], force = no_b ? reach : 0.0, worst = 0.0, left = 0.0, term = 0.0;
  for (int j = 0; j < n; ++j) {
    double sum = p->b[j], most = fabs(sum);
    for (int i = 0; i < n; ++i) {
      sum += p->Q[n * j + i] * x[i];
      most = fmax(most, fabs(p->Q[n * j + i] * x[i]));
    }
    for (int i = 0; i < p->row_count + p->equality_count; ++i) {
      const double factor = i < p->row_count ? dual[i] : dual_eq[i - p->row_count];
      sum -= row_of(p, i)[j] * factor;
      most = fmax(most, fabs(row_of(p, i)[j] * factor));
    }
    residual[j] = sum;
    left = fmax(left, fabs(sum));
    term = fmax(term, most);
    force = fmax(force, most * d[j]);
    worst = fmax(worst, fabs(sum) * d[j]);
  }
  FUZZ_CHECK(worst <= SHARE * force, "dual residual %g of %g (%g)", worst, force, residual[0]);
  FUZZ_CHECK(no_b || left <= SHARE * term, "dual residual %g of %g", left, term);
  return force;
}

/* Gx + g + R dual of a row, and the sum of its terms' sizes. */
static double slack_at(const qd_cone_program *p, const double *x, const double *dual, int i,
                       double *size) {
  const double moved = compliance_of(p, i) * dual[i];
  double w = p->g[i] + moved;
  *size = fabs(p->g[i]) + fabs(moved);
  for (int j = 0; j < p->variable_count; ++j) {
    w += p->G[p->variable_count * i + j] * x[j];
    *size += fabs(p->G[p->variable_count * i + j] * x[j]);
  }
  return w;
}

/* A multiplier between its ends, and at one of them where its slack is not zero. */
static void check_interval(const qd_cone_program *p, const double *x, const double *dual, int i,
                           double mu, double norm, double reach, double force) {
  const double above = dual[i] - p->lower[i], below = p->upper[i] - dual[i];
  double size, s = slack_at(p, x, dual, i, &size);
  size += norm * reach;
  FUZZ_CHECK(above >= 0.0 && below >= 0.0, "row %d: %g of [%g, %g]", i, dual[i], p->lower[i],
             p->upper[i]);
  if (mu > 0.0) {
    const double nearest = fmin(above, below);
    const double wanted =
        (isfinite(above) ? mu / above : 0.0) - (isfinite(below) ? mu / below : 0.0);
    const double error = p->lower[i] < p->upper[i] ? fabs(s - wanted) : 0.0;
    const double way = isfinite(nearest) ? nearest : 1.0;
    FUZZ_CHECK(error * way <= SHARE * (size * way + mu) + 1e-14 * fabs(s * dual[i]),
               "row %d: slack %g, wanted %g", i, s, wanted);
    return;
  }
  const double room = s > 0.0 ? above : below;
  FUZZ_CHECK(fabs(s) <= SHARE * size || room * norm <= SHARE * force,
             "row %d: slack %g of %g, %g from the end", i, s, size, room);
}

static void check_intervals(const qd_cone_program *p, const double *x, const double *dual,
                            const double *d, double reach, double force) {
  for (int k = 0, row = 0; k < p->cone_count; row += p->cone_dim[k++]) {
    const double mu = p->target_mu ? p->target_mu[k] : 0.0;
    for (int i = row; i < row + p->cone_dim[k] && p->cone_kind[k] == QD_INTERVAL; ++i) {
      check_interval(p, x, dual, i, mu, row_norm(p, row_of(p, i), d), reach, force);
    }
  }
}

/* Of slacks, and of rows worked out from x. */
static void check_products(const qd_cone_program *p, const double *x, const double *slack,
                           const double *dual, const double *d, double force, double least) {
  for (int k = 0, row = 0; k < p->cone_count; row += p->cone_dim[k++]) {
    const double mu = p->target_mu ? p->target_mu[k] : 0.0;
    const int step = p->cone_kind[k] == QD_ORTHANT ? 1 : p->cone_dim[k];
    for (int i = row; i < row + p->cone_dim[k] && p->cone_kind[k] != QD_INTERVAL; i += step) {
      double product = -mu, of_rows = -mu, rounding = 0.0, most = 0.0, norm = 0.0, energy = least;
      int gives = 0;
      for (int r = i; r < i + step; ++r) {
        double size, w = slack_at(p, x, dual, r, &size);
        product += slack[r] * dual[r];
        of_rows += w * dual[r];
        rounding += 1e-14 * size * fabs(dual[r]);
        most = fmax(most, size);
        norm = fmax(norm, row_norm(p, row_of(p, r), d));
        gives |= compliance_of(p, r) > 0.0;
      }
      if (gives) {
        const double own =
            norm > 0.0 ? fmax(force / norm, largest(dual + i, step)) : largest(dual + i, step);
        energy = fmax(energy, most * own);
      }
      FUZZ_CHECK(fabs(product) <= SHARE * energy, "complementarity %g of %g", product, energy);
      FUZZ_CHECK(fabs(of_rows) <= 7.0 * SHARE * energy + rounding, "rows' complementarity %g of %g",
                 of_rows, energy); /* a sum over up to six rows */
    }
  }
}

static void check_solution(const qd_cone_program *p, const double *x, const double *slack,
                           const double *dual, const double *dual_eq) {
  const int n = p->variable_count;
  double d[VARIABLES_MAX], is_curved[VARIABLES_MAX], far;
  FUZZ_CHECK(all_finite(x, n) && all_finite(dual, p->row_count), "not finite");
  find_scales(p, d, is_curved);
  double reach = free_reach(p, d, is_curved, &far);
  reach = reach == 0.0 ? 1.0 : reach;
  for (int j = 0; j < n; ++j) {
    reach = fmax(reach, fabs(x[j]) / d[j]);
  }
  check_rows(p, x, dual, dual_eq, d, reach);
  const double force = check_columns(p, x, dual, dual_eq, d, reach);
  const double target = p->target_mu ? largest(p->target_mu, p->cone_count) : 0.0;
  check_products(p, x, slack, dual, d, force, fmax(force * reach, target));
  check_intervals(p, x, dual, d, reach, force);
  for (int k = 0, row = 0; k < p->cone_count; row += p->cone_dim[k++]) {
    if (p->cone_kind[k] == QD_INTERVAL) {
      continue;
    }
    const int dim = p->cone_dim[k];
    const double out = outside(p->cone_kind[k], dim, dual + row);
    double norm = 0.0; /* how much of a force it is */
    for (int i = row; i < row + dim; ++i) {
      norm = fmax(norm, row_norm(p, row_of(p, i), d));
    }
    const double rounding = 1e-14 * largest(dual + row, dim);
    FUZZ_CHECK(out <= rounding || out * norm <= SHARE * force, "dual outside by %g", out);
  }
}

/* Row norms in scaled columns: in a Lorentz cone, the largest of its rows. */
static void find_norms(const qd_cone_program *p, const double *d, double *norm) {
  for (int i = 0; i < p->row_count + p->equality_count; ++i) {
    norm[i] = row_norm(p, row_of(p, i), d);
  }
  for (int k = 0, row = 0; k < p->cone_count; row += p->cone_dim[k++]) {
    const double most = largest(norm + row, p->cone_dim[k]);
    for (int i = row; i < row + p->cone_dim[k] && p->cone_kind[k] == QD_LORENTZ; ++i) {
      norm[i] = most;
    }
  }
}

/* The multipliers of a program without solution prove that there is none. */
static void check_proof(const qd_cone_program *p, const double *dual, const double *dual_eq) {
  const int n = p->variable_count;
  double d[VARIABLES_MAX], is_curved[VARIABLES_MAX], far;
  double sum = 0.0, size = 0.0, force = 0.0, moved = 0.0, rounding = 0.0;
  double norm[ROWS_MAX + EQUALITIES_MAX];
  find_scales(p, d, is_curved);
  free_reach(p, d, is_curved, &far);
  find_norms(p, d, norm);
  far = 1e3 * (far > 0.0 ? far : 1.0);
  for (int i = 0; i < p->row_count + p->equality_count; ++i) {
    const double factor = i < p->row_count ? dual[i] : dual_eq[i - p->row_count];
    const double term = factor * (i < p->row_count ? p->g[i] : p->c[i - p->row_count]);
    sum += term;
    size = fmax(size, fabs(term));
    force = fmax(force, fabs(factor) * norm[i]);
  }
  for (int j = 0; j < n; ++j) {
    double push = 0.0;
    for (int i = 0; i < p->row_count + p->equality_count; ++i) {
      push += row_of(p, i)[j] * (i < p->row_count ? dual[i] : dual_eq[i - p->row_count]);
      rounding += 1e-15 * d[j] * far *
                  fabs(row_of(p, i)[j] * (i < p->row_count ? dual[i] : dual_eq[i - p->row_count]));
    }
    moved += fabs(push) * d[j];
  }
  const int excluded = sum + moved * far < rounding + 1e-14 * size;
  const int flat = p->target_mu && sum <= 1.1e-6 * size && moved <= 1.1e-6 * force;
  FUZZ_CHECK(excluded || flat, "no proof: sum %g, moved %g, far %g", sum, moved, far);
  for (int k = 0, row = 0; k < p->cone_count; row += p->cone_dim[k++]) {
    const int dim = p->cone_dim[k];
    const double out =
        p->cone_kind[k] == QD_INTERVAL ? 0.0 : outside(p->cone_kind[k], dim, dual + row);
    for (int i = row; i < row + dim; ++i) {
      FUZZ_CHECK(compliance_of(p, i) == 0.0 || dual[i] == 0.0, "proof of a row that gives way");
    }
    FUZZ_CHECK(out <= 1e-12 * largest(dual + row, dim), "proof outside by %g", out);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size};
  program_data d = {.compliance = {0.0}};
  double x[VARIABLES_MAX], slack[ROWS_MAX], dual[ROWS_MAX], dual_eq[EQUALITIES_MAX];
  qd_cone_info info;
  qd_cone_program p = read_program(&in, &d);
  qd_cone_options options = qd_cone_options_default();
  options.polish = fuzz_integer(&in, 0, 1);
  give_way(&in, &p, &d);
  qd_cone_workspace *workspace = qd_cone_workspace_create_for(&p);
  const qd_status status = qd_cone_solve(workspace, &options, &p, x, slack, dual, dual_eq, &info);
  FUZZ_CHECK(status == info.status, "status %d, info %d", status, info.status);
  if (status == QD_OK) {
    check_solution(&p, x, slack, dual, dual_eq);
  } else if (status == QD_INFEASIBLE) {
    check_proof(&p, dual, dual_eq);
  }
  qd_cone_workspace_destroy(workspace);
  return 0;
}
