/* Exact programs of variables that do not know each other: the optimality conditions, and the
 * verdicts and answers of the general method. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "check.h"
#include "numerics/conic/conic.h"

#define VARIABLES_MAX 9
#define ROWS_MAX 20

static uint64_t seed = 1;

static double uniform(double low, double high) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * (double)(seed >> 11) / 9007199254740992.0;
}

static int below(int count) { return (int)uniform(0.0, (double)count); }

/* Rows of one entry each. */
typedef struct single_rows {
  int start[ROWS_MAX + 1], tiles[ROWS_MAX], column[ROWS_MAX], count;
  double entry[ROWS_MAX], values[4 * ROWS_MAX];
  sparse_rows view;
} single_rows;

static void rows_clear(single_rows *rows) {
  memset(rows, 0, sizeof *rows);
  rows->view.start = rows->start;
  rows->view.tiles = rows->tiles;
  rows->view.values = rows->values;
}

static void rows_add(single_rows *rows, int column, double entry) {
  const int i = rows->count++;
  rows->start[i + 1] = i + 1;
  rows->tiles[i] = column / 4;
  rows->column[i] = column;
  rows->entry[i] = entry;
  rows->values[4 * i + column % 4] = entry;
}

typedef struct scene {
  single_rows Q, G;
  double b[VARIABLES_MAX], g[ROWS_MAX];
  int kind, dim;
  conic_program program;
} scene;

static void scene_open(scene *s, int variables) {
  memset(s, 0, sizeof *s);
  rows_clear(&s->Q);
  rows_clear(&s->G);
  for (int i = 0; i < variables; ++i) {
    rows_add(&s->Q, i, uniform(0.1, 100.0));
    s->b[i] = uniform(-10.0, 10.0);
  }
}

static void scene_add_row(scene *s, int column, double entry, double g) {
  s->g[s->G.count] = g;
  rows_add(&s->G, column, entry);
}

static void scene_close(scene *s) {
  qd_cone_program *p = &s->program.program;
  s->kind = QD_ORTHANT;
  s->dim = s->G.count;
  p->variable_count = s->Q.count;
  p->row_count = s->G.count;
  p->cone_count = s->G.count > 0;
  p->b = s->b;
  p->g = s->g;
  p->cone_kind = &s->kind;
  p->cone_dim = &s->dim;
  s->program.Q = &s->Q.view;
  s->program.G = &s->G.view;
}

typedef struct answer {
  double x[VARIABLES_MAX], slack[ROWS_MAX], dual[ROWS_MAX];
  qd_cone_info info;
} answer;

static qd_status solve(scene *s, qd_cone_workspace *workspace, int answer_only, answer *out) {
  double none = 0.0;
  s->program.answer_only = answer_only;
  const conic_answer into = {out->x, out->slack, out->dual, &none};
  return conic_solve(workspace, NULL, &s->program, &into, &out->info);
}

/* The conditions of optimality, in numbers of order one. */
static void check_optimal(const scene *s, const answer *a) {
  double gradient[VARIABLES_MAX];
  for (int i = 0; i < s->Q.count; ++i) {
    gradient[i] = s->Q.entry[i] * a->x[i] + s->b[i];
  }
  for (int row = 0; row < s->G.count; ++row) {
    const double slack = s->G.entry[row] * a->x[s->G.column[row]] + s->g[row];
    CHECK_NEAR(a->slack[row], slack, 1e-14);
    CHECK(a->slack[row] >= 0.0);
    CHECK(a->dual[row] >= 0.0);
    CHECK(a->slack[row] * a->dual[row] == 0.0);
    gradient[s->G.column[row]] -= s->G.entry[row] * a->dual[row];
  }
  for (int i = 0; i < s->Q.count; ++i) {
    CHECK_NEAR(gradient[i], 0.0, 1e-13);
  }
}

static void check_same(const scene *s, const answer *a, const answer *b) {
  for (int i = 0; i < s->Q.count; ++i) {
    CHECK_NEAR(a->x[i], b->x[i], 1e-11);
  }
  for (int row = 0; row < s->G.count; ++row) {
    CHECK_NEAR(a->slack[row], b->slack[row], 1e-11);
    CHECK_NEAR(a->dual[row], b->dual[row], 1e-9);
  }
  CHECK_NEAR(a->info.objective, b->info.objective, 1e-10);
}

static void test_random_programs(qd_cone_workspace *workspace) {
  int alone = 0, infeasible = 0;
  for (int round = 0; round < 2000; ++round) {
    scene s;
    answer quick, general;
    scene_open(&s, 1 + below(VARIABLES_MAX));
    const int rows = below(ROWS_MAX + 1);
    for (int row = 0; row < rows; ++row) {
      const double sign = below(2) ? 1.0 : -1.0;
      scene_add_row(&s, below(s.Q.count), sign * uniform(0.5, 2.0), uniform(-0.1, 1.0));
    }
    scene_close(&s);
    const qd_status found = solve(&s, workspace, 1, &quick);
    const qd_status expected = solve(&s, workspace, 0, &general);
    CHECK(found == expected);
    infeasible += found == QD_INFEASIBLE;
    if (found == QD_OK && expected == QD_OK) {
      alone += quick.info.factorizations == 0 && quick.info.polished;
      check_optimal(&s, &quick);
      check_same(&s, &quick, &general);
    }
  }
  CHECK(alone > 1000);
  CHECK(infeasible > 10);
}

/* Rows of one bound, from one side and from both: multipliers are not unique. */
static void test_bounds_that_meet(qd_cone_workspace *workspace) {
  for (int round = 0; round < 8; ++round) {
    scene s;
    answer quick, general;
    scene_open(&s, 3);
    s.b[1] = round % 2 ? 5.0 : -5.0;
    scene_add_row(&s, 1, 1.0, 0.0);
    scene_add_row(&s, 1, round & 2 ? 1.0 : -1.0, 0.0);
    scene_add_row(&s, 1, round & 4 ? 2.0 : -1.0, round & 4 ? 0.0 : 0.75);
    scene_close(&s);
    CHECK(solve(&s, workspace, 1, &quick) == QD_OK);
    CHECK(solve(&s, workspace, 0, &general) == QD_OK);
    check_optimal(&s, &quick);
    CHECK_NEAR(quick.x[1], general.x[1], 1e-14);
  }
}

/* What is none of these programs, or no program, is the general method's. */
static void test_others(qd_cone_workspace *workspace) {
  const double bad[] = {NAN, INFINITY, -INFINITY};
  for (int k = 0; k < 3; ++k) {
    for (int where = 0; where < 4; ++where) {
      scene s;
      answer quick, general;
      scene_open(&s, 3);
      scene_add_row(&s, 1, 1.0, 0.5);
      double *at[] = {s.b + 1, s.g, s.G.values + 1, s.Q.values + 5};
      *at[where] = bad[k];
      scene_close(&s);
      const qd_status found = solve(&s, workspace, 1, &quick);
      CHECK(found == solve(&s, workspace, 0, &general));
      CHECK(found != QD_OK);
    }
  }
  scene s;
  answer quick, general;
  scene_open(&s, 3); /* no cost on one variable: held by its rows alone */
  s.Q.values[4 * 2 + 2] = 0.0;
  s.b[2] = 1.0;
  scene_add_row(&s, 2, 1.0, 0.5);
  scene_close(&s);
  CHECK(solve(&s, workspace, 1, &quick) == QD_OK);
  CHECK(solve(&s, workspace, 0, &general) == QD_OK);
  check_same(&s, &quick, &general);
  CHECK_NEAR(quick.x[2], -0.5, 1e-9);
  scene_open(&s, 3); /* two variables in one row: x0 + x1 = 1 where both would be smaller */
  scene_add_row(&s, 0, 1.0, -1.0);
  s.G.values[1] = 1.0;
  s.Q.values[0] = s.Q.values[4 + 1] = 2.0;
  s.b[0] = s.b[1] = 0.0;
  scene_close(&s);
  CHECK(solve(&s, workspace, 1, &quick) == QD_OK);
  CHECK_NEAR(quick.x[0], 0.5, 1e-12);
  CHECK_NEAR(quick.x[1], 0.5, 1e-12);
  CHECK_NEAR(quick.dual[0], 1.0, 1e-12);
}

int main(void) {
  const conic_size size = conic_size_dense(VARIABLES_MAX, ROWS_MAX, 0);
  void *memory = block_allocate(conic_workspace_size(&size));
  if (memory != NULL) {
    qd_cone_workspace *workspace = conic_workspace_place(memory, &size);
    test_random_programs(workspace);
    test_bounds_that_meet(workspace);
    test_others(workspace);
  }
  block_free(memory);
  return check_report();
}
