/* Rows of the program that belong to no contact, on the path of Coulomb's law. */
#include <math.h>

#include "base/rounding.h"
#include "numerics/coulomb/primal_rows.h"

/* Stiffness of held rows, relative to the largest entry of Q's diagonal. */
#define HOLDS 1e5

static double spring_force(const primal_path *p, const primal_spring *one) {
  return one->load - one->stiffness * (primal_row_product(one->rows, one->row, p->x) + one->offset);
}

/* Sets the state of a spring. wanted: its multiplier without limits; force: its current one. */
static void set_state(const primal_path *p, primal_spring *one, double wanted, double force) {
  const double near =
      one->upper - one->lower < HUGE_VAL ? CALLERS_ROUNDING * (one->upper - one->lower) : 0.0;
  one->holds = 0;
  one->stiffness = 0.0;
  if (wanted <= one->lower + near || wanted >= one->upper - near) {
    one->load = wanted <= one->lower + near ? one->lower : one->upper;
    return;
  }
  one->holds = !(one->compliance * HOLDS * p->stiffness > 1.0);
  one->stiffness = one->holds ? HOLDS * p->stiffness : 1.0 / one->compliance;
  one->load = one->holds ? force : 0.0;
}

static void add(primal_path *p, const primal_spring *spring, double force) {
  p->spring[p->springs] = *spring;
  set_state(p, p->spring + p->springs++, force, force);
}

static void add_interval(primal_path *p, const qd_cone_program *program, int row) {
  const primal_spring one = {.rows = &p->G,
                             .row = row,
                             .offset = program->g[row],
                             .compliance = program->compliance ? program->compliance[row] : 0.0,
                             .lower = program->lower[row],
                             .upper = program->upper[row]};
  add(p, &one, p->dual[row]);
}

static void add_equality(primal_path *p, const conic_program *program, int row) {
  const double *compliance = program->program.compliance_eq;
  const primal_spring one = {.rows = program->C,
                             .row = row,
                             .offset = program->program.c[row],
                             .compliance = compliance ? compliance[row] : 0.0,
                             .lower = -HUGE_VAL,
                             .upper = HUGE_VAL};
  add(p, &one, p->dual_eq[row]);
}

int primal_springs_list(primal_path *p, const conic_program *program) {
  const qd_cone_program *sizes = &program->program;
  p->springs = 0;
  for (int c = 0, row = 0; c < sizes->cone_count; row += sizes->cone_dim[c++]) {
    for (int r = row; r < row + sizes->cone_dim[c]; ++r) {
      if (sizes->cone_kind[c] == QD_INTERVAL) {
        add_interval(p, sizes, r);
      } else if (sizes->compliance && sizes->compliance[r] > 0.0) {
        return 0;
      }
    }
  }
  for (int k = 0; k < sizes->equality_count && program->C; ++k) {
    add_equality(p, program, k);
  }
  return sizes->equality_count == 0 || program->C != NULL;
}

void primal_springs_pull(primal_path *p) {
  for (int k = 0; k < p->springs; ++k) {
    const primal_spring *one = p->spring + k;
    primal_row_add(one->rows, one->row, spring_force(p, one), p->pull);
  }
}

void primal_springs_add(primal_path *p) {
  for (int k = 0; k < p->springs; ++k) {
    const primal_spring *one = p->spring + k;
    const sparse_rows *rows = one->rows;
    for (int t = rows->start[one->row]; t < rows->start[one->row + 1]; ++t) {
      const lanes own = one->stiffness * LANES_FROM(rows->values + 4 * (size_t)t);
      int at = p->A.row_start[rows->tiles[t]];
      for (int u = rows->start[one->row]; u < rows->start[one->row + 1]; ++u) {
        at = primal_find_entry(&p->A, rows->tiles[u], at);
        double *out = p->A.value + 16 * (size_t)at;
        for (int b = 0; b < 4; ++b) {
          LANES_AT(out + (size_t)(4 * b)) += own * rows->values[4 * (size_t)u + (size_t)b];
        }
      }
    }
  }
}

void primal_springs_choose(primal_path *p) {
  for (int k = 0; k < p->springs; ++k) {
    primal_spring *one = p->spring + k;
    const double w = primal_row_product(one->rows, one->row, p->x) + one->offset;
    const double force = one->load - one->stiffness * w;
    const int is_hard = !(one->compliance * HOLDS * p->stiffness > 1.0);
    const double wanted =
        is_hard ? (one->holds ? force : force - p->stiffness * w) : -w / one->compliance;
    set_state(p, one, wanted, smaller(larger(force, one->lower), one->upper));
  }
}

void primal_springs_read(const primal_path *p, double *dual, double *dual_eq) {
  for (int k = 0; k < p->springs; ++k) {
    const primal_spring *one = p->spring + k;
    double *to = one->rows == &p->G ? dual : dual_eq;
    to[one->row] = spring_force(p, one);
  }
}
