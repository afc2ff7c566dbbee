#include "runtime/run.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/thread_pool.h"

/* Blocks per thread: enough to balance samples of different cost, few enough to keep contention on
 * the counter low. */
#define BLOCKS_PER_THREAD 16
#define BLOCK_MAX 64

/* Called by the calling thread: asks the caller's callback, and tells the other threads. */
static void ask_whether_to_stop(const run *r) {
  const qd_batch *batch = r->batch;
  if (!r->only_copies && batch->stop != NULL && batch->stop(batch->stop_context)) {
    atomic_store_explicit(r->stopped, 1, memory_order_relaxed);
  }
}

static void wait_for_others(void *context) { ask_whether_to_stop(context); }

int run_is_stopped(const run *r, int k) {
  if (k == 0) {
    ask_whether_to_stop(r);
  }
  return atomic_load_explicit(r->stopped, memory_order_relaxed);
}

static qd_status participants_reserve(qd_batch *batch, int count) {
  if (batch->participant_capacity < count) {
    participant **larger = realloc(batch->participants, (size_t)count * sizeof *larger);
    if (larger == NULL) {
      return QD_OUT_OF_MEMORY;
    }
    for (int k = batch->participant_capacity; k < count; ++k) {
      larger[k] = NULL;
    }
    batch->participants = larger;
    batch->participant_capacity = count;
  }
  for (int k = 0; k < batch->participant_capacity; ++k) {
    if (batch->participants[k] != NULL) {
      batch->participants[k]->contact_count = 0;
      batch->participants[k]->failure.sample = -1;
    }
  }
  if (batch->participants[0] == NULL) {
    batch->participants[0] = participant_create(batch->model);
    if (batch->participants[0] == NULL) {
      return QD_OUT_OF_MEMORY;
    }
    batch->participants[0]->failure.sample = -1;
  }
  return QD_OK;
}

static int threads_useful(int thread_count, int64_t sample_count) {
  const int most = thread_count < QD_THREADS_MAX ? thread_count : QD_THREADS_MAX;
  return sample_count < most ? (int)sample_count : most;
}

qd_status run_prepare(const run *r, int thread_count) {
  const int threads = threads_useful(thread_count, r->sample_count);
  const qd_status status = participants_reserve(r->batch, threads > 1 ? threads : 1);
  if (status != QD_OK || !r->with_parameters) {
    return status;
  }
  /* without the caller's own variant, possibly no thread could do the work */
  return participant_reserve_variant(r->batch->participants[0], r->batch->model) ? QD_OK
                                                                                 : QD_OUT_OF_MEMORY;
}

static void take_part(void *context, int k) {
  run *r = context;
  participant **mine = &r->batch->participants[k];
  if (*mine == NULL && !r->only_copies) {
    if ((*mine = participant_create(r->batch->model)) == NULL) {
      return; /* out of memory: the other threads do the work */
    }
    (*mine)->failure.sample = -1;
  }
  if (k > 0 && r->with_parameters && !participant_reserve_variant(*mine, r->batch->model)) {
    return;
  }
  for (;;) {
    const int64_t first = atomic_fetch_add_explicit(&r->next, r->block, memory_order_relaxed);
    if (first >= r->sample_count || run_is_stopped(r, k)) {
      return;
    }
    const int64_t end = first + r->block < r->sample_count ? first + r->block : r->sample_count;
    for (int64_t i = first; i < end && !run_is_stopped(r, k); ++i) {
      r->sample(r, k, i);
    }
  }
}

qd_status run_all(run *r, qd_thread_pool *pool, int thread_count) {
  const int threads = threads_useful(thread_count, r->sample_count);
  const int64_t block =
      r->sample_count / ((int64_t)BLOCKS_PER_THREAD * (threads > 0 ? threads : 1));
  r->block = block < 1 ? 1 : (block > BLOCK_MAX ? BLOCK_MAX : block);
  atomic_init(&r->next, 0);
  _Atomic int stopped = 0;
  r->stopped = &stopped;
  thread_pool_run(pool, threads - 1, take_part, wait_for_others, r);
  return atomic_load(&stopped) ? QD_STOPPED : QD_OK;
}

void run_first_failure(const run *r, qd_batch_failure *failure) {
  const qd_batch *batch = r->batch;
  memset(failure, 0, sizeof *failure);
  failure->sample = -1;
  for (int k = 0; k < batch->participant_capacity; ++k) {
    const participant *p = batch->participants[k];
    if (p != NULL && p->failure.sample >= 0 &&
        (failure->sample < 0 || p->failure.sample < failure->sample)) {
      *failure = p->failure;
    }
  }
}
