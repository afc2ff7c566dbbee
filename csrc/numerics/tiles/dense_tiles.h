/* Large systems without sparsity: assembly and factorisation by CBLAS and LAPACKE.
 *
 * Tiles win for small or sparse systems. Where the factor fills in, one dsyrk and one dpotrf are
 * faster in spite of the copies, over whole solves (AVX-512, one thread, rows = 2 columns): the
 * same at 160 columns, 1.1 times at 200 to 300, 1.2 to 1.4 times at 512. */
#ifndef QD_NUMERICS_DENSE_TILES_H
#define QD_NUMERICS_DENSE_TILES_H

#include "numerics/tiles/tiles.h"

#define DENSE_COLUMNS 192

/* Scratch numbers for systems of this many columns, rows and tiles of the factor; 0: such systems
 * never use this path. */
size_t dense_tiles_scratch(size_t columns, size_t rows, size_t fill);
/* Limits our copy of OpenBLAS to the calling thread: its threads cost more than they save at these
 * sizes, and batches use threads of their own. */
void dense_tiles_use_one_thread(void);
/* Decides from the structure whether a system's factorisation and products use this path. */
void dense_tiles_choose(tile_system *system);
/* H += S'S */
void dense_tiles_add_products(tile_system *system);
/* Cholesky factor of H: tiles below the diagonal hold L, diagonal tiles L_jj L_jj'. Returns 0 if H
 * is not safely positive definite; H is unchanged then. */
int dense_tiles_factor(tile_system *system);

#endif
