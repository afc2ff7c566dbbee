/* The variables for contacts: screws in tiles of four, and the variables that move each body. */
#include <limits.h>

#include "base/lanes.h"
#include "dynamics/problem/parts.h"

/* Screws of an island's variables. */
static void place_screws(column_table *columns, const problem *p, const island *one) {
  column_tile *tile = columns->tile + one->tile;
  memset(tile, 0, (size_t)((one->variable_count + 3) / 4) * sizeof *tile);
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    if (dof < 0) {
      continue;
    }
    const screw *s = p->kinematics->dof_screw + dof;
    for (int axis = 0; axis < 3; ++axis) {
      tile[i / 4].w[axis][i % 4] = s->w[axis];
      tile[i / 4].v[axis][i % 4] = s->v[axis];
    }
  }
}

void contact_columns_fill(column_table *columns, const problem *p) {
  int entries = 0;
  for (int i = 0; i < p->islands.count; ++i) {
    if (p->islands.island[i].contact_count > 0) {
      place_screws(columns, p, p->islands.island + i);
    }
  }
  for (int body = 0; body < p->model->body.count; ++body) {
    const int tree = p->model->body.tree[body], index = tree < 0 ? -1 : p->islands.parent[tree];
    columns->body_start[body] = entries;
    if (index < 0 || p->islands.island[index].contact_count == 0) {
      continue;
    }
    const int before = p->islands.island[index].variable;
    int last = -1;
    const int_list chain = body_chain(p->model, body);
    for (int i = 0; i < chain.count; ++i) {
      const int column = p->variable_of_dof[chain.at[i]] - before;
      if (column < 0) {
        continue; /* held */
      }
      double *mask = columns->body_mask + 4 * (size_t)entries;
      if (column / 4 != last) {
        last = columns->body_tiles[entries++] = column / 4;
        mask[0] = mask[1] = mask[2] = mask[3] = 0.0;
        mask[column % 4] = 1.0;
      } else {
        mask[column % 4 - 4] = 1.0;
      }
    }
  }
  columns->body_start[p->model->body.count] = entries;
}

QD_MULTIVERSION
void contact_tiles_find(problem *p, const qd_contact *contact) {
  static const lanes none = {0.0, 0.0, 0.0, 0.0};
  const column_table *c = &p->columns;
  int a = c->body_start[contact->body_a], b = c->body_start[contact->body_b], count = 0;
  const int a_end = c->body_start[contact->body_a + 1], b_end = c->body_start[contact->body_b + 1];
  while (a < a_end || b < b_end) {
    const int tile_a = a < a_end ? c->body_tiles[a] : INT_MAX;
    const int tile_b = b < b_end ? c->body_tiles[b] : INT_MAX;
    const int tile = tile_a < tile_b ? tile_a : tile_b;
    const lanes on_a = tile_a == tile ? LANES_OF(c->body_mask + 4 * a++) : none;
    const lanes on_b = tile_b == tile ? LANES_OF(c->body_mask + 4 * b++) : none;
    const lanes sign = on_b - on_a, any = sign * sign;
    p->scratch.list.tiles[count] = tile;
    LANES_AT(p->scratch.sign + 4 * count) = sign;
    count += lanes_sum(&any) > 0.0;
  }
  p->scratch.list.count = count;
}

QD_MULTIVERSION
void contact_motions_compute(problem *p, const island *one, const qd_contact *contact,
                             double squared[MOTION_MAX]) {
  const double *f = contact->frame, *x = contact->pos;
  const int axes = contact->dim > 1 ? 3 : 1;
  lanes largest[MOTION_MAX] = {{0.0}};
  for (int k = 0; k < p->scratch.list.count; ++k) {
    const column_tile *tile = p->columns.tile + one->tile + p->scratch.list.tiles[k];
    const lanes sign = LANES_OF(p->scratch.sign + 4 * k);
    const lanes w0 = LANES_OF(tile->w[0]), w1 = LANES_OF(tile->w[1]), w2 = LANES_OF(tile->w[2]);
    const lanes v0 = (w1 * x[2] - w2 * x[1]) + LANES_OF(tile->v[0]);
    const lanes v1 = (w2 * x[0] - w0 * x[2]) + LANES_OF(tile->v[1]);
    const lanes v2 = (w0 * x[1] - w1 * x[0]) + LANES_OF(tile->v[2]);
    double *out = p->scratch.motion + 4 * MOTION_MAX * k;
    for (int c = 0; c < axes; ++c) {
      const lanes m = sign * ((f[3 * c] * v0 + f[3 * c + 1] * v1) + f[3 * c + 2] * v2);
      LANES_AT(out + 4 * c) = m;
      largest[c] += m * m;
    }
    for (int c = 0; c < 3 && contact->dim > 3; ++c) {
      const lanes m = sign * ((f[3 * c] * w0 + f[3 * c + 1] * w1) + f[3 * c + 2] * w2);
      LANES_AT(out + 4 * (3 + c)) = m;
      largest[3 + c] += m * m;
    }
  }
  for (int c = 0; c < contact->dim; ++c) {
    squared[c] = lanes_sum(&largest[c]);
  }
}
