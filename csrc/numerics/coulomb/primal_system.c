/* Newton's equations of the path in a program's own variables. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/coulomb/primal_rows.h"

void primal_path_lay_out(primal_path *p, const primal_sizes *sizes, arena *a) {
  const size_t rows = (size_t)sizes->rows, tiles = ((size_t)sizes->variables + 3) / 4;
  const size_t entries = sizes->entries < tiles * tiles ? sizes->entries : tiles * tiles;
  const size_t all = tiles * (tiles - 1) / 2, fill = sizes->fill < all ? sizes->fill : all;
  p->entry_room = entries;
  if (entries == 0) {
    return;
  }
  p->cone = arena_take(a, rows * sizeof *p->cone);
  p->spring = arena_take(a, (rows + (size_t)sizes->equalities) * sizeof *p->spring);
  p->paired = arena_take(a, rows);
  p->own_values = arena_doubles(a, 4 * sizes->row_tiles);
  p->own_g = arena_doubles(a, rows);
  p->A.row_start = arena_ints(a, tiles + 1);
  p->A.column = arena_ints(a, entries);
  p->A.value = arena_doubles(a, 16 * entries);
  block_lu_lay_out(&p->lu, tiles, fill, a);
  p->mask = arena_take(a, tiles * bit_words(tiles) * sizeof(uint64_t));
  ARENA_DOUBLES(a, 4 * tiles, &p->x, &p->dx, &p->rhs, &p->pull);
  p->gap = arena_doubles(a, rows);
  p->row_tiles = arena_doubles(a, 16 * tiles);
}

/* ------------------------------------------------------------ the pattern */

/* Lists the cones; each orthant row is one, intervals are springs. 0 if a cone is not supported. */
static int list_cones(primal_path *p, const qd_cone_program *program) {
  p->cones = 0;
  for (int c = 0, row = 0; c < program->cone_count; ++c) {
    const int dim = program->cone_dim[c], is_cone = program->cone_kind[c] == QD_LORENTZ;
    const int is_interval = program->cone_kind[c] == QD_INTERVAL;
    if ((is_cone && dim > CONE_ROWS) || (program->target_mu && program->target_mu[c] > 0.0)) {
      return 0;
    }
    for (int r = row; r < row + dim && !is_interval; r += p->cone[p->cones - 1].tails + 1) {
      coulomb_cone *cone = p->cone + p->cones++;
      memset(cone, 0, sizeof *cone);
      cone->tail = r + 1;
      cone->tails = is_cone ? dim - 1 : p->paired[r];
    }
    row += dim;
  }
  return 1;
}

/* Sets the rows of G and g, with head and tail instead of the pairs of a pyramid. */
static void set_rows(primal_path *p, const conic_program *program) {
  const double *g = program->program.g;
  p->G = *program->G;
  p->g = g;
  if (memchr(p->paired, 1, (size_t)p->rows) == NULL) {
    return;
  }
  memcpy(p->own_values, p->G.values, 4 * (size_t)p->G.start[p->rows] * sizeof(double));
  memcpy(p->own_g, g, (size_t)p->rows * sizeof(double));
  for (int r = 0; r < p->rows; ++r) {
    if (p->paired[r]) {
      const int first = 4 * p->G.start[r], next = 4 * p->G.start[r + 1];
      for (int k = 0; k < next - first; ++k) {
        const double plus = p->G.values[first + k], minus = p->G.values[next + k];
        p->own_values[first + k] = 0.5 * (plus + minus);
        p->own_values[next + k] = 0.5 * (plus - minus);
      }
      p->own_g[r] = 0.5 * (g[r] + g[r + 1]);
      p->own_g[r + 1] = 0.5 * (g[r] - g[r + 1]);
    }
  }
  p->G.values = p->own_values;
  p->g = p->own_g;
}

/* Couples the tiles of a row (all rows of a contact have the same). */
static void note_row(uint64_t *mask, size_t words, const sparse_rows *G, int row) {
  for (int t = G->start[row]; t < G->start[row + 1]; ++t) {
    for (int u = G->start[row]; u < G->start[row + 1]; ++u) {
      note_entry(mask, words, G->tiles[t], G->tiles[u]);
    }
  }
}

static void note_entries(primal_path *p, const conic_program *program, size_t words) {
  const sparse_rows *Q = program->Q, *G = &p->G;
  memset(p->mask, 0, (size_t)p->tiles * words * sizeof(uint64_t));
  for (int i = 0; i < p->tiles; ++i) {
    note_entry(p->mask, words, i, i);
  }
  for (int i = 0; i < p->variables; ++i) {
    for (int t = Q->start[i]; t < Q->start[i + 1]; ++t) {
      note_entry(p->mask, words, i / 4, Q->tiles[t]);
      note_entry(p->mask, words, Q->tiles[t], i / 4);
    }
  }
  for (int c = 0; c < p->cones; ++c) {
    note_row(p->mask, words, G, p->cone[c].tail - 1);
  }
  for (int k = 0; k < p->springs; ++k) {
    note_row(p->mask, words, p->spring[k].rows, p->spring[k].row);
  }
}

static void set_stiffness(primal_path *p, const sparse_rows *Q) {
  p->stiffness = 0.0;
  for (int i = 0; i < p->variables; ++i) {
    for (int t = Q->start[i]; t < Q->start[i + 1]; ++t) {
      if (Q->tiles[t] == i / 4) {
        p->stiffness = larger(Q->values[4 * (size_t)t + (size_t)(i % 4)], p->stiffness);
      }
    }
  }
}

int primal_system_begin(primal_path *p, const conic_program *program) {
  const qd_cone_program *sizes = &program->program;
  if (p->entry_room == 0 || !program->G || !program->Q || !list_cones(p, sizes)) {
    return 0;
  }
  p->variables = sizes->variable_count;
  p->rows = sizes->row_count;
  set_rows(p, program);
  p->tiles = (p->variables + 3) / 4;
  p->A.count = p->tiles;
  memset(p->gap, 0, (size_t)p->rows * sizeof(double)); /* zero for rows of springs */
  const size_t words = bit_words((size_t)p->tiles);
  set_stiffness(p, program->Q);
  if (!(p->stiffness > 0.0) || !primal_springs_list(p, program)) {
    return 0;
  }
  note_entries(p, program, words);
  return block_list(&p->A, p->mask, p->entry_room) <= p->entry_room &&
         block_lu_analyse(&p->lu, &p->A);
}

/* ------------------------------------------------------------ products */

double primal_shift(const double *slack, int tails) {
  double sum = 0.0;
  for (int k = 1; k <= tails; ++k) {
    sum += slack[k] * slack[k];
  }
  return sum > 0.0 ? sum / slack[0] : 0.0;
}

void primal_cost_product(const primal_path *p, const conic_program *program, const double *x,
                         double *y) {
  memset(y, 0, 4 * (size_t)p->tiles * sizeof(double));
  for (int i = 0; i < p->variables; ++i) {
    y[i] = primal_row_product(program->Q, i, x);
  }
}

void primal_system_measure(primal_path *p, const conic_program *program) {
  primal_cost_product(p, program, p->x, p->pull);
  for (int i = 0; i < p->variables; ++i) {
    p->pull[i] = -program->program.b[i] - p->pull[i];
  }
  for (int c = 0; c < p->cones; ++c) {
    const coulomb_cone *cone = p->cone + c;
    const int row = cone->tail - 1;
    for (int k = 0; k <= cone->tails; ++k) {
      p->gap[row + k] = primal_row_product(&p->G, row + k, p->x) + p->g[row + k] - cone->slack[k];
      primal_row_add(&p->G, row + k, cone->force[k], p->pull);
    }
    p->gap[row] += primal_shift(cone->slack, cone->tails);
  }
  primal_springs_pull(p);
}

/* ------------------------------------------------------------ the matrix */

/* a = T a, with dv = T dw: for r = v_tail / v_head, (1 + r'r) dv_head - 2 r'dv_tail = dw_head. */
static void turn(const coulomb_cone *cone, double *a) {
  double along = a[0], bend = 1.0;
  for (int k = 1; k <= cone->tails; ++k) {
    const double ratio = cone->slack[k] / cone->slack[0];
    along += 2.0 * ratio * a[k];
    bend += ratio * ratio;
  }
  a[0] = along / bend;
}

/* a = W^-2 a */
static void unscale(const coulomb_cone *cone, double *a) {
  double half[CONE_ROWS];
  coulomb_scale(cone, a, -1.0, half);
  coulomb_scale(cone, half, -1.0, a);
}

/* H of a cone in its state, (rows, rows) by columns of CONE_ROWS */
static void set_hold_matrix(const coulomb_cone *cone, double hard, double *H) {
  memset(H, 0, CONE_ROWS * CONE_ROWS * sizeof *H);
  if (cone->state == COULOMB_STICK) {
    for (int k = 0; k <= cone->tails; ++k) {
      H[CONE_ROWS * k + k] = hard;
    }
  } else if (cone->state == COULOMB_SLIDE) {
    H[0] = hard;
    for (int i = 1; i <= cone->tails; ++i) {
      H[i] = hard * cone->direction[i];
      for (int j = 1; j <= cone->tails; ++j) {
        H[CONE_ROWS * j + i] = cone->eta * ((i == j) - cone->direction[i] * cone->direction[j]);
      }
    }
  }
}

/* The same matrix on the path, W^-2 T */
static void set_contact_matrix(const primal_path *p, const coulomb_cone *cone, double *H) {
  if (p->hard > 0.0) {
    set_hold_matrix(cone, p->hard, H);
    return;
  }
  for (int j = 0; j <= cone->tails; ++j) {
    double *column = H + (size_t)(CONE_ROWS * j);
    memset(column, 0, CONE_ROWS * sizeof *column);
    column[j] = 1.0;
    turn(cone, column);
    unscale(cone, column);
  }
}

/* A += G' H G of one cone */
LANES_INLINE void add_cone(primal_path *p, const sparse_rows *G, const coulomb_cone *cone) {
  double H[CONE_ROWS * CONE_ROWS], product[4 * CONE_ROWS];
  const int row = cone->tail - 1, count = G->start[row + 1] - G->start[row];
  if (p->hard > 0.0 && cone->state == COULOMB_OPEN) {
    return;
  }
  set_contact_matrix(p, cone, H);
  for (int u = 0; u < count; ++u) {
    const int column = G->tiles[G->start[row] + u];
    for (int i = 0; i <= cone->tails; ++i) {
      lanes sum = {0.0, 0.0, 0.0, 0.0};
      for (int j = 0; j <= cone->tails; ++j) {
        sum += H[CONE_ROWS * j + i] *
               LANES_FROM(G->values + 4 * ((size_t)G->start[row + j] + (size_t)u));
      }
      LANES_ANYWHERE(product + 4 * (size_t)i) = sum;
    }
    for (int t = 0; t < count; ++t) {
      const int tile = G->tiles[G->start[row] + t];
      const int entry = primal_find_entry(&p->A, column, p->A.row_start[tile]);
      double *out = p->A.value + 16 * (size_t)entry;
      for (int i = 0; i <= cone->tails; ++i) {
        const lanes own = LANES_FROM(G->values + 4 * ((size_t)G->start[row + i] + (size_t)t));
        for (int b = 0; b < 4; ++b) {
          LANES_AT(out + (size_t)(4 * b)) += own * product[4 * i + b];
        }
      }
    }
  }
}

static void set_cost(primal_path *p, const sparse_rows *Q) {
  memset(p->A.value, 0, 16 * (size_t)p->A.row_start[p->tiles] * sizeof(double));
  for (int i = 0; i < 4 * p->tiles; ++i) {
    int at = p->A.row_start[i / 4];
    if (i >= p->variables) {
      p->A.value[16 * (size_t)primal_find_entry(&p->A, i / 4, at) + (size_t)(5 * (i % 4))] = 1.0;
      continue;
    }
    for (int t = Q->start[i]; t < Q->start[i + 1]; ++t) {
      at = primal_find_entry(&p->A, Q->tiles[t], at);
      for (int k = 0; k < 4; ++k) {
        p->A.value[16 * (size_t)at + (size_t)(4 * k + i % 4)] +=
            (1.0 + p->hold) * Q->values[4 * (size_t)t + (size_t)k];
      }
    }
  }
}

static void write_row(const void *context, int row, double *out) {
  const block_matrix *A = context;
  memcpy(out, A->value + 16 * (size_t)A->row_start[row],
         16 * (size_t)(A->row_start[row + 1] - A->row_start[row]) * sizeof(double));
}

QD_MULTIVERSION
static void add_cones(primal_path *p, const sparse_rows *G) {
  for (int c = 0; c < p->cones; ++c) {
    add_cone(p, G, p->cone + c);
  }
}

void primal_system_factor(primal_path *p, const conic_program *program, int no_contacts) {
  set_cost(p, program->Q);
  primal_springs_add(p);
  if (!no_contacts) {
    add_cones(p, &p->G);
  }
  block_lu_factor(&p->lu, &p->A, write_row, &p->A, p->row_tiles);
}

/* ------------------------------------------------------------ the step */

/* Push of a cone without motion: W^-1 aim - W^-2 T gap on the path, `aim` in a polish. */
static void set_push(const primal_path *p, const coulomb_cone *cone, double *push) {
  double left[CONE_ROWS];
  if (p->hard > 0.0) {
    memcpy(push, cone->aim, sizeof cone->aim);
    return;
  }
  memcpy(left, p->gap + cone->tail - 1, (size_t)(cone->tails + 1) * sizeof(double));
  turn(cone, left);
  coulomb_scale(cone, left, -1.0, push);
  for (int k = 0; k <= cone->tails; ++k) {
    left[k] = cone->aim[k] - push[k];
  }
  coulomb_scale(cone, left, -1.0, push);
}

/* dslack and dforce of a cone from the motion of its rows, which is in dslack. */
static void set_cone_step(const primal_path *p, coulomb_cone *cone) {
  double scaled[CONE_ROWS];
  for (int k = 0; k <= cone->tails; ++k) {
    cone->dslack[k] += p->gap[cone->tail - 1 + k];
  }
  turn(cone, cone->dslack);
  coulomb_scale(cone, cone->dslack, -1.0, scaled);
  for (int k = 0; k <= cone->tails; ++k) {
    scaled[k] = cone->aim[k] - scaled[k];
  }
  coulomb_scale(cone, scaled, -1.0, cone->dforce);
}

/* dforce = aim - H dw */
static void set_held_step(const primal_path *p, coulomb_cone *cone) {
  double H[CONE_ROWS * CONE_ROWS];
  set_hold_matrix(cone, p->hard, H);
  for (int i = 0; i <= cone->tails; ++i) {
    cone->dforce[i] = cone->aim[i];
    for (int j = 0; j <= cone->tails; ++j) {
      cone->dforce[i] -= H[CONE_ROWS * j + i] * cone->dslack[j];
    }
  }
}

void primal_system_solve(primal_path *p) {
  memcpy(p->dx, p->pull, 4 * (size_t)p->tiles * sizeof(double));
  for (int c = 0; c < p->cones; ++c) {
    const coulomb_cone *cone = p->cone + c;
    double push[CONE_ROWS];
    set_push(p, cone, push);
    for (int k = 0; k <= cone->tails; ++k) {
      primal_row_add(&p->G, cone->tail - 1 + k, push[k], p->dx);
    }
  }
  block_lu_solve(&p->lu, p->dx);
  for (int c = 0; c < p->cones; ++c) {
    coulomb_cone *cone = p->cone + c;
    for (int k = 0; k <= cone->tails; ++k) {
      cone->dslack[k] = primal_row_product(&p->G, cone->tail - 1 + k, p->dx);
    }
    if (p->hard > 0.0) {
      set_held_step(p, cone);
    } else {
      set_cone_step(p, cone);
    }
  }
}
