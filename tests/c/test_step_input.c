/* NaN and infinity in what goes into a step, or into a query, are refused with a status; nothing
 * moves, and the workspace serves on. */
#include <string.h>

#include "scene.h"

#define NQ 8
#define NV 7
#define BODIES 3

/* A free ball on a floor, and a cart on a rail with an actuator. */
static qd_model *ball_and_cart_create(void) {
  scene *s = scene_create();
  const int ball = scene_add_body(s, QD_FREE, 0.0, 0.0, 1.0, 1.0, 1.0);
  const int cart = scene_add_body(s, QD_SLIDE, 2.0, 0.0, 0.0, 1.0, 1.0);
  scene_add_actuator(s, cart, 1.0);
  const int floor = scene_add_geom(s, QD_PLANE, 0, 0.0, 0.0, 0.0);
  scene_add_pair(s, floor, scene_add_geom(s, QD_SPHERE, ball, 0.0, 0.0, 1.0), 3, 0.5);
  return scene_finish(s);
}

typedef struct inputs {
  double q[NQ], u[1], tau[NV], wrench[6 * BODIES];
} inputs;

static const inputs GOOD = {.q = {0, 0, 1, 1}, .u = {0.25}};

typedef struct outputs {
  double q_next[NQ], delta[NV], limit_force[NV], A[NV * NV], B[NV];
} outputs;

/* Step, linearization and step with its factor of the same numbers. */
static qd_status run(const qd_model *model, qd_workspace *workspace, int call, const inputs *in,
                     outputs *out) {
  const qd_step_options options = qd_step_options_default();
  const qd_step_input input = {.q = in->q, .u = in->u, .tau = in->tau, .wrench = in->wrench};
  qd_step_result result = {
      .q_next = out->q_next, .delta = out->delta, .limit_force = out->limit_force};
  qd_status status = QD_OUT_OF_CAPACITY;
  for (int k = 0; k < 3 && status == QD_OUT_OF_CAPACITY; ++k) {
    status = call == 0   ? qd_step(model, workspace, &options, &input, &result)
             : call == 1 ? qd_linearize(model, workspace, &options, &input, &result, out->A, out->B)
                         : qd_differentiate(model, workspace, &options, &input, &result);
    if (status == QD_OUT_OF_CAPACITY) {
      CHECK(qd_workspace_reserve(model, workspace, result.contact_count) == QD_OK);
    }
  }
  CHECK(result.info.status == status);
  return status;
}

static void refuse(const qd_model *model, qd_workspace *workspace, int call, size_t at) {
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  for (int k = 0; k < 3; ++k) {
    inputs in = GOOD;
    outputs out;
    memcpy((char *)&in + at * sizeof(double), bad + k, sizeof(double));
    CHECK(run(model, workspace, call, &in, &out) == QD_NOT_FINITE);
    for (int i = 0; i < NV; ++i) {
      CHECK(out.delta[i] == 0.0 && out.limit_force[i] == 0.0);
    }
    CHECK(memcmp(out.q_next, in.q, sizeof in.q) == 0);
  }
}

static void test_inputs_are_checked(void) {
  qd_model *model = ball_and_cart_create();
  qd_workspace *workspace = qd_workspace_create(model, 0);
  for (int call = 0; call < 3; ++call) {
    for (size_t at = 0; at < sizeof GOOD / sizeof(double); ++at) {
      refuse(model, workspace, call, at);
    }
    outputs out;
    CHECK(run(model, workspace, call, &GOOD, &out) == QD_OK);
    CHECK_NEAR(out.q_next[NQ - 1], 0.25, 1e-9);
    CHECK_NEAR(out.q_next[2], 1.0, 1e-8);
  }
  qd_workspace_destroy(workspace);
  qd_model_destroy(model);
}

/* Words of an enumeration that the core does not know are no friction law. */
static void test_friction_laws_are_known(void) {
  qd_model *model = ball_and_cart_create();
  qd_workspace *workspace = qd_workspace_create(model, 8);
  for (int law = -2; law < 9; ++law) {
    inputs in = GOOD;
    outputs out;
    qd_step_options options = qd_step_options_default();
    options.friction_model = (qd_friction_model)law;
    const qd_step_input input = {.q = in.q, .u = in.u, .tau = in.tau, .wrench = in.wrench};
    qd_step_result result = {
        .q_next = out.q_next, .delta = out.delta, .limit_force = out.limit_force};
    const int known = law == QD_CONE || law == QD_PYRAMID;
    const qd_status status = qd_step(model, workspace, &options, &input, &result);
    CHECK(known ? status != QD_BAD_ARGUMENT : status == QD_BAD_ARGUMENT);
  }
  qd_workspace_destroy(workspace);
  qd_model_destroy(model);
}

static void test_collide_checks(void) {
  qd_model *model = ball_and_cart_create();
  qd_workspace *workspace = qd_workspace_create(model, 0);
  const qd_contact *contacts;
  int count;
  inputs in = GOOD;
  CHECK(qd_collide(model, workspace, in.q, NAN, &contacts, &count) == QD_BAD_ARGUMENT);
  CHECK(qd_collide(model, workspace, in.q, 0.1, &contacts, &count) == QD_OK && count == 1);
  in.q[1] = NAN;
  CHECK(qd_collide(model, workspace, in.q, 0.1, &contacts, &count) == QD_NOT_FINITE && count == 0);
  qd_workspace_destroy(workspace);
  qd_model_destroy(model);
}

int main(void) {
  test_inputs_are_checked();
  test_friction_laws_are_known();
  test_collide_checks();
  return check_report();
}
