#include "numerics/coulomb/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/lanes.h"
#include "base/rounding.h"

/* Largest power of two that W and q are divided by, so that its inverse is finite. */
#define MOST_POWER 1000

static int sizes_make_sense(const qd_coulomb_problem *problem) {
  if (problem->block_count < 1) {
    return 0;
  }
  for (int i = 0; i < problem->block_count; ++i) {
    const int dim = problem->block_dim[i], kind = problem->block_kind[i];
    if (dim < 1 || dim > QD_COULOMB_DIM || kind < QD_BLOCK_CONTACT || kind > QD_BLOCK_FREE) {
      return 0;
    }
  }
  return 1;
}

/* ------------------------------------------------------------ contacts and rows */

static int is_kept(const qd_coulomb_problem *problem, int block, int row, int k) {
  return k == 0 || problem->block_kind[block] == QD_BLOCK_FREE ||
         problem->weight[row + k] > NEGLIGIBLE;
}

/* Appends a cone with the tail rows first .. first + tails - 1 of a contact. */
static void add_cone(qd_coulomb_workspace *work, int contact, int first, int tails) {
  coulomb_cone *cone = work->cone + work->cone_count++;
  cone->contact = contact;
  cone->tail = first;
  cone->tails = tails;
  ++work->contact[contact].cones;
}

/* Makes the cones of a contact; rows of tangents that are kept come first. */
static void find_cones(qd_coulomb_workspace *work, int i, int kind, int tangents) {
  coulomb_contact *contact = work->contact + i;
  contact->cone = work->cone_count;
  contact->cones = 0;
  if (kind == QD_BLOCK_FREE) {
    return;
  }
  const int tails = contact->dim - 1;
  if (kind == QD_BLOCK_SPLIT && tangents > 0 && tangents < tails) {
    add_cone(work, i, contact->at + 1, tangents);
    add_cone(work, i, contact->at + 1 + tangents, tails - tangents);
  } else {
    add_cone(work, i, contact->at + 1, tails);
  }
}

/* Assigns positions to rows, contacts and cones. */
static void place_rows(qd_coulomb_workspace *work, const qd_coulomb_problem *problem) {
  int tile = 0, row = 0;
  work->contact_count = problem->block_count;
  work->cone_count = 0;
  for (int i = 0; i < problem->block_count; ++i) {
    const int kind = problem->block_kind[i], dim = problem->block_dim[i];
    coulomb_contact *contact = work->contact + i;
    int kept = 0, tangents = 0;
    contact->at = 4 * tile;
    contact->row = row;
    for (int k = 0; k < dim; ++k) {
      const int keep = is_kept(problem, i, row, k);
      work->place_of[row + k] = keep ? contact->at + kept++ : -1;
      tangents += keep && (k == 1 || k == 2);
    }
    contact->dim = kept;
    find_cones(work, i, kind, tangents);
    for (int k = 0; k < kept; k += 4) {
      work->contact_of[tile++] = i;
    }
    row += dim;
  }
  work->tile_count = tile;
  work->row_count = row;
}

/* ------------------------------------------------------------ W */

static void note_both(uint64_t *mask, size_t words, int i, int j) {
  note_entry(mask, words, i, j);
  note_entry(mask, words, j, i);
}

/* Bit mask of the tiles of W: symmetric, with all tiles of each contact's block. */
static void read_tiles(const qd_coulomb_workspace *work, const qd_coulomb_problem *problem,
                       uint64_t *mask) {
  const size_t words = bit_words((size_t)work->tile_count);
  memset(mask, 0, (size_t)work->tile_count * words * sizeof *mask);
  for (int t = 0; t < work->tile_count; ++t) {
    note_both(mask, words, t, t);
    if (t > 0 && work->contact_of[t] == work->contact_of[t - 1]) {
      note_both(mask, words, t, t - 1);
    }
  }
  for (int i = 0; i < work->row_count; ++i) {
    const int at = work->place_of[i];
    for (int e = problem->row_start[i]; at >= 0 && e < problem->row_start[i + 1]; ++e) {
      const int other = work->place_of[problem->column[e]];
      if (other >= 0 && problem->value[e] != 0.0) {
        note_both(mask, words, at / 4, other / 4);
      }
    }
  }
}

static double *tile_of(const block_matrix *W, int row, int column) {
  return W->value +
         16 * (size_t)ascending_find(W->column, W->row_start[row], W->row_start[row + 1], column);
}

static double weight_of(const qd_coulomb_workspace *work, const qd_coulomb_problem *problem,
                        int row) {
  const coulomb_contact *contact = work->contact + work->contact_of[work->place_of[row] / 4];
  return contact->cones == 0 || work->place_of[row] == contact->at
             ? 1.0
             : smaller(problem->weight[row], work->most_weight);
}

/* Binary exponent of the largest number, 0 if all are zero. */
static int power_of(const double *a, int count) {
  int power = 0;
  frexp(max_norm(a, count), &power);
  return power < -MOST_POWER ? -MOST_POWER : power > MOST_POWER ? MOST_POWER : power;
}

/* Sets the unit of speed to the largest |q| in the caller's units. */
static void find_speed_unit(qd_coulomb_workspace *work) {
  double speed = 0.0;
  for (int i = 0; i < work->row_count; ++i) {
    const int at = work->place_of[i];
    speed = at < 0 ? speed : larger(fabs(work->q[at]) / work->weight[at], speed);
  }
  work->speed_unit = speed > 0.0 ? speed : 1.0;
}

static void fill_tiles(qd_coulomb_workspace *work, const qd_coulomb_problem *problem) {
  work->matrix_power = power_of(problem->value, problem->row_start[work->row_count]);
  work->speed_power = power_of(problem->q, work->row_count);
  const double per = ldexp(1.0, -work->matrix_power), per_speed = ldexp(1.0, -work->speed_power);
  memset(work->q, 0, 4 * (size_t)work->tile_count * sizeof(double));
  for (int i = 0; i < work->row_count; ++i) {
    const int at = work->place_of[i];
    if (at < 0) {
      continue;
    }
    work->weight[at] = weight_of(work, problem, i);
    work->q[at] = work->weight[at] * (per_speed * problem->q[i]);
  }
  for (int i = 0; i < work->row_count; ++i) {
    const int at = work->place_of[i];
    for (int e = problem->row_start[i]; at >= 0 && e < problem->row_start[i + 1]; ++e) {
      const int other = work->place_of[problem->column[e]];
      if (other < 0 || problem->value[e] == 0.0) {
        continue;
      }
      double *tile = tile_of(&work->W, at / 4, other / 4);
      tile[4 * (other % 4) + at % 4] +=
          work->weight[at] * work->weight[other] * (per * problem->value[e]);
    }
  }
  find_speed_unit(work);
}

static int row_at(const qd_coulomb_workspace *work, int place) {
  for (int i = 0; i < work->row_count; ++i) {
    if (work->place_of[i] == place) {
      return i;
    }
  }
  return -1;
}

/* 1 if W is symmetric up to rounding, which is removed. */
static int make_symmetric(qd_coulomb_workspace *work, int *row, int *other) {
  const double largest = max_norm(work->W.value, 16 * work->W.row_start[work->tile_count]);
  double worst = CALLERS_ROUNDING * largest;
  *row = *other = -1;
  for (int i = 0; i < work->tile_count; ++i) {
    for (int e = work->W.row_start[i]; e < work->W.row_start[i + 1]; ++e) {
      const int j = work->W.column[e];
      double *own = work->W.value + 16 * (size_t)e, *mirror = tile_of(&work->W, j, i);
      for (int k = 0; k < 16 && j >= i; ++k) {
        double *there = mirror + 4 * (k % 4) + k / 4;
        if (fabs(own[k] - *there) > worst) {
          worst = fabs(own[k] - *there);
          *row = row_at(work, 4 * i + k % 4);
          *other = row_at(work, 4 * j + k / 4);
        }
        own[k] = *there = 0.5 * (own[k] + *there);
      }
    }
  }
  return *row < 0;
}

/* ------------------------------------------------------------ load */

int coulomb_measure(const qd_coulomb_problem *problem, coulomb_size *size) {
  if (!sizes_make_sense(problem)) {
    return 0;
  }
  const size_t blocks = (size_t)problem->block_count;
  int rows = 0;
  for (size_t i = 0; i < blocks; ++i) {
    rows += problem->block_dim[i];
  }
  qd_coulomb_workspace work = {.contact = malloc(blocks * sizeof *work.contact),
                               .cone = malloc(2 * blocks * sizeof *work.cone),
                               .contact_of = malloc(2 * blocks * sizeof(int)),
                               .place_of = malloc((size_t)rows * sizeof(int))};
  uint64_t *mask = NULL;
  if (work.contact && work.cone && work.contact_of && work.place_of) {
    place_rows(&work, problem);
    const size_t tiles = (size_t)work.tile_count;
    const size_t words = bit_words((size_t)work.tile_count);
    if ((mask = malloc(tiles * words * sizeof *mask))) {
      read_tiles(&work, problem, mask);
      *size = (coulomb_size){
          .contacts = (int)blocks, .cones = work.cone_count, .tiles = (int)tiles, .rows = rows};
      for (size_t k = 0; k < tiles * words; ++k) {
        size->entries += bit_count(mask[k]);
      }
    }
  }
  free(work.contact);
  free(work.cone);
  free(work.contact_of);
  free(work.place_of);
  const int measured = mask != NULL;
  free(mask);
  return measured;
}

/* Checks that numbers are finite and weights nonnegative. */
static qd_status check_numbers(const qd_coulomb_problem *problem, int rows) {
  if (!all_finite(problem->q, rows) || !all_finite(problem->value, problem->row_start[rows])) {
    return QD_NOT_FINITE;
  }
  int row = 0;
  for (int i = 0; i < problem->block_count; ++i) {
    for (int k = 1; k < problem->block_dim[i]; ++k) {
      const double weight = problem->weight[row + k];
      if (problem->block_kind[i] != QD_BLOCK_FREE && !(weight >= 0.0 && weight < HUGE_VAL)) {
        return QD_BAD_ARGUMENT;
      }
    }
    row += problem->block_dim[i];
  }
  return QD_OK;
}

static int largest_contact(const qd_coulomb_workspace *work) {
  int most = 0;
  for (int i = 0; i < work->contact_count; ++i) {
    most = work->contact[i].dim > most ? work->contact[i].dim : most;
  }
  return most;
}

qd_status coulomb_load(qd_coulomb_workspace *work, const qd_coulomb_problem *problem, int *row,
                       int *other) {
  *row = *other = -1;
  if (!sizes_make_sense(problem) || problem->block_count > work->capacity.contacts) {
    return QD_BAD_ARGUMENT;
  }
  int rows = 0;
  for (int i = 0; i < problem->block_count; ++i) {
    rows += problem->block_dim[i];
  }
  if (rows > work->capacity.rows) {
    return QD_BAD_ARGUMENT;
  }
  const qd_status numbers = check_numbers(problem, rows);
  if (numbers != QD_OK) {
    return numbers;
  }
  place_rows(work, problem);
  if (work->tile_count > work->capacity.tiles || work->cone_count > work->capacity.cones) {
    return QD_BAD_ARGUMENT;
  }
  read_tiles(work, problem, work->lu.mask);
  work->W.count = work->tile_count;
  const size_t entries = block_list(&work->W, work->lu.mask, (size_t)work->capacity.entries);
  if (entries > (size_t)work->capacity.entries) {
    return QD_BAD_ARGUMENT;
  }
  memset(work->W.value, 0, 16 * entries * sizeof(double));
  fill_tiles(work, problem);
  if (!make_symmetric(work, row, other)) {
    return QD_BAD_ARGUMENT;
  }
  work->lu.three = largest_contact(work) <= 3;
  return block_lu_analyse(&work->lu, &work->W) ? QD_OK : QD_OUT_OF_CAPACITY;
}
