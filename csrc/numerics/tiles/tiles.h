/* Symmetric systems H = Q + S'S in 4 x 4 tiles.
 *
 * Columns are grouped in tiles of four, permuted to reduce fill-in. The rows of G (and S = scaling
 * * G) are stored in blocks of rows that touch the same tiles: one Lorentz cone, or a run of
 * orthant rows. H has the tiles of the factor's lower triangle. A tile (i, j), i >= j, is stored
 * column by column: its vector b holds the four entries H[4i..4i+3][4j+b], so that every kernel
 * multiplies a vector of rows by one broadcast number. Vectors over columns have 4 * tile_count
 * numbers (padded columns: zero in G, one in Q). */
#ifndef QD_NUMERICS_TILES_H
#define QD_NUMERICS_TILES_H

#include <stddef.h>
#include <stdint.h>

typedef struct row_block {
  int row_count;
  int first_row; /* of the caller's program */
  int tile_count;
  int tile_start; /* into tiles.block_tiles, ascending */
  size_t values;  /* offset into G and S: (tile_count, row_count, 4) */
  int slot;       /* row i stands at slot + i * slot_step of vectors over rows */
  int slot_step;  /* 1: rows of an orthant or equalities; else one Lorentz cone */
  int cone;       /* first index into vectors over cones */
  int products;   /* into product_tiles, -1: none are stored */
} row_block;

/* Largest number of tiles for which a table of tile positions is kept; its size grows with the
 * square. In larger systems each block of rows stores its own positions. */
#define PLACE_TILES 128

typedef struct tile_system {
  int tile_count;
  int block_count;
  row_block *blocks;
  int *block_tiles;
  double *G, *S;        /* values of the blocks */
  double *Q;            /* its tiles of the lower triangle, column by column */
  double *H;            /* the same; after tiles_factor its Cholesky factor */
  double weakest_pivot; /* of the last factorisation: smallest pivot / diagonal entry before */
  double *inverse; /* (tile_count, 2, 4, 4): inverse of each diagonal factor, by rows, by columns */
  double *dense;   /* scratch of dense_tiles.h, NULL where the system is too small for it */
  size_t dense_room;                /* numbers in `dense` */
  int dense_products, dense_factor; /* 1: these use dense_tiles.h */
  int Q_is_diagonal;                /* Q is the identity */
  int *column_start;                /* (tile_count + 1) into column_tiles */
  int *column_tiles;                /* tiles i > j of the factor's column j, ascending */
  int *Q_start;                     /* (tile_count + 1) into Q_tiles: the same for Q */
  int *Q_tiles;
  int *place; /* (tile_count, tile_count) position of each tile of H, undefined for tiles that it
                 lacks; in systems of at most PLACE_TILES */
  int *product_tiles; /* positions of the pairs of tiles of a block, the lower triangle by rows */
  size_t product_room;
} tile_system;

/* Symmetric operators on rows, one per cone: [diagonal, cross; cross, along] on the first row and
 * u, and `tangent` on the orthogonal complement of both. Operators of the Jordan algebra have along
 * = diagonal, with eigenvectors (1, u)/sqrt 2 and (1, -u)/sqrt 2 for the values diagonal + cross
 * and diagonal - cross. A cone of one row has `diagonal` only. */
typedef struct cone_operator {
  double *u;        /* over rows; first row of a cone unused */
  double *diagonal; /* over cones, likewise cross, tangent and along */
  double *cross;
  double *tangent;
  double *along; /* may alias `diagonal` */
} cone_operator;

/* Offset of entry k of column_tiles (or Q_tiles), in column j; k = start[j] - 1 gives the diagonal.
 * A matrix stores its columns one after the other, each with its diagonal tile first. */
static inline size_t tile_offset(int j, int k) { return 16 * ((size_t)k + (size_t)j + 1); }

static inline size_t tile_offset_diagonal(const int *start, int j) {
  return tile_offset(j, start[j] - 1);
}

/* Position of tile (i, j) of H, i >= j, which the factor must have, from the table. */
static inline size_t tile_place(const tile_system *system, int i, int j) {
  return (size_t)system->place[(size_t)i * (size_t)system->tile_count + (size_t)j];
}

/* The same position by bisection in the list of column j. */
static inline size_t tile_find(const tile_system *system, int i, int j) {
  int low = system->column_start[j] - 1, high = system->column_start[j + 1] - 1;
  while (i > j && low < high) { /* the diagonal's is the one before the list */
    const int middle = low + (high - low + 1) / 2;
    if (system->column_tiles[middle] <= i) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return (size_t)(low + j + 1);
}

static inline double *tile_at(const tile_system *system, int i, int j) {
  return system->H + 16 * (system->tile_count <= PLACE_TILES ? tile_place(system, i, j)
                                                             : tile_find(system, i, j));
}

/* Stores where the products of each block's tiles go, if there is room. */
void tiles_note_products(tile_system *system);

/* S = operator G, H = Q + shift I + S'S */
void tiles_assemble(tile_system *system, const cone_operator *scaling, double shift);
/* H = L L' in place. Drops pivots below a rounding fraction of their column; returns their
 * number. */
int tiles_factor(tile_system *system);
/* x = H^-1 x */
void tiles_solve(const tile_system *system, double *x);
/* y = A x, A: G or S */
void tiles_multiply(const tile_system *system, const double *A, const double *x, double *y);
/* x += A'y */
void tiles_add_transposed(const tile_system *system, const double *A, const double *y, double *x);
/* y = Q x */
void tiles_multiply_Q(const tile_system *system, const double *x, double *y);

/* The same for four right-hand sides at once: vectors hold four numbers per entry. Products with G
 * or S use the given blocks only. */
void tiles_solve4(const tile_system *system, double *x);
void tiles_multiply4(const tile_system *system, const int *blocks, int block_count, const double *A,
                     const double *x, double *y);
void tiles_add_transposed4(const tile_system *system, const int *blocks, int block_count,
                           const double *A, const double *y, double *x);
void tiles_multiply_Q4(const tile_system *system, const double *x, double *y);

#endif
