/* Structure of a program: tiles touched by each row, fill-reducing order of the tiles, and columns
 * of the factor. */
#ifndef QD_NUMERICS_CONIC_STRUCTURE_H
#define QD_NUMERICS_CONIC_STRUCTURE_H

#include "numerics/conic/workspace.h"

#define BLOCK_ROWS 8 /* largest number of orthant rows in a block */

/* Bit mask of the tiles in which a row has a nonzero (G for row < row_count, else C). */
static inline uint64_t *conic_row_mask(const qd_cone_workspace *workspace, int row) {
  return workspace->structure.row_mask + (size_t)row * (size_t)workspace->structure.mask_words;
}

/* 1 if the rows of a cone are independent of each other. */
static inline int conic_cone_is_linear(const qd_cone_workspace *workspace,
                                       const qd_cone_program *program, int k) {
  return program->cone_kind[k] != QD_LORENTZ || workspace->program.cone_rows[k] == 1;
}

/* Masks of rows and of Q. Checks finiteness and signs of all numbers except G and C, whose squares
 * conic_load sums anyway. */
qd_status conic_read_masks(qd_cone_workspace *workspace, const qd_cone_program *program);
/* Order of the tiles and columns of the factor; the first `ordered` columns are eliminated last, in
 * their given order. Returns 0 if the factor does not fit the workspace; `wanted` then holds the
 * number of its tiles. */
int conic_find_structure(qd_cone_workspace *workspace, const qd_cone_program *program, int ordered);
/* Positions of a mask's tiles, ascending; returns their number. */
int conic_list_tiles(const qd_cone_workspace *workspace, const uint64_t *mask, int *list);

/* Groups of the program's cones, and their lanes with g, targets and weights. */
void conic_make_groups(qd_cone_workspace *workspace, const qd_cone_program *program);
void conic_place_cones(qd_cone_workspace *workspace, const qd_cone_program *program);
/* Blocks of all rows in scaled columns; returns the sum of all squared numbers. */
double conic_make_blocks(qd_cone_workspace *workspace, const qd_cone_program *program);

/* 1 if a row has no nonzero. */
static inline int conic_row_is_empty(const qd_cone_workspace *workspace, int row) {
  const uint64_t *mask = conic_row_mask(workspace, row);
  int empty = 1;
  for (int w = 0; w < workspace->structure.mask_words; ++w) {
    empty &= mask[w] == 0;
  }
  return empty;
}

/* Stride between the rows of a block, which have the same tiles. */
static inline size_t conic_row_stride(const qd_cone_workspace *workspace, const row_block *block) {
  int at;
  const row_source *source = conic_source_of(workspace, block->first_row, &at);
  return source->start ? 4 * (size_t)(source->start[at + 1] - source->start[at]) : source->stride;
}

/* 1 if four numbers may be read at the start of each tile of the block's rows. In the last tile
 * this may read into the next rows; behind the last row of the matrix there are none. */
static inline int conic_reads_in_fours(const qd_cone_workspace *workspace, const row_block *block) {
  const int m = workspace->program.row_count, n = workspace->program.variable_count;
  int at;
  const row_source *source = conic_source_of(workspace, block->first_row, &at);
  const int end = block->first_row < m ? m : m + workspace->program.equality_count;
  const int behind = end - (block->first_row + block->row_count);
  return source->start || n % 4 == 0 || (size_t)behind * (size_t)n >= 4 - (size_t)(n % 4);
}

#endif
