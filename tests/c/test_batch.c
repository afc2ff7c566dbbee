/* Batches: the same bits as a loop of steps, whatever the threads; failures, forks, many callers.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#if !defined(__SANITIZE_THREAD__) && !defined(_WIN32)
#define HAVE_FORK
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "scene.h"

#define PAIRS_MAX 400
#define SAMPLES 300
#define STEPS 20

/* A ball on an actuated slide pushes a carriage on a passive one along x; the carriage carries
 * `spheres` balls, all of which can touch the pusher. */
static qd_model *pusher_create(int spheres) {
  scene *s = scene_create();
  const int pusher = scene_add_body(s, QD_SLIDE, 0.0, 0.0, 0.0, 0.5, 0.01);
  const int carriage = scene_add_body(s, QD_SLIDE, 0.0, 0.0, 0.0, 1.0, 0.01);
  scene_add_actuator(s, pusher, 200.0);
  const int tip = scene_add_geom(s, QD_SPHERE, pusher, 0.0, 0.0, 0.1);
  for (int i = 1; i <= spheres; ++i) {
    scene_add_pair(s, tip, scene_add_geom(s, QD_SPHERE, carriage, 0.25, 1e-4 * i, 0.1), 1, 0.0);
  }
  return scene_finish(s);
}

typedef struct numbers {
  double q[SAMPLES][2], u[SAMPLES][1];
} numbers;

static void numbers_fill(numbers *n) {
  for (int i = 0; i < SAMPLES; ++i) {
    n->q[i][0] = 0.001 * (i % 7);
    n->q[i][1] = -0.0005 * (i % 11);
    n->u[i][0] = 0.0007 * i;
  }
}

typedef struct found {
  double q_next[SAMPLES][2], delta[SAMPLES][2], limit_force[SAMPLES][2];
  double A[SAMPLES][4], B[SAMPLES][2];
  uint8_t exact[SAMPLES];
  int32_t status[SAMPLES];
  int64_t contact_start[SAMPLES + 1];
} found;

static qd_batch_output output_of(found *f) {
  memset(f, 0, sizeof *f);
  return (qd_batch_output){.q_next = f->q_next[0],
                           .delta = f->delta[0],
                           .limit_force = f->limit_force[0],
                           .derivative = {[QD_BY_Q] = f->A[0], [QD_BY_U] = f->B[0]},
                           .derivative_exact = f->exact,
                           .status = f->status,
                           .contact_start = f->contact_start};
}

static qd_batch_input input_of(const numbers *n) {
  return (qd_batch_input){
      .sample_count = SAMPLES, .q = n->q[0], .u = n->u[0], .q_stride = 2, .u_stride = 1};
}

/* One linearized batch; the contacts go to the caller, who frees them. */
static qd_contact *linearize_all(const qd_model *model, qd_thread_pool *pool, int threads,
                                 const numbers *n, found *f, qd_batch_failure *failure) {
  const qd_step_options options = qd_step_options_default();
  const qd_batch_input input = input_of(n);
  const qd_batch_output output = output_of(f);
  qd_batch *batch = qd_batch_create(model);
  CHECK(qd_linearize_batch(pool, threads, batch, &options, &input, &output, failure) == QD_OK);
  const int64_t count = f->contact_start[SAMPLES];
  qd_contact *contacts = calloc((size_t)count + 1, sizeof *contacts);
  qd_batch_contacts(pool, threads, batch, SAMPLES, f->contact_start, contacts);
  qd_batch_destroy(batch);
  return contacts;
}

static void test_equals_a_loop(const qd_model *model, qd_thread_pool *pool) {
  numbers n;
  found f;
  qd_batch_failure failure;
  numbers_fill(&n);
  qd_contact *contacts = linearize_all(model, pool, 4, &n, &f, &failure);
  CHECK(failure.sample == -1);
  const qd_step_options options = qd_step_options_default();
  qd_workspace *workspace = qd_workspace_create(model, PAIRS_MAX);
  int with_contacts = 0;
  for (int i = 0; i < SAMPLES; ++i) {
    double q_next[2], delta[2], limit_force[2], A[4], B[2];
    qd_step_result result = {.q_next = q_next, .delta = delta, .limit_force = limit_force};
    const qd_step_input one = {.q = n.q[i], .u = n.u[i]};
    CHECK(qd_linearize(model, workspace, &options, &one, &result, A, B) == QD_OK);
    CHECK(f.status[i] == QD_OK);
    CHECK(memcmp(q_next, f.q_next[i], sizeof q_next) == 0);
    CHECK(memcmp(delta, f.delta[i], sizeof delta) == 0);
    CHECK(memcmp(A, f.A[i], sizeof A) == 0);
    CHECK(memcmp(B, f.B[i], sizeof B) == 0);
    CHECK(f.exact[i] == result.derivative_exact);
    CHECK(f.contact_start[i + 1] - f.contact_start[i] == result.contact_count);
    CHECK(memcmp(contacts + f.contact_start[i], result.contacts,
                 (size_t)result.contact_count * sizeof *contacts) == 0);
    with_contacts += result.contact_count > 0;
  }
  CHECK(with_contacts > SAMPLES / 2);
  qd_workspace_destroy(workspace);
  free(contacts);
}

static void test_threads_give_the_same_bits(const qd_model *model, qd_thread_pool *pool) {
  numbers n;
  found alone, together;
  qd_batch_failure failure;
  numbers_fill(&n);
  qd_contact *one = linearize_all(model, NULL, 1, &n, &alone, &failure);
  static const int threads[] = {1, 2, 3, 8, 64};
  for (size_t k = 0; k < sizeof threads / sizeof *threads; ++k) {
    qd_contact *many = linearize_all(model, pool, threads[k], &n, &together, &failure);
    CHECK(memcmp(&alone, &together, sizeof alone) == 0);
    CHECK(memcmp(one, many, (size_t)alone.contact_start[SAMPLES] * sizeof *one) == 0);
    free(many);
  }
  free(one);
}

static void test_failures_are_marked(const qd_model *model, qd_thread_pool *pool) {
  numbers n;
  found f, clean;
  qd_batch_failure failure;
  numbers_fill(&n);
  free(linearize_all(model, pool, 4, &n, &clean, &failure));
  n.u[200][0] = NAN;
  n.u[17][0] = INFINITY;
  n.q[255][1] = NAN;
  free(linearize_all(model, pool, 4, &n, &f, &failure));
  CHECK(failure.sample == 17);
  CHECK(failure.status == QD_NOT_FINITE);
  for (int i = 0; i < SAMPLES; ++i) {
    if (i == 17 || i == 200 || i == 255) {
      CHECK(f.status[i] == QD_NOT_FINITE);
      CHECK(memcmp(f.q_next[i], n.q[i], sizeof n.q[i]) == 0);
      CHECK(f.delta[i][0] == 0.0 && f.delta[i][1] == 0.0);
      CHECK(isnan(f.A[i][0]) && isnan(f.B[i][1]));
      CHECK(f.contact_start[i] == f.contact_start[i + 1]);
    } else {
      CHECK(f.status[i] == QD_OK);
      CHECK(memcmp(f.q_next[i], clean.q_next[i], sizeof f.q_next[i]) == 0);
    }
  }
}

static void test_rollouts(const qd_model *model, qd_thread_pool *pool) {
  static double q[SAMPLES][STEPS + 1][2];
  double u[STEPS];
  int32_t status[SAMPLES];
  int64_t steps_done[SAMPLES];
  numbers n;
  numbers_fill(&n);
  for (int t = 0; t < STEPS; ++t) {
    u[t] = 0.01 * t;
  }
  const qd_step_options options = qd_step_options_default();
  const qd_batch_input input = {
      .sample_count = SAMPLES, .q = n.q[0], .u = u, .q_stride = 2, .u_step = 1};
  qd_batch *batch = qd_batch_create(model);
  qd_batch_failure failure;
  CHECK(qd_rollout_batch(pool, 4, batch, &options, &input, STEPS, q[0][0], status, steps_done,
                         &failure) == QD_OK);
  CHECK(failure.sample == -1);
  qd_workspace *workspace = qd_workspace_create(model, PAIRS_MAX);
  for (int i = 0; i < SAMPLES; ++i) {
    CHECK(status[i] == QD_OK && steps_done[i] == STEPS);
    double now[2], delta[2], limit_force[2];
    memcpy(now, n.q[i], sizeof now);
    for (int t = 0; t < STEPS; ++t) {
      qd_step_result result = {.q_next = now, .delta = delta, .limit_force = limit_force};
      double before[2];
      memcpy(before, now, sizeof now);
      const qd_step_input one = {.q = before, .u = u + t};
      CHECK(qd_step(model, workspace, &options, &one, &result) == QD_OK);
      CHECK(memcmp(now, q[i][t + 1], sizeof now) == 0);
    }
  }
  u[5] = NAN;
  CHECK(qd_rollout_batch(pool, 4, batch, &options, &input, STEPS, q[0][0], status, steps_done,
                         &failure) == QD_OK);
  CHECK(failure.sample == 0 && failure.step == 5);
  CHECK(steps_done[9] == 5 && status[9] == QD_NOT_FINITE);
  CHECK(memcmp(q[9][5], q[9][STEPS], sizeof q[9][5]) == 0);
  CHECK(memcmp(q[9][4], q[9][5], sizeof q[9][5]) != 0);
  qd_workspace_destroy(workspace);
  qd_batch_destroy(batch);
}

typedef struct caller {
  const qd_model *model;
  qd_thread_pool *pool;
  const found *want;
  int same;
} caller;

static void *call_often(void *argument) {
  caller *c = argument;
  const qd_step_options options = qd_step_options_default();
  numbers n;
  numbers_fill(&n);
  const qd_batch_input input = input_of(&n);
  qd_batch *batch = qd_batch_create(c->model);
  for (int i = 0; i < 20; ++i) {
    found f;
    const qd_batch_output output = output_of(&f);
    qd_batch_failure failure;
    const qd_status status =
        qd_linearize_batch(c->pool, 1 + i % 4, batch, &options, &input, &output, &failure);
    c->same += status == QD_OK && memcmp(&f, c->want, sizeof f) == 0;
  }
  qd_batch_destroy(batch);
  return NULL;
}

static void test_many_callers_share_a_pool(const qd_model *model, qd_thread_pool *pool) {
  numbers n;
  found want;
  qd_batch_failure failure;
  numbers_fill(&n);
  free(linearize_all(model, NULL, 1, &n, &want, &failure));
  caller callers[6];
  pthread_t threads[6];
  for (int k = 0; k < 6; ++k) {
    callers[k] = (caller){.model = model, .pool = pool, .want = &want};
    CHECK(pthread_create(&threads[k], NULL, call_often, &callers[k]) == 0);
  }
  for (int k = 0; k < 6; ++k) {
    pthread_join(threads[k], NULL);
    CHECK(callers[k].same == 20);
  }
}

/* A softer spring, a heavier carriage and a larger ball in every sample: with all threads as one by
 * one, where a stride of 0 hands the sample's numbers to a batch of its own. */
static void test_own_parameters(const qd_model *model, qd_thread_pool *pool) {
  const qd_parameter K = QD_PARAMETER_ACTUATOR_STIFFNESS, S = QD_PARAMETER_GEOM_SIZE;
  const int ns = qd_parameter_size(model, S);
  double *stiffness = calloc(SAMPLES, sizeof(double));
  double *mass = calloc(3 * SAMPLES, sizeof(double));
  double *size = calloc((size_t)(SAMPLES * ns), sizeof(double));
  for (int i = 0; i < SAMPLES; ++i) {
    stiffness[i] = 200.0 - 0.3 * i;
    mass[3 * i + 1] = 0.5;
    mass[3 * i + 2] = 1.0 + 0.01 * i;
    memcpy(size + i * ns, qd_parameter_values(model, S), (size_t)ns * sizeof(double));
    size[i * ns] += 1e-4 * i;
  }
  numbers n;
  numbers_fill(&n);
  qd_step_options options = qd_step_options_default();
  options.mass_ratio = 0.1; /* what follows from parameters counts */
  qd_batch_input input = input_of(&n);
  input.parameter[K] = stiffness;
  input.parameter_stride[K] = 1;
  input.parameter[QD_PARAMETER_BODY_MASS] = mass;
  input.parameter_stride[QD_PARAMETER_BODY_MASS] = 3;
  input.parameter[S] = size;
  input.parameter_stride[S] = ns;
  found alone, together, plain;
  qd_batch_failure failure;
  qd_batch *batch = qd_batch_create(model);
  const qd_batch_output out_alone = output_of(&alone), out_together = output_of(&together);
  CHECK(qd_linearize_batch(NULL, 1, batch, &options, &input, &out_alone, &failure) == QD_OK);
  CHECK(qd_linearize_batch(pool, 8, batch, &options, &input, &out_together, &failure) == QD_OK);
  CHECK(failure.sample == -1 && memcmp(&alone, &together, sizeof alone) == 0);
  for (int i = 0; i < SAMPLES; i += 37) {
    double q_next[2];
    int32_t status;
    qd_batch_input one = {.sample_count = 1, .q = n.q[i], .u = n.u[i]};
    one.parameter[K] = stiffness + i;
    one.parameter[QD_PARAMETER_BODY_MASS] = mass + 3 * i;
    one.parameter[S] = size + i * ns;
    const qd_batch_output output = {.q_next = q_next, .status = &status};
    CHECK(qd_step_batch(pool, 2, batch, &options, &one, &output, &failure) == QD_OK);
    CHECK(memcmp(q_next, alone.q_next[i], sizeof q_next) == 0);
  }
  const qd_batch_input without = input_of(&n);
  const qd_batch_output out_plain = output_of(&plain);
  CHECK(qd_linearize_batch(pool, 8, batch, &options, &without, &out_plain, &failure) == QD_OK);
  CHECK(memcmp(plain.q_next[0], alone.q_next[0], sizeof plain.q_next[0]) == 0);
  CHECK(memcmp(plain.q_next[299], alone.q_next[299], sizeof plain.q_next[299]) != 0);
  qd_batch_destroy(batch);
  free(stiffness);
  free(mass);
  free(size);
}

/* dq_next by every argument into one block, zeros at first; the caller frees it. */
static double *derivatives_of(const qd_model *model, int64_t samples, qd_batch_output *output) {
  size_t count = 0;
  for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
    count += (size_t)samples * 2 * (size_t)qd_argument_size(model, k);
  }
  double *block = calloc(count, sizeof *block), *at = block;
  for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
    output->derivative[k] = at;
    at += samples * 2 * qd_argument_size(model, k);
  }
  return block;
}

static void test_derivatives_by_all(const qd_model *model, qd_thread_pool *pool) {
  numbers n;
  numbers_fill(&n);
  const qd_step_options options = qd_step_options_default();
  qd_batch_input input = input_of(&n);
  input.sample_count = 60;
  found alone, together;
  qd_batch_failure failure;
  qd_batch *batch = qd_batch_create(model);
  qd_batch_output one = output_of(&alone), many = output_of(&together);
  double *first = derivatives_of(model, 60, &one);
  double *second = derivatives_of(model, 60, &many);
  CHECK(qd_linearize_batch(NULL, 1, batch, &options, &input, &one, &failure) == QD_OK);
  CHECK(qd_linearize_batch(pool, 8, batch, &options, &input, &many, &failure) == QD_OK);
  CHECK(failure.sample == -1 && memcmp(&alone, &together, sizeof alone) == 0);
  qd_workspace *workspace = qd_workspace_create(model, 2 * PAIRS_MAX);
  qd_batch_output single = {0};
  double *own = derivatives_of(model, 1, &single);
  for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
    const int64_t size = 2 * qd_argument_size(model, k);
    CHECK(memcmp(one.derivative[k], many.derivative[k], (size_t)(60 * size) * sizeof(double)) == 0);
  }
  for (int i = 0; i < 60; i += 7) {
    double q_next[2], delta[2], limit_force[2];
    qd_step_result result = {.q_next = q_next, .delta = delta, .limit_force = limit_force};
    const qd_step_input at = {.q = n.q[i], .u = n.u[i]};
    CHECK(qd_differentiate(model, workspace, &options, &at, &result) == QD_OK);
    qd_vjp(model, workspace, &options, &at, &result, 2, NULL, NULL, single.derivative);
    for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
      const int64_t size = 2 * qd_argument_size(model, k);
      CHECK(memcmp(single.derivative[k], one.derivative[k] + i * size,
                   (size_t)size * sizeof(double)) == 0);
    }
  }
  qd_workspace_destroy(workspace);
  qd_batch_destroy(batch);
  free(own);
  free(first);
  free(second);
}

static void test_parameters_are_checked(const qd_model *model) {
  int index;
  const char *reason;
  double stiffness = 0.0, mass[3] = {0.0, 1.0, NAN};
  CHECK(strcmp(qd_parameter_name(QD_PARAMETER_BODY_MASS), "body_mass") == 0);
  CHECK(qd_parameter_size(model, QD_PARAMETER_BODY_MASS) == 3);
  CHECK(qd_parameter_check(model, QD_PARAMETER_BODY_MASS, mass, &index, &reason) == QD_NOT_FINITE);
  CHECK(index == 2);
  CHECK(qd_parameter_check(model, QD_PARAMETER_ACTUATOR_STIFFNESS, &stiffness, &index, &reason) ==
        QD_BAD_ARGUMENT);
  CHECK(index == 0 && strcmp(reason, "must be positive") == 0);
  for (int k = 0; k < QD_PARAMETER_COUNT; ++k) {
    const double *own = qd_parameter_values(model, (qd_parameter)k);
    CHECK(qd_parameter_check(model, (qd_parameter)k, own, &index, &reason) == QD_OK);
    CHECK(index == -1 && reason == NULL);
  }
}

/* Asked for the given number of times, then the end. */
static int countdown(void *context) { return --*(int *)context <= 0; }

static void test_stop(const qd_model *model, qd_thread_pool *pool) {
  static double path[SAMPLES][STEPS + 1][2];
  numbers n;
  found want, f;
  int32_t status[SAMPLES];
  int64_t steps_done[SAMPLES];
  qd_batch_failure failure;
  numbers_fill(&n);
  free(linearize_all(model, NULL, 1, &n, &want, &failure));
  const qd_step_options options = qd_step_options_default();
  const qd_batch_input input = input_of(&n);
  const qd_batch_output output = output_of(&f);
  qd_batch *batch = qd_batch_create(model);
  for (int threads = 1; threads <= 4; ++threads) {
    int left = 25;
    qd_batch_set_stop(batch, countdown, &left);
    memset(&f, 0, sizeof f);
    qd_status ended = qd_linearize_batch(pool, threads, batch, &options, &input, &output, &failure);
    CHECK(ended == (left <= 0 ? QD_STOPPED : QD_OK)); /* helpers may have done it before */
    CHECK(threads > 1 || (left <= 0 && f.q_next[SAMPLES - 1][0] == 0.0));
    left = 2 * STEPS;
    ended = qd_rollout_batch(pool, threads, batch, &options, &input, STEPS, path[0][0], status,
                             steps_done, &failure);
    CHECK(ended == (left <= 0 ? QD_STOPPED : QD_OK));
    CHECK(threads > 1 || (left <= 0 && steps_done[1] < STEPS));
    left = 1 << 30;
    CHECK(qd_linearize_batch(pool, threads, batch, &options, &input, &output, &failure) == QD_OK);
    CHECK(memcmp(&f, &want, sizeof f) == 0);
    qd_batch_set_stop(batch, NULL, NULL);
    CHECK(qd_linearize_batch(pool, threads, batch, &options, &input, &output, &failure) == QD_OK);
    CHECK(memcmp(&f, &want, sizeof f) == 0);
  }
  qd_batch_destroy(batch);
}

static void test_empty_batch(const qd_model *model, qd_thread_pool *pool) {
  const qd_step_options options = qd_step_options_default();
  const qd_batch_input input = {.sample_count = 0};
  int64_t start[1] = {-1};
  const qd_batch_output output = {.contact_start = start};
  qd_batch_failure failure;
  qd_batch *batch = qd_batch_create(model);
  CHECK(qd_step_batch(pool, 8, batch, &options, &input, &output, &failure) == QD_OK);
  CHECK(failure.sample == -1);
  CHECK(start[0] == 0);
  qd_batch_destroy(batch);
}

/* The child has no threads of the pool's, and the sanitizer forbids it to start any. Not where an
 * emulator cannot fork a process that has threads (tools/cross/aarch64.ini). */
static void test_fork(const qd_model *model, qd_thread_pool *pool) {
#ifdef HAVE_FORK
  if (getenv("QD_TEST_EMULATED")) {
    return;
  }
  numbers n;
  found want, f;
  qd_batch_failure failure;
  numbers_fill(&n);
  free(linearize_all(model, pool, 4, &n, &want, &failure));
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    free(linearize_all(model, pool, 4, &n, &f, &failure));
    _exit(memcmp(&f, &want, sizeof f) == 0 ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  free(linearize_all(model, pool, 4, &n, &f, &failure));
  CHECK(memcmp(&f, &want, sizeof f) == 0);
#else
  (void)model;
  (void)pool;
#endif
}

static void test_distances(const qd_model *model, qd_thread_pool *pool, int pairs) {
  static double distance[2][SAMPLES][PAIRS_MAX];
  static int32_t status[2][SAMPLES];
  numbers n;
  numbers_fill(&n);
  n.q[17][1] = NAN;
  qd_batch *batch = qd_batch_create(model);
  for (int k = 0; k < 2; ++k) { /* rows of (samples, pairs), packed */
    CHECK(qd_pair_distances_batch(pool, k == 0 ? 1 : 8, batch, SAMPLES, n.q[0], 2, 0.05,
                                  distance[k][0], status[k]) == QD_OK);
  }
  CHECK(memcmp(status[0], status[1], sizeof status[0]) == 0);
  CHECK(memcmp(distance[0], distance[1], sizeof(double) * SAMPLES * (size_t)pairs) == 0);
  qd_workspace *workspace = qd_workspace_create(model, PAIRS_MAX);
  const double *apart = distance[0][0];
  for (int i = 0; i < SAMPLES; ++i) {
    const qd_contact *contacts;
    int count;
    if (i == 17) {
      CHECK(status[0][i] == QD_NOT_FINITE && isnan(apart[i * pairs]));
      continue;
    }
    CHECK(status[0][i] == QD_OK);
    CHECK(qd_collide(model, workspace, n.q[i], 0.05, &contacts, &count) == QD_OK);
    for (int k = 0; k < count; ++k) { /* balls: one contact a pair */
      CHECK(apart[i * pairs + contacts[k].pair] == contacts[k].dist);
    }
    int far = 0;
    for (int k = 0; k < pairs; ++k) {
      far += apart[i * pairs + k] == 0.05;
    }
    CHECK(far + count == pairs);
  }
  qd_workspace_destroy(workspace);
  qd_batch_destroy(batch);
}

int main(void) {
  qd_thread_pool *pool = qd_thread_pool_create();
  static const int spheres[] = {1, PAIRS_MAX}; /* the second: more than a workspace starts with */
  for (int k = 0; k < 2; ++k) {
    qd_model *model = pusher_create(spheres[k]);
    CHECK(model != NULL);
    if (model != NULL) {
      test_equals_a_loop(model, pool);
      test_threads_give_the_same_bits(model, pool);
      test_failures_are_marked(model, pool);
      test_own_parameters(model, pool);
      test_derivatives_by_all(model, pool);
      test_parameters_are_checked(model);
      test_stop(model, pool);
      test_empty_batch(model, pool);
      test_distances(model, pool, spheres[k]);
      if (k == 0) {
        test_rollouts(model, pool);
        test_many_callers_share_a_pool(model, pool);
        test_fork(model, pool);
      }
    }
    qd_model_destroy(model);
  }
  qd_thread_pool_destroy(pool);
  qd_thread_pool_destroy(qd_thread_pool_create());
  return check_report();
}
