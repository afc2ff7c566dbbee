/* Traces in the caller's memory: of a step and of a cone program, with room and without. */
#include <string.h>

#include "scene.h"

enum { ROWS = 64 };

/* Two balls on a floor, and how a step of theirs went. */
static qd_status run(qd_trace *trace, qd_cone_info *info) {
  scene *s = scene_create();
  const int floor = scene_add_geom(s, QD_PLANE, 0, 0.0, 0.0, 0.0);
  for (int i = 0; i < 2; ++i) {
    const int ball = scene_add_body(s, QD_FREE, 3.0 * i, 0.0, 1.0, 1.0, 1.0);
    scene_add_pair(s, floor, scene_add_geom(s, QD_SPHERE, ball, 0.0, 0.0, 1.0), 3, 0.5);
  }
  qd_model *model = scene_finish(s);
  qd_workspace *workspace = qd_workspace_create(model, 8);
  const qd_step_options options = qd_step_options_default();
  const double q[14] = {0, 0, 1, 1, 0, 0, 0, 3, 0, 1, 1};
  const double tau[12] = {1, 0, 0, 0, 0, 0, 1};
  double q_next[14], delta[12], limit_force[12];
  const qd_step_input input = {.q = q, .tau = tau};
  qd_step_result result = {
      .q_next = q_next, .delta = delta, .limit_force = limit_force, .trace = trace};
  const qd_status status = qd_step(model, workspace, &options, &input, &result);
  *info = result.info;
  qd_workspace_destroy(workspace);
  qd_model_destroy(model);
  return status;
}

static void test_step(void) {
  qd_trace_row rows[ROWS];
  qd_trace trace = {.rows = rows, .capacity = ROWS, .count = 7, .level = 3};
  qd_cone_info info;
  CHECK(run(&trace, &info) == QD_OK);
  CHECK(trace.count > 4 && trace.dropped == 0 && rows[0].level == 0);
  CHECK(strcmp(rows[0].stage, "attempt 1") == 0 && strcmp(rows[0].verdict, "solved") == 0);
  CHECK(rows[0].factorizations == info.factorizations && rows[0].iterations == info.iterations);
  int islands = 0, sum = 0;
  for (int i = 0; i < trace.count; ++i) {
    const int is_island = strncmp(rows[i].stage, "island", 6) == 0;
    islands += is_island;
    sum += is_island ? rows[i].factorizations : 0;
  }
  CHECK(islands == 2 && sum == info.factorizations);
}

static void test_little_room(void) {
  qd_trace_row rows[ROWS];
  qd_trace whole = {.rows = rows, .capacity = ROWS};
  qd_cone_info info;
  run(&whole, &info);
  for (int capacity = 0; capacity < 4; ++capacity) {
    qd_trace_row few[4];
    memset(few, 0x5a, sizeof few);
    qd_trace trace = {.rows = few, .capacity = capacity};
    CHECK(run(&trace, &info) == QD_OK);
    CHECK(trace.count == capacity && trace.dropped == whole.count - capacity);
    CHECK(capacity == 0 || few[0].factorizations == info.factorizations);
    CHECK(few[capacity].level == 0x5a5a5a5a);
  }
}

/* min x^2 / 2 - x with x <= 0.5 */
static void test_cone_program(void) {
  const double Q[] = {1.0}, b[] = {-1.0}, G[] = {-1.0}, g[] = {0.5};
  const int kind[] = {QD_ORTHANT}, dim[] = {1};
  const qd_cone_program program = {.variable_count = 1,
                                   .row_count = 1,
                                   .cone_count = 1,
                                   .cone_kind = kind,
                                   .cone_dim = dim,
                                   .Q = Q,
                                   .b = b,
                                   .G = G,
                                   .g = g};
  qd_trace_row rows[ROWS];
  qd_trace trace = {.rows = rows, .capacity = ROWS};
  qd_cone_options options = qd_cone_options_default();
  options.trace = &trace;
  qd_cone_workspace *workspace = qd_cone_workspace_create(1, 1, 0);
  double x, slack, dual;
  qd_cone_info info;
  for (int again = 0; again < 2; ++again) { /* a trace begins anew */
    CHECK(qd_cone_solve(workspace, &options, &program, &x, &slack, &dual, NULL, &info) == QD_OK);
    CHECK_NEAR(x, 0.5, 1e-9);
    CHECK(trace.count >= 1 && trace.count < 10 && rows[0].level == 0);
    CHECK(strcmp(rows[trace.count - 1].verdict, "solved") == 0);
  }
  qd_cone_workspace_destroy(workspace);
}

int main(void) {
  test_step();
  test_little_room();
  test_cone_program();
  return check_report();
}
