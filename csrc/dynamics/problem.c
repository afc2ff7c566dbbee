#include "dynamics/problem.h"

#include <limits.h>
#include <math.h>

#include "base/lanes.h"
#include "mechanics/applied.h"

/* Radians, or metres: penetrations that less motion cannot open by the normal row are not opened by
 * any motion that linearisation knows of. */
#define FORCED_MOST 3.0

void problem_lay_out(problem *p, const qd_model *model, int contact_capacity, arena *a) {
  const size_t nv = (size_t)model->nv;
  const size_t nc = (size_t)model->constraint_count;
  const size_t equalities = (size_t)model->constraint_row_count;
  islands_lay_out(&p->islands, model, contact_capacity, a);
  p->variable_of_dof = arena_ints(a, nv);
  p->dof_of_variable = arena_ints(a, nv);
  p->epsilon = arena_doubles(a, nv);
  p->mass_row = arena_doubles(a, nv);
  p->gravity = arena_doubles(a, nv);
  p->applied = arena_doubles(a, nv);
  p->b = arena_doubles(a, nv);
  p->x = arena_doubles(a, nv);
  p->c = arena_doubles(a, equalities);
  p->dual_eq = arena_doubles(a, equalities);
  p->constraint = arena_take(a, nc * sizeof(constraint_state));
  p->equality = arena_take(a, equalities * sizeof(equality_row));
  p->constraint_force = arena_doubles(a, nc * QD_CONSTRAINT_FORCE);
  p->block = arena_take(a, (size_t)contact_capacity * sizeof(contact_block));
  p->limit = arena_take(a, 2 * nv * sizeof(limit_row));
  p->columns.tile = arena_take(a, nv * sizeof(column_tile));
  p->columns.body_start = arena_ints(a, (size_t)model->body_count + 1);
  p->columns.body_tiles = arena_ints(a, (size_t)model->chain_start[model->body_count]);
  p->columns.body_mask = arena_doubles(a, 4 * (size_t)model->chain_start[model->body_count]);
  p->sign = arena_doubles(a, 4 * (nv / 4 + 1));
  p->motion = arena_doubles(a, 4 * MOTION_MAX * (nv / 4 + 1));
  p->list.tiles = arena_ints(a, nv + 1);
  p->tile_place = arena_ints(a, nv / 4 + 1);
  p->tree_first = arena_ints(a, (size_t)model->tree_count);
  p->tree_last = arena_ints(a, (size_t)model->tree_count);
}

void problem_lay_out_program(problem *p, arena *a) {
  size_t rows = 0, cones = 0;
  for (int i = 0; i < p->islands.count; ++i) {
    island *one = p->islands.island + i;
    rows += (size_t)one->size.rows;
    cones += (size_t)one->contact_count + 1; /* one for the limits */
    tile_rows_lay_out(&one->Q, (size_t)one->size.variables, one->Q_tiles, a);
    tile_rows_lay_out(&one->G, (size_t)one->size.rows, one->G_tiles, a);
    tile_rows_lay_out(&one->C, (size_t)one->size.equalities, one->C_tiles, a);
  }
  p->g = arena_doubles(a, rows);
  p->slack = arena_doubles(a, rows);
  p->dual = arena_doubles(a, rows);
  p->four_w = arena_doubles(a, 4 * rows);
  p->friction_row = arena_take(a, rows * sizeof(friction_row));
  p->cone_kind = arena_ints(a, cones);
  p->cone_dim = arena_ints(a, cones);
  p->target_mu = arena_doubles(a, cones);
}

void problem_number_variables(problem *p, const qd_model *model, const uint8_t *held) {
  islands *s = &p->islands;
  for (int i = 0; i < s->count; ++i) {
    s->island[i].variable_count = 0; /* counted again */
  }
  p->n = 0;
  for (int dof = 0; dof < model->nv; ++dof) {
    if (held != NULL && held[dof]) {
      p->variable_of_dof[dof] = -1;
    } else {
      island *one = s->island + s->parent[model->dof_tree[dof]];
      const int variable = one->variable + one->variable_count++;
      p->variable_of_dof[dof] = variable;
      p->dof_of_variable[variable] = dof;
      ++p->n;
    }
  }
}

/* ---------------------------------------------------------------- cost */

/* epsilon, or k_min h^2 / (largest mass diagonal of the tree) / mass_ratio (systems 1.6) */
static void fill_epsilon(problem *p, const qd_model *model, const qd_step_options *o) {
  for (int dof = 0; dof < model->nv; ++dof) {
    const double largest = model->tree_inertia[model->dof_tree[dof]];
    const int by_ratio = o->mass_ratio > 0.0 && largest > 0.0;
    p->epsilon[dof] =
        by_ratio ? model->smallest_stiffness * o->h * o->h / largest / o->mass_ratio : o->epsilon;
  }
}

/* Column of a DOF in the matrices of its island. */
static int column_of(const problem *p, const island *one, int dof) {
  return p->variable_of_dof[dof] - one->variable;
}

/* The columns that mass couples: of each tree, from the first unactuated one to the last. */
static void find_tree_columns(problem *p, const qd_model *model) {
  for (int tree = 0; tree < model->tree_count; ++tree) {
    p->tree_first[tree] = model->nv;
    p->tree_last[tree] = -1;
  }
  for (int i = 0; i < p->n; ++i) {
    const int dof = p->dof_of_variable[i], tree = model->dof_tree[dof];
    if (model->dof_actuator[dof] < 0) {
      const int column = column_of(p, p->islands.island + p->islands.parent[tree], dof);
      p->tree_first[tree] = column < p->tree_first[tree] ? column : p->tree_first[tree];
      p->tree_last[tree] = column > p->tree_last[tree] ? column : p->tree_last[tree];
    }
  }
}

/* Zero rows of Q, wide enough for what couples. */
static void open_cost_rows(problem *p, const qd_model *model, island *one) {
  tile_rows_clear(&one->Q);
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i], tree = model->dof_tree[dof];
    const int alone = model->dof_actuator[dof] >= 0;
    const int first = (alone ? i : p->tree_first[tree]) / 4;
    const int last = (alone ? i : p->tree_last[tree]) / 4;
    p->list.count = last - first + 1;
    for (int k = 0; k < p->list.count; ++k) {
      p->list.tiles[k] = first + k;
    }
    tile_rows_append(&one->Q, &p->list);
  }
}

/* An entry of Q inside the range of tiles of its row. */
static double *cost_entry(const island *one, int i, int j) {
  const int at = one->Q.start[i];
  return one->Q.values + 4 * (size_t)at + (j - 4 * one->Q.tiles[at]);
}

static void fill_mass_block(problem *p, const qd_model *model, const kinematics *k,
                            const inertia *I, const island *one, double h) {
  for (int i = 0; i < one->variable_count; ++i) {
    const int di = p->dof_of_variable[one->variable + i];
    if (model->dof_actuator[di] >= 0) {
      continue;
    }
    int count;
    const int *chain = body_chain(model, model->dof_body[di], &count);
    const double factor = p->epsilon[di] / (h * h);
    count = inertia_mass_row(p->mass_row, model, k, I, di);
    for (int c = 0; c < count; ++c) {
      const int j = column_of(p, one, chain[c]);
      if (p->variable_of_dof[chain[c]] >= 0 && model->dof_actuator[chain[c]] < 0) {
        *cost_entry(one, i, j) = *cost_entry(one, j, i) = factor * p->mass_row[c];
      }
    }
  }
}

static void add_springs(problem *p, const qd_model *model, const island *one, const double *q,
                        const double *u) {
  const model_parameters *par = &model->parameters;
  double *b = p->b + one->variable;
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    const int actuator = model->dof_actuator[dof], joint = model->dof_joint[dof];
    double *diagonal = cost_entry(one, i, i);
    if (actuator >= 0) {
      const double stiffness = par->actuator_stiffness[actuator];
      const double command = u[actuator] / model->actuator_gear[actuator];
      *diagonal += stiffness;
      b[i] -= stiffness * (command - q[model->dof_q[dof]]);
    }
    if (par->joint_stiffness[joint] > 0.0) {
      *diagonal += par->joint_stiffness[joint];
      b[i] += par->joint_stiffness[joint] * (q[model->dof_q[dof]] - par->joint_springref[joint]);
    }
  }
}

static void fill_applied(problem *p, const qd_model *model, const kinematics *k, inertia *I,
                         const qd_step_input *input) {
  if (input->tau != NULL) {
    memcpy(p->applied, input->tau, (size_t)model->nv * sizeof(double));
  } else {
    memset(p->applied, 0, (size_t)model->nv * sizeof(double));
  }
  if (input->wrench != NULL) {
    applied_add_force(p->applied, I->momentum, model, k, input->wrench);
  }
}

static void assemble_cost(problem *p, const qd_model *model, const qd_step_options *o,
                          const kinematics *k, inertia *I, const qd_step_input *input) {
  if (!p->loads_are_known) {
    inertia_compute(model, k, o->gravity_on_actuated, I);
    inertia_gravity_force(p->gravity, model, k, I);
    fill_applied(p, model, k, I, input);
    fill_epsilon(p, model, o);
    p->loads_are_known = 1;
  }
  for (int i = 0; i < p->n; ++i) {
    const int dof = p->dof_of_variable[i];
    const int falls = model->dof_actuator[dof] < 0 || o->gravity_on_actuated;
    p->b[i] = -(falls ? p->gravity[dof] : 0.0) - p->applied[dof];
  }
  find_tree_columns(p, model);
  for (int i = 0; i < p->islands.count; ++i) {
    open_cost_rows(p, model, p->islands.island + i);
    fill_mass_block(p, model, k, I, p->islands.island + i, o->h);
    add_springs(p, model, p->islands.island + i, input->q, input->u);
  }
}

/* ---------------------------------------------------------------- contacts */

void contact_dofs_find(contact_dofs *d, const qd_model *model, const qd_contact *contact) {
  d->a = body_chain(model, contact->body_a, &d->a_count);
  d->b = body_chain(model, contact->body_b, &d->b_count);
  while (d->a_count > 0 && d->b_count > 0 && *d->a == *d->b) {
    ++d->a;
    ++d->b;
    --d->a_count;
    --d->b_count;
  }
}

/* Screws of an island's variables. */
static void place_screws(column_table *columns, const problem *p, const kinematics *k,
                         const island *one) {
  column_tile *tile = columns->tile + one->tile;
  memset(tile, 0, (size_t)((one->variable_count + 3) / 4) * sizeof *tile);
  for (int i = 0; i < one->variable_count; ++i) {
    const screw *s = k->dof_screw + p->dof_of_variable[one->variable + i];
    for (int axis = 0; axis < 3; ++axis) {
      tile[i / 4].w[axis][i % 4] = s->w[axis];
      tile[i / 4].v[axis][i % 4] = s->v[axis];
    }
  }
}

/* Which variables move which body, in islands that have contacts. */
static void find_columns(column_table *columns, const problem *p, const qd_model *model,
                         const kinematics *k) {
  int entries = 0;
  for (int i = 0; i < p->islands.count; ++i) {
    if (p->islands.island[i].contact_count > 0) {
      place_screws(columns, p, k, p->islands.island + i);
    }
  }
  for (int body = 0; body < model->body_count; ++body) {
    const int tree = model->body_tree[body], index = tree < 0 ? -1 : p->islands.parent[tree];
    columns->body_start[body] = entries;
    if (index < 0 || p->islands.island[index].contact_count == 0) {
      continue;
    }
    const int before = p->islands.island[index].variable;
    int count, last = -1;
    const int *chain = body_chain(model, body, &count);
    for (int i = 0; i < count; ++i) {
      const int column = p->variable_of_dof[chain[i]] - before;
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
  columns->body_start[model->body_count] = entries;
}

/* The tiles that move body A and B of a contact against each other, into the list, and `sign`.
 * Variables that move both are as if they moved none: the bits of a contact do not know them. */
QD_CLONES
static void contact_tiles(problem *p, const qd_contact *contact) {
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
    p->list.tiles[count] = tile;
    LANES_AT(p->sign + 4 * count) = sign;
    count += lanes_sum(&any) > 0.0;
  }
  p->list.count = count;
}

/* Fills p->motion, per unit rate of the variables of the list, and the squared lengths of its first
 * `dim` components. */
QD_CLONES
static void contact_motions(problem *p, const island *one, const qd_contact *contact,
                            double squared[MOTION_MAX]) {
  const double *f = contact->frame, *x = contact->pos;
  const int axes = contact->dim > 1 ? 3 : 1;
  lanes largest[MOTION_MAX] = {{0.0}};
  for (int k = 0; k < p->list.count; ++k) {
    const column_tile *tile = p->columns.tile + one->tile + p->list.tiles[k];
    const lanes sign = LANES_OF(p->sign + 4 * k);
    const lanes w0 = LANES_OF(tile->w[0]), w1 = LANES_OF(tile->w[1]), w2 = LANES_OF(tile->w[2]);
    const lanes v0 = (w1 * x[2] - w2 * x[1]) + LANES_OF(tile->v[0]);
    const lanes v1 = (w2 * x[0] - w0 * x[2]) + LANES_OF(tile->v[1]);
    const lanes v2 = (w0 * x[1] - w1 * x[0]) + LANES_OF(tile->v[2]);
    double *out = p->motion + 4 * MOTION_MAX * k;
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

/* ---------------------------------------------------------------- rows */

/* Adds the tiles of the DOFs given to the list. */
static void list_tiles(problem *p, const island *one, const int *dofs, int count) {
  for (int i = 0; i < count; ++i) {
    if (dofs[i] >= 0 && p->variable_of_dof[dofs[i]] >= 0) {
      tile_list_add(&p->list, column_of(p, one, dofs[i]));
    }
  }
}

/* The list is complete: zero rows with its tiles. Returns their numbers. */
static double *open_rows(problem *p, tile_rows *rows, int count) {
  double *values = tile_rows_append(rows, &p->list);
  for (int r = 1; r < count; ++r) {
    tile_rows_append(rows, &p->list);
  }
  for (int k = 0; k < p->list.count; ++k) {
    p->tile_place[p->list.tiles[k]] = k;
  }
  return values;
}

/* Where a column stands in those rows. */
static int place_of(const problem *p, int column) {
  return 4 * p->tile_place[column / 4] + column % 4;
}

/* Rows of G over the list's tiles: map times motion. */
QD_CLONES
static void write_rows(const problem *p, tile_rows *G, const friction_rows *rows) {
  const int count = p->list.count;
  for (int r = 0; r < rows->count; ++r) {
    const friction_row *row = rows->row + r;
    const int first = row->component[0], second = row->component[1];
    const double *motion = p->motion;
    double *values = tile_rows_open(G, &p->list);
    for (int k = 0; k < count; ++k, values += 4, motion += 4 * MOTION_MAX) {
      LANES_AT(values) =
          (row->normal * LANES_OF(motion) + row->weight[0] * LANES_OF(motion + 4 * first)) +
          row->weight[1] * LANES_OF(motion + 4 * second);
    }
  }
}

static void add_cone(problem *p, island *one, int kind, int dim, double target) {
  ++one->cone_count;
  p->cone_kind[p->cone_count] = kind;
  p->cone_dim[p->cone_count] = dim;
  p->target_mu[p->cone_count++] = target;
}

static double barrier_target(const qd_step_options *o, int log_count) {
  return isinf(o->kappa) ? 0.0 : log_count / o->kappa;
}

/* Of the smaller bounding sphere's radius. */
#define SHALLOW 5e-2
#define RELAXED_GAP 1e-3

static double contact_size(const qd_model *model, const qd_contact *contact) {
  return fmin(model->geom_radius[contact->geom_a], model->geom_radius[contact->geom_b]);
}

int problem_is_shallow(const qd_model *model, const qd_contact *contact) {
  return contact->dist < 0.0 && contact->dist > -SHALLOW * contact_size(model, contact);
}

/* The distance that counts, with the squared length of the normal row. Relaxed: no motion at all is
 * allowed, and by a barrier too. */
static double contact_offset(problem *p, const qd_model *model, const qd_step_options *o,
                             const qd_contact *contact, double normal_squared) {
  const int forced = contact->dist <= 0.0 &&
                     contact->dist * contact->dist >= FORCED_MOST * FORCED_MOST * normal_squared;
  if (!forced && !(p->relaxed && problem_is_shallow(model, contact))) {
    return contact->dist;
  }
  ++p->relaxed_count;
  return isinf(o->kappa) ? 0.0 : RELAXED_GAP * contact_size(model, contact);
}

/* Whether any row is more than an offset. */
static int rows_move(const friction_rows *rows, const double squared[MOTION_MAX]) {
  for (int r = 0; r < rows->count; ++r) {
    const friction_row *row = rows->row + r;
    double sum = row->normal * row->normal * squared[0];
    for (int i = 0; i < 2; ++i) {
      sum += row->weight[i] * row->weight[i] * squared[row->component[i]];
    }
    if (sum > ROW_ZERO * ROW_ZERO) {
      return 1;
    }
  }
  return 0;
}

static void assemble_contact(problem *p, const qd_model *model, const qd_step_options *o,
                             const kinematics *k, const collision *c, island *one, int index) {
  const qd_contact *contact = c->contact + index;
  contact_block *block = p->block + index;
  double squared[MOTION_MAX] = {0.0};
  int present[MOTION_MAX];
  contact_tiles(p, contact);
  if (p->list.count == 0) {
    return;
  }
  contact_motions(p, one, contact, squared);
  if (squared[0] <=
          fmax(MOTION_ZERO * MOTION_ZERO, NORMAL_ZERO * NORMAL_ZERO * (squared[1] + squared[2])) &&
      contact_never_parts(model, p->variable_of_dof, k, c, index)) {
    return;
  }
  for (int i = 0; i < MOTION_MAX; ++i) {
    present[i] = i == 0 || squared[i] > MOTION_ZERO * MOTION_ZERO;
  }
  one->length = fmin(one->length, contact_size(model, contact));
  block->row = p->row_count;
  block->rows.row = p->friction_row + p->friction_row_count;
  friction_rows_fill(&block->rows, contact->friction, contact->dim, present, o->friction_model,
                     o->ray_count, p->rays);
  const int rows = block->rows.count;
  const double offset = contact_offset(p, model, o, contact, squared[0]);
  const double target = barrier_target(o, block->rows.log_count);
  if (!rows_move(&block->rows, squared)) {
    block->held_force = target > 0.0 ? rows * target / offset : 0.0;
    block->rows.count = 0;
    return;
  }
  write_rows(p, &one->G, &block->rows);
  for (int r = 0; r < rows; ++r) {
    p->g[block->row + r] = block->rows.row[r].normal * offset;
  }
  add_cone(p, one, block->rows.kind, rows, target);
  p->friction_row_count += rows;
  p->row_count += rows;
  one->row_count += rows;
}

/* ---------------------------------------------------------------- joint limits */

static void add_limit(problem *p, island *one, int dof, double sign, double gap) {
  const int column = column_of(p, one, dof), tile = column / 4;
  const tile_list list = {1, (int *)&tile};
  tile_rows_append(&one->G, &list)[column % 4] = sign;
  ++one->row_count;
  p->g[p->row_count] = gap;
  p->limit[p->limit_count].dof = dof;
  p->limit[p->limit_count].row = p->row_count++;
  p->limit[p->limit_count++].sign = sign;
  ++one->limit_count;
}

static void assemble_limits(problem *p, const qd_model *model, const qd_step_options *o,
                            const working_set *set, const double *q, island *one) {
  one->limit = p->limit_count;
  for (int i = 0; o->joint_limits && i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i], joint = model->dof_joint[dof];
    const double *range = model->joint_range + 2 * joint;
    if (model->dof_q[dof] < 0) {
      continue;
    }
    const double position = q[model->dof_q[dof]];
    if (isfinite(range[0]) && set->limit[2 * dof]) {
      add_limit(p, one, dof, 1.0, position - range[0]);
    }
    if (isfinite(range[1]) && set->limit[2 * dof + 1]) {
      add_limit(p, one, dof, -1.0, range[1] - position);
    }
  }
  if (one->limit_count > 0) {
    add_cone(p, one, QD_ORTHANT, one->limit_count, barrier_target(o, 1));
  }
}

/* ---------------------------------------------------------------- bilateral constraints */

/* DOFs on each side of a constraint. */
static const int *constraint_dofs(const qd_model *model, const constraint_state *s, int side,
                                  int *count) {
  if (s->rows == 1) {
    *count = 1;
    return s->dof + side;
  }
  return body_chain(model, s->body[side], count);
}

/* Columns of a constraint's rows, for the DOFs given that are free. */
static void write_constraint_columns(const problem *p, const island *one, double *rows,
                                     const constraint_state *s, const qd_model *model,
                                     const kinematics *k, const int *dofs, int count) {
  for (int i = 0; i < count; ++i) {
    double column[CONSTRAINT_ROWS_MAX];
    if (dofs[i] < 0 || p->variable_of_dof[dofs[i]] < 0) {
      continue;
    }
    constraint_column(column, s, model, k, dofs[i]);
    for (int r = 0; r < s->rows; ++r) {
      rows[4 * r * p->list.count + place_of(p, column_of(p, one, dofs[i]))] = column[r];
    }
  }
}

/* Of the last s->rows rows of C, keeps those that anything free moves. */
static void keep_equalities(problem *p, island *one, const constraint_state *s, int constraint) {
  const size_t width = 4 * (size_t)p->list.count;
  tile_rows *C = &one->C;
  int row = C->count - s->rows;
  const double *from = C->values + 4 * (size_t)C->start[row];
  for (int component = 0; component < s->rows; ++component, from += width) {
    double largest = 0.0;
    for (size_t i = 0; i < width; ++i) {
      largest = fmax(largest, fabs(from[i]));
    }
    if (largest > MOTION_ZERO) {
      memmove(C->values + 4 * (size_t)C->start[row++], from, width * sizeof(double));
      ++one->equality_count;
      p->c[p->equality_count] = s->violation[component];
      p->equality[p->equality_count].constraint = constraint;
      p->equality[p->equality_count++].component = component;
    }
  }
  C->count = row;
}

static void assemble_constraint(problem *p, const qd_model *model, const kinematics *k, island *one,
                                int index) {
  const constraint_state *s = p->constraint + index;
  int count;
  p->list.count = 0;
  for (int side = 0; side < 2; ++side) {
    const int *dofs = constraint_dofs(model, s, side, &count);
    list_tiles(p, one, dofs, count);
  }
  double *rows = open_rows(p, &one->C, s->rows);
  for (int side = 0; side < 2; ++side) {
    const int *dofs = constraint_dofs(model, s, side, &count);
    write_constraint_columns(p, one, rows, s, model, k, dofs, count);
  }
  keep_equalities(p, one, s, index);
}

/* ---------------------------------------------------------------- all of it */

static void assemble_rows(problem *p, const qd_model *model, const qd_step_options *options,
                          const kinematics *k, const collision *c, const working_set *set,
                          const double *q, island *one) {
  one->row = p->row_count;
  one->cone = p->cone_count;
  one->equality = p->equality_count;
  one->row_count = one->cone_count = one->limit_count = one->equality_count = 0;
  tile_rows_clear(&one->G);
  one->length = INFINITY;
  tile_rows_clear(&one->C);
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const int index = p->islands.contact_order[i];
    assemble_contact(p, model, options, k, c, one, index);
  }
  one->length = isinf(one->length) ? model->smallest_size : one->length;
  assemble_limits(p, model, options, set, q, one);
  for (int i = one->constraint; i < one->constraint + one->constraint_count; ++i) {
    assemble_constraint(p, model, k, one, p->islands.constraint_order[i]);
  }
}

void problem_assemble(problem *p, const qd_model *model, const qd_step_options *options,
                      const kinematics *k, inertia *I, const collision *c, const working_set *set,
                      const qd_step_input *input) {
  assemble_cost(p, model, options, k, I, input);
  p->row_count = p->cone_count = p->limit_count = p->equality_count = 0;
  p->friction_row_count = p->relaxed_count = 0;
  if (options->friction_model == QD_PYRAMID) {
    friction_rays(p->rays, options->ray_count);
  }
  find_columns(&p->columns, p, model, k);
  for (int i = 0; i < c->count; ++i) {
    p->block[i].row = p->block[i].rows.count = 0;
    p->block[i].held_force = 0.0;
  }
  for (int i = 0; i < model->constraint_count; ++i) {
    constraint_compute(p->constraint + i, model, k, input->q, i);
  }
  for (int i = 0; i < p->islands.count; ++i) {
    assemble_rows(p, model, options, k, c, set, input->q, p->islands.island + i);
  }
}

void problem_program(const problem *p, const island *one, island_program *out) {
  qd_cone_program *program = &out->program.program;
  memset(out, 0, sizeof *out);
  program->variable_count = one->variable_count;
  program->row_count = one->row_count;
  program->cone_count = one->cone_count;
  program->b = p->b + one->variable;
  program->g = p->g + one->row;
  program->cone_kind = p->cone_kind + one->cone;
  program->cone_dim = p->cone_dim + one->cone;
  program->target_mu = p->target_mu + one->cone;
  program->equality_count = one->equality_count;
  program->c = p->c + one->equality;
  out->Q = tile_rows_view(&one->Q);
  out->G = tile_rows_view(&one->G);
  out->C = tile_rows_view(&one->C);
  out->program.Q = &out->Q;
  out->program.G = &out->G;
  out->program.C = &out->C;
  out->program.length = one->length;
}

int problem_contact_counts(const problem *p, int index, int exact_active_set) {
  const contact_block *block = p->block + index;
  int loaded = !exact_active_set && block->rows.count > 0;
  for (int r = 0; r < block->rows.count && !loaded; ++r) {
    loaded = p->dual[block->row + r] != 0.0;
  }
  return loaded || block->held_force > 0.0;
}

void problem_forces(const problem *p, const qd_model *model, collision *c, double *limit_force) {
  for (int i = 0; i < c->count; ++i) {
    const contact_block *block = p->block + i;
    double *force = c->contact[i].force;
    memset(force, 0, MOTION_MAX * sizeof(double));
    force[0] = block->held_force;
    for (int r = 0; r < block->rows.count; ++r) {
      friction_row_add_force(force, block->rows.row + r, p->dual[block->row + r]);
    }
  }
  memset(p->constraint_force, 0,
         (size_t)(model->constraint_count * QD_CONSTRAINT_FORCE) * sizeof(double));
  for (int i = 0; i < p->equality_count; ++i) {
    const equality_row *row = p->equality + i;
    p->constraint_force[row->constraint * QD_CONSTRAINT_FORCE + row->component] = p->dual_eq[i];
  }
  memset(limit_force, 0, (size_t)model->nv * sizeof(double));
  for (int i = 0; i < p->limit_count; ++i) {
    limit_force[p->limit[i].dof] += p->limit[i].sign * p->dual[p->limit[i].row];
  }
}
