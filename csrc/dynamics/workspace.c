#include "dynamics/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/block.h"
#include "numerics/conic/conic.h"

/* Rows per contact for which a small model's workspace has initial room: cones, and pyramids of up
 * to eight rays. */
#define ROWS_PER_CONTACT 8
/* Initial memory for programs. */
#define PROGRAM_BYTES_FIRST ((size_t)4 << 20)
#define CONTACT_CAPACITY_MAX (1 << 24)
#define FULL_TILES 64
#define PRESSURE_CAPACITY_FIRST 256 /* polygons */
#define FILL_FIRST 16

/* ---------------------------------------------------------------- fixed arrays */

static void lay_out_sensitivity(sensitivity *s, const qd_model *model, arena *a) {
  const size_t nv = (size_t)model->nv;
  ARENA_INTS(a, nv, &s->dofs, &s->place);
  s->actuators = arena_ints(a, (size_t)model->nu);
  s->column_screws = arena_take(a, (nv / 4 + 1) * sizeof *s->column_screws);
  s->unmoved = arena_take(a, (nv / 4 + 1) * sizeof *s->unmoved);
  s->unmoved_in_time = arena_take(a, (nv / 4 + 1) * sizeof *s->unmoved_in_time);
  motion_derivative_lay_out(&s->motion, model, a);
  ARENA_DOUBLES(a, nv + 4, &s->on_a, &s->on_b);
  s->tiles = arena_ints(a, nv / 4 + 1);
}

static void lay_out(qd_workspace *w, const qd_model *model, int contact_capacity, arena *a) {
  pressure_contact_lay_out(&w->problem.soft, model, w->soft_capacity, a);
  kinematics_lay_out(&w->kinematics, model, a);
  kinematics_lay_out(&w->next, model, a);
  inertia_lay_out(&w->inertia, model, a);
  collision_lay_out(&w->collision, model, contact_capacity, a);
  working_set_lay_out(&w->set, model, contact_capacity, a);
  warm_start_lay_out(&w->warm, contact_capacity, a);
  problem_lay_out(&w->problem, model, contact_capacity, a);
  bounces_lay_out(&w->bounces, model, a);
  integration_lay_out(&w->integration, model, a);
  step_point_lay_out(&w->point, model, a);
  step_point_lay_out(&w->after, model, a);
  lay_out_sensitivity(&w->sensitivity, model, a);
  differential_lay_out(&w->differential, model, contact_capacity, a);
  pressure_derivative_lay_out(&w->soft, model, w->soft_capacity, a);
}

/* ---------------------------------------------------------------- arrays of islands */

/* Room for a factor: for a full one if that is small, else as much as factors have needed so far.
 */
static size_t fill_room(const qd_workspace *w, int variables, int gives) {
  const size_t tiles = ((size_t)variables + 3) / 4, all = tiles * (tiles + 1) / 2;
  const size_t some = tiles * (w->fill_per_tile > FILL_FIRST ? w->fill_per_tile : FILL_FIRST);
  if (gives && tiles * w->fill_per_tile > all) { /* with compliant rows the factor is larger */
    return tiles * w->fill_per_tile;
  }
  return tiles <= FULL_TILES || all < some ? all : some;
}

static void size_include(conic_size *size, const conic_size *one) {
  size->variables = one->variables > size->variables ? one->variables : size->variables;
  size->rows = one->rows > size->rows ? one->rows : size->rows;
  size->equalities = one->equalities > size->equalities ? one->equalities : size->equalities;
  size->row_tiles = one->row_tiles > size->row_tiles ? one->row_tiles : size->row_tiles;
  size->largest_cone = one->largest_cone;
  size->compliant = one->compliant > size->compliant ? one->compliant : size->compliant;
  size->intervals = one->intervals > size->intervals ? one->intervals : size->intervals;
}

void workspace_note_fill(qd_workspace *w, const island *one) {
  const size_t tiles = ((size_t)one->variable_count + 3) / 4;
  w->fill_per_tile = 5 * conic_workspace_fill(one->cone_workspace) / (4 * tiles) + 1;
}

/* Room for columns by q, v and u, rounded up to tiles. moves: for the second-order step. */
static void lay_out_matrices(sensitivity *s, const conic_size *size, int moves, size_t q_columns,
                             size_t v_columns, size_t u_columns, arena *a) {
  const size_t wanted = q_columns + v_columns + u_columns, columns = (wanted + 3) / 4 * 4;
  s->D.values = arena_doubles(a, q_columns * q_columns);
  s->V.values = arena_doubles(a, moves ? q_columns * q_columns : 0);
  ARENA_DOUBLES(a, (size_t)size->variables * columns, &s->d_stationarity, &s->d_x);
  s->d_slack = arena_doubles(a, (size_t)size->rows * columns);
  s->d_equality = arena_doubles(a, (size_t)size->equalities * columns);
  const size_t loads = size->variables <= RESPONSE_LIMIT && q_columns > 0 && wanted > q_columns
                           ? ((size_t)size->variables + 3) / 4 * 4
                           : 0;
  s->response_limit = (int)loads;
  ARENA_DOUBLES(a, loads * loads, &s->unit, &s->response);
  s->slack_response = arena_doubles(a, (size_t)size->rows * loads);
  s->equality_response = arena_doubles(a, (size_t)size->equalities * loads);
}

/* One workspace for all islands. */
static void lay_out_one(qd_workspace *w, const conic_size *size, int serves, arena *a) {
  char *memory =
      arena_take(a, serves ? qd_cone_workspace_bytes(w->one) : conic_workspace_size(size));
  if (memory == NULL) {
    return;
  }
  if (!serves) {
    w->one = conic_workspace_place(memory, size);
  }
  for (int i = 0; i < w->problem.islands.count; ++i) {
    w->problem.islands.island[i].cone_workspace = w->one;
  }
}

static void lay_out_each(qd_workspace *w, arena *a) {
  for (int i = 0; i < w->problem.islands.count; ++i) {
    island *one = w->problem.islands.island + i;
    char *memory = arena_take(a, conic_workspace_size(&one->size));
    if (memory != NULL) {
      one->cone_workspace = conic_workspace_place(memory, &one->size);
      w->one = NULL;
    }
  }
}

/* The largest number of q columns of an island. */
static int widest_island(qd_workspace *w, const qd_model *model) {
  int widest = 0;
  for (int i = 0; i < w->problem.islands.count; ++i) {
    const int count = islands_dofs(&w->problem.islands, model, &w->collision, i,
                                   w->problem.dof_of_variable, w->sensitivity.dofs);
    widest = count > widest ? count : widest;
  }
  return widest;
}

qd_status workspace_place_islands(qd_workspace *w, const qd_model *model,
                                  const step_columns *kept) {
  const islands *s = &w->problem.islands;
  conic_size size;
  memset(&size, 0, sizeof size);
  for (int i = 0; i < s->count; ++i) {
    island *one = s->island + i;
    one->size.fill = fill_room(w, one->variable_count, one->size.compliant + one->size.intervals);
    size_include(&size, &s->island[i].size);
  }
  size.fill = fill_room(w, size.variables, size.compliant + size.intervals);
  const int widest = kept != NULL && kept->q > 0 ? widest_island(w, model) : 0;
  const size_t v_columns = kept != NULL && kept->v > 0 ? (size_t)widest : 0;
  const size_t u_columns = kept != NULL ? (size_t)kept->u : 0;
  const int each = kept != NULL && s->count > 1;
  const int serves = !each && w->one != NULL && conic_workspace_serves(w->one, &size);
  for (int pass = serves; pass < 2; ++pass) { /* nothing is written if the workspace is reused */
    arena a = {pass == 0 ? NULL : w->program_block, 0};
    if (each) {
      lay_out_each(w, &a);
    } else {
      lay_out_one(w, &size, serves, &a);
    }
    problem_lay_out_program(&w->problem, &a);
    lay_out_matrices(&w->sensitivity, &size, kept != NULL && kept->moves, (size_t)widest, v_columns,
                     u_columns, &a);
    w->program_needed = a.offset;
    if (a.offset > w->program_bytes) {
      return QD_OUT_OF_CAPACITY;
    }
  }
  return QD_OK;
}

/* ---------------------------------------------------------------- allocation */

/* All DOFs in one island with this number of contacts, every row with every column. */
static conic_size size_whole(const qd_model *model, int contacts) {
  const int forces = model->bounded_forces + model->tendon.actuator_start[model->tendon.count];
  conic_size size = conic_size_dense(model->nv,
                                     ROWS_PER_CONTACT * contacts + 2 * model->nv +
                                         TENDON_ROWS_MAX * model->tendon.count + forces,
                                     model->constraint.row_count);
  size.intervals = size.compliant = forces;
  return size;
}

/* Its memory, which is more than the largest step needs: G and C also by column. */
static size_t program_bytes_whole(const qd_model *model, const conic_size *size, int contacts) {
  qd_workspace counting;
  memset(&counting, 0, sizeof counting);
  island whole;
  memset(&whole, 0, sizeof whole);
  const size_t tiles = ((size_t)size->variables + 3) / 4;
  whole.size = *size;
  whole.Q_tiles = (size_t)size->variables * tiles;
  whole.G_tiles = (size_t)size->rows * tiles;
  whole.C_tiles = (size_t)size->equalities * tiles;
  whole.contact_count = contacts;
  counting.problem.islands.island = &whole;
  counting.problem.islands.count = 1;
  arena a = {NULL, 0};
  arena_take(&a, conic_workspace_size(size));
  problem_lay_out_program(&counting.problem, &a);
  lay_out_matrices(&counting.sensitivity, size, 1, (size_t)model->nv, (size_t)model->nv,
                   (size_t)model->nu, &a);
  return a.offset;
}

/* Fills an empty workspace; after a failure the caller releases it. */
static qd_status allocate(const qd_model *model, qd_workspace *w, int contact_capacity,
                          size_t program_bytes) {
  const int small = model->nv <= 4 * FULL_TILES;
  const conic_size size = size_whole(model, contact_capacity);
  const size_t whole = small ? program_bytes_whole(model, &size, contact_capacity) : SIZE_MAX;
  const size_t first = whole < PROGRAM_BYTES_FIRST ? whole : PROGRAM_BYTES_FIRST;
  arena counting = {NULL, 0};
  lay_out(w, model, contact_capacity, &counting);
  w->block_bytes = counting.offset + ARENA_ALIGNMENT;
  w->program_bytes = (program_bytes > first ? program_bytes : first) + ARENA_ALIGNMENT;
  w->program_bytes -= w->program_bytes % ARENA_ALIGNMENT;
  w->block = block_allocate(w->block_bytes);
  w->program_block = block_allocate(w->program_bytes);
  if (w->block == NULL || w->program_block == NULL) {
    return QD_OUT_OF_MEMORY;
  }
#ifndef NDEBUG
  memset(w->block, 0xff, w->block_bytes); /* NaN, so that reading before writing shows */
  memset(w->program_block, 0xff, w->program_bytes);
#endif
  arena a = {w->block, 0};
  lay_out(w, model, contact_capacity, &a);
  memset(w->sensitivity.place, 0, (size_t)model->nv * sizeof(int));
  if (whole <= w->program_bytes) {
    w->one = conic_workspace_place(w->program_block, &size);
  }
  return QD_OK;
}

static void release(qd_workspace *w) {
  block_free(w->block);
  block_free(w->program_block);
  memset(w, 0, sizeof *w);
}

qd_workspace *qd_workspace_create(const qd_model *model, int contact_capacity) {
  qd_workspace *w = calloc(1, sizeof *w);
  const int capacity = contact_capacity > 0 ? contact_capacity : model->contact_capacity;
  if (w != NULL) {
    w->soft_capacity = PRESSURE_CAPACITY_FIRST;
  }
  if (w != NULL && allocate(model, w, capacity, 0) != QD_OK) {
    qd_workspace_destroy(w);
    w = NULL;
  }
  return w;
}

void qd_workspace_destroy(qd_workspace *workspace) {
  if (workspace != NULL) {
    release(workspace);
    free(workspace);
  }
}

qd_status qd_workspace_reserve(const qd_model *model, qd_workspace *workspace,
                               int contact_capacity) {
  const size_t needed = workspace->program_needed;
  int capacity = workspace->collision.capacity;
  const int soft = model->pair.soft_count > 0 ? workspace->problem.soft.element_needed : 0;
  if (contact_capacity <= capacity && needed <= workspace->program_bytes &&
      soft <= workspace->soft_capacity) {
    return QD_OK;
  }
  while (capacity < contact_capacity && capacity < CONTACT_CAPACITY_MAX) { /* grow by doubling */
    capacity = 2 * capacity < CONTACT_CAPACITY_MAX ? 2 * capacity : CONTACT_CAPACITY_MAX;
  }
  if (capacity < contact_capacity) {
    return QD_OUT_OF_MEMORY;
  }
  qd_workspace larger;
  memset(&larger, 0, sizeof larger);
  larger.soft_capacity = soft <= workspace->soft_capacity ? workspace->soft_capacity : 2 * soft;
  const qd_status status =
      allocate(model, &larger, capacity,
               needed <= workspace->program_bytes ? workspace->program_bytes - ARENA_ALIGNMENT
                                                  : needed + needed / 4);
  if (status != QD_OK) {
    release(&larger); /* the old workspace stays usable */
    return status;
  }
  larger.fill_per_tile = workspace->fill_per_tile;
  release(workspace);
  *workspace = larger;
  return QD_OK;
}

size_t qd_workspace_bytes(const qd_workspace *workspace) {
  return sizeof *workspace + workspace->block_bytes + workspace->program_bytes;
}
