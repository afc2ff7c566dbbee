/* Bilateral constraints: equalities over the DOFs of both sides. */
#include "base/rounding.h"
#include "dynamics/problem/parts.h"

/* Adds the tiles of these DOFs to the list. */
static void list_tiles(problem *p, const island *one, int_list dofs) {
  for (int i = 0; i < dofs.count; ++i) {
    if (dofs.at[i] >= 0 && p->variable_of_dof[dofs.at[i]] >= 0) {
      tile_list_add(&p->scratch.list, column_of(p, one, dofs.at[i]));
    }
  }
}

/* Appends zero rows with the tiles of the complete list; returns their values. */
static double *open_rows(problem *p, tile_rows *rows, int count) {
  double *values = tile_rows_append(rows, &p->scratch.list);
  for (int r = 1; r < count; ++r) {
    tile_rows_append(rows, &p->scratch.list);
  }
  for (int k = 0; k < p->scratch.list.count; ++k) {
    p->scratch.tile_place[p->scratch.list.tiles[k]] = k;
  }
  return values;
}

/* Position of a column in those rows. */
static int place_of(const problem *p, int column) {
  return 4 * p->scratch.tile_place[column / 4] + column % 4;
}

/* DOFs on each side of a constraint. */
static int_list constraint_dofs(const qd_model *model, const constraint_state *s, int side) {
  const int tendon = s->tendon[side];
  if (s->tendon[0] >= 0) {
    return tendon < 0 ? (int_list){NULL, 0}
                      : list_part(model->tendon.dof, model->tendon.dof_start, tendon);
  }
  return s->rows == 1 ? (int_list){s->dof + side, 1} : body_chain(model, s->body[side]);
}

/* Columns of a constraint's rows, for those of these DOFs that are free. */
static void write_constraint_columns(problem *p, const island *one, double *rows,
                                     const constraint_state *s, int_list dofs) {
  for (int i = 0; i < dofs.count; ++i) {
    double column[CONSTRAINT_ROWS_MAX];
    const int dof = dofs.at[i];
    if (dof < 0 || p->variable_of_dof[dof] < 0) {
      continue;
    }
    constraint_column(column, s, p->model, p->kinematics, dof);
    for (int r = 0; r < s->rows; ++r) {
      rows[4 * r * p->scratch.list.count + place_of(p, column_of(p, one, dof))] = column[r];
    }
  }
}

/* Keeps those of the last s->rows rows of C that a free DOF moves. */
static void keep_equalities(problem *p, island *one, const constraint_state *s, int constraint) {
  const size_t width = 4 * (size_t)p->scratch.list.count;
  tile_rows *C = &one->C;
  int row = C->count - s->rows;
  const double *from = C->values + 4 * (size_t)C->start[row];
  for (int component = 0; component < s->rows; ++component, from += width) {
    double largest = 0.0;
    for (size_t i = 0; i < width; ++i) {
      largest = fmax(largest, fabs(from[i]));
    }
    if (largest > NEGLIGIBLE) {
      memmove(C->values + 4 * (size_t)C->start[row++], from, width * sizeof(double));
      ++one->equality_count;
      p->program.c[p->count.equalities] = s->violation[component];
      p->equality[p->count.equalities++] =
          (equality_row){.constraint = constraint, .component = component};
    }
  }
  C->count = row;
}

void constraint_rows_assemble(problem *p, island *one, int index) {
  const constraint_state *s = p->constraint + index;
  p->scratch.list.count = 0;
  for (int side = 0; side < 2; ++side) {
    list_tiles(p, one, constraint_dofs(p->model, s, side));
  }
  double *rows = open_rows(p, &one->C, s->rows);
  for (int side = 0; side < 2; ++side) {
    write_constraint_columns(p, one, rows, s, constraint_dofs(p->model, s, side));
  }
  keep_equalities(p, one, s, index);
}
