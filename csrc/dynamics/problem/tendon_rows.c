/* Rows along tendons: their limits, together one cone of an island. */
#include "dynamics/problem/parts.h"

/* Lists the tiles of a tendon's free DOFs. 0 if nothing free changes its length. */
static int list_tendon_tiles(problem *p, const qd_model *model, const island *one, int tendon) {
  double largest = 0.0;
  p->list.count = 0;
  for (int d = model->tendon_dof_start[tendon]; d < model->tendon_dof_start[tendon + 1]; ++d) {
    const int dof = model->tendon_dof[d];
    if (model->tendon_dof_counts[d] && p->variable_of_dof[dof] >= 0) {
      tile_list_add(&p->list, column_of(p, one, dof));
      largest = fmax(largest, fabs(p->tendons.rate[d]));
    }
  }
  return largest > MOTION_ZERO;
}

/* sign (length + rate.d - bound) >= 0, its tiles being listed */
static void add_row(problem *p, const qd_model *model, island *one, int tendon, double sign,
                    double bound) {
  double *row = tile_rows_append(&one->G, &p->list);
  for (int k = 0; k < p->list.count; ++k) {
    p->tile_place[p->list.tiles[k]] = k;
  }
  for (int d = model->tendon_dof_start[tendon]; d < model->tendon_dof_start[tendon + 1]; ++d) {
    const int dof = model->tendon_dof[d];
    if (model->tendon_dof_counts[d] && p->variable_of_dof[dof] >= 0) {
      const int column = column_of(p, one, dof);
      row[4 * p->tile_place[column / 4] + column % 4] = sign * p->tendons.rate[d];
    }
  }
  tendon_row *added = p->tendon_row + p->tendon_row_count++;
  added->tendon = tendon;
  added->sign = sign;
  added->row = p->row_count;
  p->g[p->row_count++] = sign * (p->tendons.length[tendon] - bound);
  ++one->row_count;
  ++one->tendon_row_count;
}

void tendon_rows_assemble(problem *p, const qd_model *model, const qd_step_options *o,
                          island *one) {
  one->tendon_row = p->tendon_row_count;
  for (int i = one->tendon; i < one->tendon + one->tendon_count; ++i) {
    const int tendon = p->islands.tendon_order[i];
    const double *range = model->tendon_range + 2 * tendon;
    if (!list_tendon_tiles(p, model, one, tendon)) {
      continue;
    }
    if (isfinite(range[0])) {
      add_row(p, model, one, tendon, 1.0, range[0]);
    }
    if (isfinite(range[1])) {
      add_row(p, model, one, tendon, -1.0, range[1]);
    }
  }
  if (one->tendon_row_count > 0) {
    add_cone(p, one, QD_ORTHANT, one->tendon_row_count, barrier_target(o, 1));
  }
}
