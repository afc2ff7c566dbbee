/* Steps, linearizations and cone programs take no memory from the heap, and a workspace that was
 * too small says what it needs. */
#include <stdlib.h>
#include <string.h>

#include "scene.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define COUNTED 0
#elif defined(__has_feature)
#define COUNTED 0
#else
#define COUNTED 1
#endif

static long allocations;

#if COUNTED
/* glibc's own entries behind the names that every library of the process calls. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
void *realloc(void *memory, size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}
void *aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
#endif

#define OBJECTS 96

/* Free balls over a floor, `spacing` apart in rows of twelve; neighbours touch from 0.1 down. */
static qd_model *balls_create(double spacing) {
  scene *s = scene_create();
  const int floor = scene_add_geom(s, QD_PLANE, 0, 0.0, 0.0, 0.0);
  for (int i = 1; i <= OBJECTS; ++i) {
    const int row = (i - 1) / 12, column = (i - 1) % 12;
    const int body = scene_add_body(s, QD_FREE, spacing * column, spacing * row, 0.05, 0.5, 5e-4);
    const int ball = scene_add_geom(s, QD_SPHERE, body, 0.0, 0.0, 0.05);
    const int other[3] = {floor, column > 0 ? ball - 1 : -1, row > 0 ? ball - 12 : -1};
    for (int k = 0; k < 3; ++k) {
      if (other[k] >= 0) {
        scene_add_pair(s, other[k], ball, 3, 0.5);
      }
    }
  }
  return scene_finish(s);
}

static void configuration(double *q, double spacing) {
  memset(q, 0, 7 * OBJECTS * sizeof *q);
  for (int i = 0; i < OBJECTS; ++i) {
    q[7 * i] = spacing * (i % 12);
    q[7 * i + 1] = spacing * (i / 12);
    q[7 * i + 2] = 0.0499;
    q[7 * i + 3] = 1.0;
  }
}

static double *A;

/* Grows the workspace as it asks, then counts what further calls take from the heap. */
static void count_step(double spacing, double kappa, int derivative) {
  static double q[7 * OBJECTS], q_next[7 * OBJECTS], delta[6 * OBJECTS], limit[6 * OBJECTS];
  qd_model *model = balls_create(spacing);
  qd_workspace *workspace = qd_workspace_create(model, 0);
  qd_step_options options = qd_step_options_default();
  qd_step_result result = {.q_next = q_next, .delta = delta, .limit_force = limit};
  static double start_delta[6 * OBJECTS], start_limit[6 * OBJECTS];
  static qd_contact start_contacts[8 * OBJECTS];
  qd_step_start start = {
      .contacts = start_contacts, .delta = start_delta, .limit_force = start_limit};
  qd_step_input input = {.q = q};
  options.kappa = kappa;
  options.margin = 0.01;
  configuration(q, spacing);
  qd_status status = QD_OUT_OF_CAPACITY;
  int grown = 0;
  for (int round = 0; round < 20 && status == QD_OUT_OF_CAPACITY; ++round) {
    status = derivative ? qd_linearize(model, workspace, &options, &input, &result, A, NULL)
                        : qd_step(model, workspace, &options, &input, &result);
    if (status == QD_OUT_OF_CAPACITY) {
      ++grown;
      CHECK(qd_workspace_reserve(model, workspace, result.contact_count) == QD_OK);
    }
  }
  CHECK(status == QD_OK);
  CHECK(result.contact_count >= OBJECTS);
  CHECK(grown > 0); /* 64 contacts to begin with */
  CHECK(result.contact_count <= 8 * OBJECTS);
  start.contact_count = result.contact_count;
  memcpy(start_contacts, result.contacts, (size_t)result.contact_count * sizeof(qd_contact));
  memcpy(start_delta, delta, sizeof delta);
  memcpy(start_limit, limit, sizeof limit);
  const long before = allocations;
  for (int i = 0; i < 3; ++i) {
    input.start = i > 0 ? &start : NULL; /* warm, too */
    status = derivative ? qd_linearize(model, workspace, &options, &input, &result, A, NULL)
                        : qd_step(model, workspace, &options, &input, &result);
    CHECK(status == QD_OK);
  }
  CHECK(allocations == before);
  CHECK(qd_workspace_bytes(workspace) < ((size_t)64 << 20));
  qd_workspace_destroy(workspace);
  qd_model_destroy(model);
}

int main(void) {
  A = calloc((size_t)36 * OBJECTS * OBJECTS, sizeof *A);
#if COUNTED
  CHECK(allocations > 0); /* the counter counts */
#endif
  const double kappa[2] = {INFINITY, 500.0}, spacing[2] = {0.5, 0.0999};
  for (int k = 0; k < 2; ++k) {
    for (int s = 0; s < 2; ++s) {
      count_step(spacing[s], kappa[k], 0);
      count_step(spacing[s], kappa[k], 1);
    }
  }
  free(A);
  return check_report();
}
