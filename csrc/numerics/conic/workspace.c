/* Memory of the cone solver for programs up to a given size, in one block. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "base/lanes.h"
#include "numerics/conic/workspace.h"
#include "numerics/tiles/dense_tiles.h"

/* Capacity of near_rows in tiles; larger programs follow the path. */
#define NEAR_TILES 512
/* Stored pairs of tiles of a block, relative to the tiles of its rows: cones of three rows in eight
 * tiles need 1.5. Less: larger systems search for the tiles of some blocks in each assembly. */
#define NOTED_PAIRS 2

static void lay_out_operator(arena *a, cone_operator *operator, size_t slots, size_t lanes_count) {
  operator->u = arena_doubles(a, slots);
  ARENA_DOUBLES(a, lanes_count, &operator->diagonal, &operator->cross, &operator->tangent);
  operator->along = operator->diagonal;
}

/* Upper bound on slots: rows plus the padding of every group, at most three lanes per component in
 * linear rows, equalities and cones of each dimension; or every cone alone in its group. */
static size_t slot_bound(const conic_size *size) {
  const size_t rows = (size_t)size->rows + (size_t)size->equalities;
  const size_t dim = (size_t)size->largest_cone, padding = 6 + 3 * (dim * (dim + 1) / 2);
  const size_t ends = 2 * (size_t)(size->intervals + size->compliant) + 9; /* with padding */
  return (padding < 3 * rows ? rows + padding : 4 * rows) + 8 +
         (size->intervals + size->compliant > 0 ? ends : 0);
}

/* Lengths of vectors. */
typedef struct extents {
  size_t tiles, columns, rows, slots, lanes, words, dims;
} extents;

static void lay_out_system(tile_system *system, const conic_size *size, const extents *of,
                           arena *a) {
  system->blocks = arena_take(a, (of->rows + 1) * sizeof(row_block));
  system->block_tiles = arena_ints(a, size->row_tiles + of->tiles + 1);
  ARENA_INTS(a, of->tiles + 1, &system->column_start, &system->Q_start);
  ARENA_INTS(a, size->fill, &system->column_tiles, &system->Q_tiles);
  const size_t few = of->tiles < PLACE_TILES ? of->tiles : PLACE_TILES;
  system->place = arena_ints(a, few * few);
  system->product_room = of->tiles > PLACE_TILES ? NOTED_PAIRS * size->row_tiles : 0;
  system->product_tiles = arena_ints(a, system->product_room);
  ARENA_DOUBLES(a, 4 * size->row_tiles + 4, &system->G, &system->S);
  system->dense_room = dense_tiles_scratch(of->columns, of->rows, size->fill);
  system->dense = system->dense_room > 0 ? arena_doubles(a, system->dense_room) : NULL;
  ARENA_DOUBLES(a, 16 * size->fill, &system->Q, &system->H);
  system->inverse = arena_doubles(a, 32 * of->tiles);
}

static void lay_out_cones(qd_cone_workspace *w, const extents *of, arena *a) {
  cone_product *product = &w->product;
  product->groups = arena_take(a, (of->dims + 4) * sizeof(cone_group));
  lay_out_operator(a, &product->scaling, of->slots, of->lanes);
  lay_out_operator(a, &product->inverse, 0, of->lanes);
  lay_out_operator(a, &w->active.rows, of->slots, of->lanes);
  lay_out_operator(a, &w->active.stiffness, 0, of->lanes);
  lay_out_operator(a, &w->active.hard, 0, of->lanes);
  product->inverse.u = product->scaling.u;
  w->active.stiffness.u = w->active.hard.u = w->active.rows.u;
  w->active.state = arena_ints(a, of->lanes);
}

/* Vectors over columns, rows and cones. */
static void lay_out_vectors(qd_cone_workspace *w, const extents *of, arena *a) {
  ARENA_DOUBLES(a, of->columns, &w->program.b, &w->iterate.x, &w->work.Qx, &w->work.residual_x,
                &w->work.dx, &w->work.x, &w->polished.x, &w->newton.x, &w->program.column_scale);
  ARENA_DOUBLES(a, of->slots, &w->program.g, &w->iterate.slack, &w->iterate.dual,
                &w->work.residual_row, &w->work.aim, &w->work.rhs, &w->work.dslack, &w->work.ddual,
                &w->work.dslack_aim, &w->work.ddual_aim, &w->work.row, &w->work.row2,
                &w->best.slack, &w->best.dual, &w->polished.dual, &w->polished.slack,
                &w->newton.dual, &w->newton.slack, &w->path.ray, &w->product.point);
  ARENA_DOUBLES(a, of->lanes, &w->product.weight, &w->product.target, &w->product.scratch[0],
                &w->product.scratch[1], &w->product.scratch[2], &w->product.scratch[3],
                &w->product.scratch[4], &w->product.scratch[5], &w->product.point_norm,
                &w->program.lane_scale, &w->program.compliance, &w->polish.split,
                &w->polish.per_split);
  w->best.x = w->polished.x;
  w->program.column_of = arena_ints(a, of->columns);
  ARENA_INTS(a, of->rows + 1, &w->program.slot_of, &w->program.cone_rows);
  w->program.row_scale = arena_doubles(a, of->rows + 1);
}

static void lay_out_cuts(cuts_work *cuts, const conic_size *size, const extents *of, arena *a) {
  const size_t tiles = size->row_tiles < NEAR_TILES ? size->row_tiles : NEAR_TILES;
  const size_t rows = of->rows < NEAR_TILES ? of->rows : NEAR_TILES;
  active_set_lay_out(&cuts->set, of->columns, a);
  near_rows_lay_out(&cuts->near_rows, rows, tiles, a);
  near_rows_lay_out(&cuts->near_cones, rows, tiles, a);
  ARENA_INTS(a, of->rows + 1, &cuts->is_near, &cuts->tail);
}

static void lay_out_sensitivity(sensitivity_work *s, const extents *of, arena *a) {
  ARENA_INTS(a, of->rows + 1, &s->stiff_blocks, &s->stiff_slots);
  s->stiff_cones = arena_take(a, (of->rows + 1) * sizeof(stiff_cone));
  ARENA_DOUBLES(a, 4 * of->columns, &s->block4, &s->x4, &s->rhs4);
  ARENA_DOUBLES(a, 4 * of->slots, &s->row4, &s->work_row4, &s->moved4, &s->dual4);
}

/* Memory that stages share. */
static void lay_out_stages(qd_cone_workspace *w, const extents *of, arena *a) {
  const size_t mark = arena_mark(a);
  size_t farthest = mark;
  lay_out_cuts(&w->cuts, &w->capacity, of, a);
  arena_release(a, mark, &farthest);
  w->multipliers.penalty = arena_doubles(a, of->lanes);
  arena_release(a, mark, &farthest);
  ARENA_DOUBLES(a, of->columns, &w->certificate.unit, &w->certificate.curvature, &w->certificate.x,
                &w->certificate.left, &w->certificate.terms, &w->certificate.allowed);
  ARENA_DOUBLES(a, of->rows, &w->certificate.slack, &w->certificate.size, &w->certificate.norm,
                &w->certificate.far);
  arena_release(a, mark, &farthest);
  lay_out_sensitivity(&w->sensitivity, of, a);
  arena_release(a, mark, &farthest);
  w->stages.begin = a->base ? a->base + mark : NULL;
  w->stages.bytes = farthest - mark;
  a->offset = farthest;
}

static void lay_out_structure(conic_structure *s, const conic_size *size, const extents *of,
                              arena *a) {
  const size_t lines = of->rows > of->columns ? of->rows : of->columns;
  s->block_from = arena_ints(a, size->row_tiles + of->tiles + 1);
  s->row_mask = arena_take(a, lines * of->words * sizeof(uint64_t));
  s->tile_mask = arena_take(a, of->tiles * of->words * sizeof(uint64_t));
  s->Q_mask = arena_take(a, of->tiles * of->words * sizeof(uint64_t));
  s->scratch_mask = arena_take(a, 3 * of->words * sizeof(uint64_t));
  ARENA_INTS(a, of->tiles, &s->tile_degree, &s->tile_position, &s->tile_original);
  ARENA_INTS(a, of->dims, &s->dim_count, &s->dim_group);
}

/* Memory for rewritten dense programs; a solve uses one of the two forms. */
static void lay_out_dense(qd_cone_workspace *w, const conic_size *size, arena *a) {
  const size_t variables = (size_t)size->variables, rows = (size_t)size->rows;
  const size_t mark = arena_mark(a);
  size_t farthest = mark;
  if (size->equalities > 0) {
    equality_space_lay_out(&w->space, variables, rows, (size_t)size->equalities, a);
  }
  arena_release(a, mark, &farthest);
  if (size->variables > FEW_COLUMNS) {
    aligned_columns_lay_out(&w->aligned, variables, rows, (size_t)size->equalities, a);
  }
  arena_release(a, mark, &farthest);
  a->offset = farthest;
}

/* Lays out the workspace for programs of this size; w->capacity is the size of their rigid ones. */
static void lay_out(qd_cone_workspace *w, const conic_size *asked, arena *a) {
  const conic_size *size = &w->capacity;
  const size_t tiles = ((size_t)size->variables + 3) / 4, slots = slot_bound(size);
  const extents of = {.tiles = tiles,
                      .columns = 4 * tiles,
                      .rows = (size_t)size->rows + (size_t)size->equalities,
                      .slots = slots,
                      .lanes = slots,
                      .words = (tiles + 63) / 64,
                      .dims = (size_t)size->largest_cone + 2};
  lay_out_system(&w->system, size, &of, a);
  lay_out_cones(w, &of, a);
  lay_out_vectors(w, &of, a);
  lay_out_structure(&w->structure, size, &of, a);
  lay_out_stages(w, &of, a);
  if (asked->compliant + asked->intervals > 0) {
    compliance_lay_out(&w->soft, asked, a);
    ends_lay_out(&w->ends, slots, of.columns, a);
    envelope_lay_out(&w->envelope, slots, a);
  }
  if (size->is_dense) {
    lay_out_dense(w, size, a);
  }
}

conic_size conic_size_dense(int variables, int rows, int equalities) {
  const conic_size size = {.variables = variables > 1 ? variables : 1,
                           .rows = rows > 0 ? rows : 0,
                           .equalities = equalities > 0 ? equalities : 0,
                           .largest_cone = rows > 0 ? rows : 0};
  const size_t tiles = ((size_t)size.variables + 3) / 4;
  conic_size all = size;
  all.row_tiles = ((size_t)size.rows + (size_t)size.equalities) * tiles;
  all.fill = tiles * (tiles + 1) / 2;
  return all;
}

size_t conic_workspace_size(const conic_size *size) {
  qd_cone_workspace count = {.capacity = compliance_rigid_size(size)};
  arena counting = {NULL, 0};
  arena_take(&counting, sizeof count);
  lay_out(&count, size, &counting);
  return counting.offset;
}

qd_cone_workspace *conic_workspace_place(void *memory, const conic_size *size) {
  arena laying = {memory, 0};
  qd_cone_workspace *w = arena_take(&laying, sizeof *w);
#ifndef NDEBUG
  /* fills doubles with NaN, so that reads of uninitialised memory show */
  memset(memory, 0xff, conic_workspace_size(size));
#endif
  memset(w, 0, sizeof *w);
  w->capacity = compliance_rigid_size(size);
  lay_out(w, size, &laying);
  w->bytes = laying.offset;
  if (w->system.dense) {
    dense_tiles_use_one_thread();
  }
  return w;
}

int conic_workspace_serves(const qd_cone_workspace *workspace, const conic_size *size) {
  const conic_size *own = &workspace->capacity, *soft = &workspace->soft.room;
  const conic_size rigid = compliance_rigid_size(size);
  const int gives_way = size->compliant + size->intervals == 0 ||
                        (size->compliant <= soft->compliant && size->intervals <= soft->intervals &&
                         size->variables <= soft->variables && size->rows <= soft->rows &&
                         size->equalities <= soft->equalities);
  return gives_way && rigid.variables <= own->variables && rigid.rows <= own->rows &&
         rigid.equalities <= own->equalities && rigid.largest_cone <= own->largest_cone &&
         rigid.row_tiles <= own->row_tiles && rigid.fill <= own->fill;
}

size_t conic_workspace_fill(const qd_cone_workspace *workspace) { return workspace->wanted.fill; }

static qd_cone_workspace *create(const conic_size *size) {
  void *block = block_allocate(conic_workspace_size(size));
  return block ? conic_workspace_place(block, size) : NULL;
}

qd_cone_workspace *qd_cone_workspace_create(int variable_capacity, int row_capacity,
                                            int equality_capacity) {
  const int columns = variable_capacity > FEW_COLUMNS ? aligned_columns_capacity(variable_capacity)
                                                      : variable_capacity;
  conic_size size = conic_size_dense(columns, row_capacity, equality_capacity);
  size.is_dense = 1;
  return create(&size);
}

static int count_positive(const double *values, int count) {
  int found = 0;
  for (int i = 0; values && i < count; ++i) {
    found += values[i] > 0.0;
  }
  return found;
}

qd_cone_workspace *qd_cone_workspace_create_for(const qd_cone_program *program) {
  const int m = program->row_count, p = program->equality_count;
  if (!compliance_is_wanted(program)) {
    return qd_cone_workspace_create(program->variable_count, m, p);
  }
  conic_size size = conic_size_dense(program->variable_count, m, p);
  size.is_dense = 1;
  size.compliant =
      count_positive(program->compliance, m) + count_positive(program->compliance_eq, p);
  for (int k = 0; k < program->cone_count; ++k) {
    size.intervals += program->cone_kind[k] == QD_INTERVAL ? program->cone_dim[k] : 0;
  }
  if (size.compliant + size.intervals == 0) {
    size.compliant = 1; /* 1: marks the workspace as one for compliant programs */
  }
  return create(&size);
}

void qd_cone_workspace_destroy(qd_cone_workspace *workspace) { block_free(workspace); }

size_t qd_cone_workspace_bytes(const qd_cone_workspace *workspace) {
  return workspace ? workspace->bytes : 0;
}
