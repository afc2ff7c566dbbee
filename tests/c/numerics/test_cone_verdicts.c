/* Programs whose rows differ by many decades, found by the fuzzer: a verdict of the cone solver
 * holds in the caller's numbers, or is not given. */
#include "check.h"
#include "qdsim.h"

typedef struct answer {
  qd_status status;
  double x[2], slack[4], dual[4], dual_eq[3];
  qd_cone_info info;
} answer;

static answer solve(const qd_cone_program *program) {
  answer a = {.status = QD_OK};
  qd_cone_workspace *workspace = qd_cone_workspace_create(
      program->variable_count, program->row_count, program->equality_count);
  const qd_cone_options options = qd_cone_options_default();
  a.status = qd_cone_solve(workspace, &options, program, a.x, a.slack, a.dual, a.dual_eq, &a.info);
  qd_cone_workspace_destroy(workspace);
  CHECK(a.info.status == a.status);
  return a;
}

static const int ORTHANT[2] = {QD_ORTHANT, QD_ORTHANT}, ONE[2] = {1, 1};

/* 1e-15 x = 1e-3 can be had; 0 x = 1 cannot, whatever the first one's multiplier. */
static void test_an_empty_row_contradicts(void) {
  const double Q = 0.0, b = -1.0, C[2] = {1e-15, 0.0}, c[2] = {-1e-3, -1.0};
  const qd_cone_program p = {
      .variable_count = 1, .equality_count = 2, .Q = &Q, .b = &b, .C = C, .c = c};
  const answer a = solve(&p);
  CHECK(a.status == QD_INFEASIBLE);
  CHECK(a.dual_eq[0] == 0.0 && a.dual_eq[1] * c[1] < 0.0);
  const double positive[2] = {1e-15, 1.0}, g = -1.0, zero = 0.0;
  const qd_cone_program row = {.variable_count = 1,
                               .row_count = 1,
                               .cone_count = 1,
                               .Q = positive,
                               .b = &b,
                               .G = &zero,
                               .g = &g,
                               .cone_kind = ORTHANT,
                               .cone_dim = ONE};
  const answer r = solve(&row);
  CHECK(r.status == QD_INFEASIBLE && r.dual[0] * g < 0.0);
}

/* A row that nothing reaches, and equalities that say nothing: x = 0 without any force. */
static void test_a_far_row_carries_nothing(void) {
  const double Q = 0.0316, b = 0.0, G = 1e-15, g = 0.75, C[3] = {0}, c[3] = {0};
  const qd_cone_program p = {.variable_count = 1,
                             .row_count = 1,
                             .equality_count = 3,
                             .cone_count = 1,
                             .Q = &Q,
                             .b = &b,
                             .G = &G,
                             .g = &g,
                             .C = C,
                             .c = c,
                             .cone_kind = ORTHANT,
                             .cone_dim = ONE};
  const answer a = solve(&p);
  CHECK(a.status == QD_OK);
  CHECK(a.x[0] == 0.0 && a.dual[0] == 0.0);
}

/* x_0 >= 2 said by a row of any size, beside x_1 >= 1: x = (2, 1). */
static void test_small_rows_count(void) {
  const double Q[4] = {1, 0, 0, 1}, b[2] = {0, 0};
  for (double size = 1e-15; size < 1e16; size *= 1e3) {
    const double G[4] = {size, 0, 0, 1}, g[2] = {-2 * size, -1};
    const qd_cone_program p = {.variable_count = 2,
                               .row_count = 2,
                               .cone_count = 2,
                               .Q = Q,
                               .b = b,
                               .G = G,
                               .g = g,
                               .cone_kind = ORTHANT,
                               .cone_dim = ONE};
    const answer a = solve(&p);
    CHECK(a.status == QD_OK);
    CHECK_NEAR(a.x[0], 2.0, 1e-6);
    CHECK_NEAR(a.x[1], 1.0, 1e-6);
    CHECK_NEAR(a.dual[0] * size, 2.0, 1e-6);
    CHECK_NEAR(a.dual[1], 1.0, 1e-6);
  }
}

/* |(1, x_1)| <= size x_0 and x_0 <= 0.5 / size: twice as much as there is, whatever the size. */
static void test_contradictions_are_proven(void) {
  static const int kind[2] = {QD_LORENTZ, QD_ORTHANT}, dim[2] = {3, 1};
  const double Q[4] = {1, 0, 0, 1}, b[2] = {1, 1};
  for (double size = 1e-3; size < 1e4; size *= 1e1) {
    const double G[8] = {size, 0, 0, 0, 0, 1, -1, 0}, g[4] = {0, 1, 0, 0.5 / size};
    const qd_cone_program p = {.variable_count = 2,
                               .row_count = 4,
                               .cone_count = 2,
                               .Q = Q,
                               .b = b,
                               .G = G,
                               .g = g,
                               .cone_kind = kind,
                               .cone_dim = dim};
    const answer a = solve(&p);
    printf("%g %s %d\n", size, qd_status_name(a.status), a.info.iterations);
    CHECK(a.status == QD_INFEASIBLE);
    const double push = fabs(size * a.dual[0] - a.dual[3]) + fabs(a.dual[2]);
    CHECK(a.dual[0] >= hypot(a.dual[1], a.dual[2]) * (1 - 1e-12) && a.dual[3] >= 0.0);
    CHECK(a.dual[1] + a.dual[3] * 0.5 / size + 1e3 * push < 0.0);
  }
}

int main(void) {
  test_an_empty_row_contradicts();
  test_a_far_row_carries_nothing();
  test_small_rows_count();
  test_contradictions_are_proven();
  return check_report();
}
