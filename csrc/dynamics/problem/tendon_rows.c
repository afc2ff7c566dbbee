/* Rows along tendons: limits, springs (which give way) and dry friction (an interval). */
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

/* A row of its kind, its tiles being listed, and its cone. `bound`: a length, of friction none. */
static void add_row(problem *p, const qd_model *model, const qd_step_options *o, island *one,
                    const tendon_row *kind, double bound) {
  const int tendon = kind->tendon, is_interval = kind->kind >= TENDON_REST;
  double *row = tile_rows_append(&one->G, &p->list);
  for (int k = 0; k < p->list.count; ++k) {
    p->tile_place[p->list.tiles[k]] = k;
  }
  for (int d = model->tendon_dof_start[tendon]; d < model->tendon_dof_start[tendon + 1]; ++d) {
    const int dof = model->tendon_dof[d];
    if (model->tendon_dof_counts[d] && p->variable_of_dof[dof] >= 0) {
      const int column = column_of(p, one, dof);
      row[4 * p->tile_place[column / 4] + column % 4] = kind->sign * p->tendons.rate[d];
    }
  }
  tendon_row *added = p->tendon_row + p->tendon_row_count++;
  *added = *kind;
  added->row = p->row_count;
  p->g[p->row_count] = kind->sign * (p->tendons.length[tendon] - bound);
  if (kind->kind == TENDON_LIMIT) {
    p->g[p->row_count] = gap_to_undo(p, o, p->g[p->row_count], &added->capped);
  }
  if (kind->kind == TENDON_FRICTION) {
    p->g[p->row_count] = 0.0;
  }
  if (is_interval) {
    const double most =
        kind->kind == TENDON_FRICTION ? model->tendon_friction[tendon] : (double)INFINITY;
    p->lower[p->row_count] = -most;
    p->upper[p->row_count] = most;
    ++one->intervals;
  }
  if (kind->kind == TENDON_SPRING || kind->kind == TENDON_REST) {
    p->compliance[p->row_count] = 1.0 / model->parameters.tendon_stiffness[tendon];
    ++one->compliant;
  }
  ++p->row_count;
  ++one->row_count;
  ++one->tendon_row_count;
  add_cone(p, one, is_interval ? QD_INTERVAL : QD_ORTHANT, 1, barrier_target(o, 1));
}

static void add_spring(problem *p, const qd_model *model, const qd_step_options *o, island *one,
                       int tendon) {
  const double *rest = model->tendon_rest + 2 * tendon;
  const tendon_row kinds[] = {{tendon, 0, TENDON_REST, 1.0, 0},
                              {tendon, 0, TENDON_SPRING, 1.0, 0},
                              {tendon, 0, TENDON_SPRING, -1.0, 0}};
  if (rest[0] == rest[1]) {
    add_row(p, model, o, one, kinds, rest[0]);
  } else {
    add_row(p, model, o, one, kinds + 1, rest[0]);
    add_row(p, model, o, one, kinds + 2, rest[1]);
  }
}

static void add_limits(problem *p, const qd_model *model, const qd_step_options *o, island *one,
                       int tendon) {
  const double *range = model->tendon_range + 2 * tendon;
  for (int side = 0; side < 2; ++side) {
    const tendon_row kind = {tendon, 0, TENDON_LIMIT, side == 0 ? 1.0 : -1.0, 0};
    if (isfinite(range[side])) {
      add_row(p, model, o, one, &kind, range[side]);
    }
  }
}

void tendon_rows_assemble(problem *p, const qd_model *model, const qd_step_options *o,
                          island *one) {
  one->tendon_row = p->tendon_row_count;
  for (int i = one->tendon; i < one->tendon + one->tendon_count; ++i) {
    const int tendon = p->islands.tendon_order[i];
    const tendon_row friction = {tendon, 0, TENDON_FRICTION, 1.0, 0};
    if (!list_tendon_tiles(p, model, one, tendon)) {
      continue;
    }
    if (model->parameters.tendon_stiffness[tendon] > 0.0) {
      add_spring(p, model, o, one, tendon);
    }
    if (model->tendon_friction[tendon] > 0.0) {
      add_row(p, model, o, one, &friction, 0.0);
    }
    if (o->joint_limits) {
      add_limits(p, model, o, one, tendon);
    }
  }
}
