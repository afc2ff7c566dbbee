#include "runtime/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/process.h"

#define WAIT_NANOSECONDS 20000000 /* between two calls of the caller's `wait` */

/* The work of one caller, on the caller's stack. */
typedef struct job {
  struct job *next;
  thread_pool_work work;
  void *context;
  int helpers_wanted; /* number of helpers that may still join */
  int joined;
  int working;
  pthread_cond_t done; /* signalled when `working` falls to 0 */
} job;

/* The threads of one process. The mutex protects all fields below it. */
typedef struct crew {
  process_id pid;
  pthread_mutex_t mutex;
  pthread_cond_t wake; /* signalled for a new job, and for `stop` */
  job *jobs;
  int caller_count; /* callers inside thread_pool_run */
  int thread_count;
  int stop;
  pthread_t threads[QD_THREADS_MAX];
} crew;

/* A child of fork has a copy of the memory but not the threads, and a thread of its parent may have
 * held the mutex. So the child abandons the old crew and starts its own. */
struct qd_thread_pool {
  _Atomic(crew *) crew;
};

static crew *crew_create(void) {
  crew *c = calloc(1, sizeof *c);
  if (c == NULL) {
    return NULL;
  }
  c->pid = process_self();
  if (pthread_mutex_init(&c->mutex, NULL) != 0) {
    free(c);
    return NULL;
  }
  if (pthread_cond_init(&c->wake, NULL) != 0) {
    pthread_mutex_destroy(&c->mutex);
    free(c);
    return NULL;
  }
  return c;
}

static void crew_free(crew *c) {
  pthread_cond_destroy(&c->wake);
  pthread_mutex_destroy(&c->mutex);
  free(c);
}

static job *job_to_join(const crew *c) {
  job *j = c->jobs;
  while (j != NULL && j->helpers_wanted == 0) {
    j = j->next;
  }
  return j;
}

static void *helper_main(void *argument) {
  crew *c = argument;
  pthread_mutex_lock(&c->mutex);
  while (!c->stop) {
    job *j = job_to_join(c);
    if (j == NULL) {
      pthread_cond_wait(&c->wake, &c->mutex);
      continue;
    }
    --j->helpers_wanted;
    ++j->working;
    const int participant = ++j->joined;
    pthread_mutex_unlock(&c->mutex);
    j->work(j->context, participant);
    pthread_mutex_lock(&c->mutex);
    if (--j->working == 0) {
      pthread_cond_signal(&j->done); /* the mutex keeps the caller's job alive */
    }
  }
  pthread_mutex_unlock(&c->mutex);
  return NULL;
}

/* Starts threads up to the wanted number, with signals blocked. Fewer threads are no error. */
static void crew_grow(crew *c, int wanted) {
  if (c->thread_count >= wanted) {
    return;
  }
  signal_mask before;
  signals_block(&before);
  while (c->thread_count < wanted &&
         pthread_create(&c->threads[c->thread_count], NULL, helper_main, c) == 0) {
    ++c->thread_count;
  }
  signals_restore(&before);
}

static crew *crew_of(qd_thread_pool *pool) {
  crew *found = atomic_load(&pool->crew);
  if (found != NULL && found->pid == process_self()) {
    return found;
  }
  crew *fresh = crew_create();
  if (fresh != NULL && !atomic_compare_exchange_strong(&pool->crew, &found, fresh)) {
    crew_free(fresh); /* another thread was first */
    fresh = found;
  }
  return fresh;
}

static void job_publish(crew *c, job *j) {
  pthread_mutex_lock(&c->mutex);
  ++c->caller_count;
  crew_grow(c, j->helpers_wanted);
  job **end = &c->jobs;
  while (*end != NULL) {
    end = &(*end)->next;
  }
  *end = j;
  if (j->helpers_wanted >= c->thread_count) {
    pthread_cond_broadcast(&c->wake);
  } else {
    for (int i = 0; i < j->helpers_wanted; ++i) {
      pthread_cond_signal(&c->wake);
    }
  }
  pthread_mutex_unlock(&c->mutex);
}

/* Waits, with the mutex held, until all helpers have ended or for WAIT_NANOSECONDS. */
static void wait_a_while(crew *c, job *j) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += WAIT_NANOSECONDS;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  pthread_cond_timedwait(&j->done, &c->mutex, &until);
}

static void job_withdraw(crew *c, job *j, void (*wait)(void *context)) {
  pthread_mutex_lock(&c->mutex);
  job **place = &c->jobs;
  while (*place != j) {
    place = &(*place)->next;
  }
  *place = j->next;
  while (j->working > 0) {
    wait_a_while(c, j);
    if (j->working > 0) {
      pthread_mutex_unlock(&c->mutex);
      wait(j->context);
      pthread_mutex_lock(&c->mutex);
    }
  }
  --c->caller_count;
  pthread_mutex_unlock(&c->mutex);
}

void thread_pool_run(qd_thread_pool *pool, int helper_count, thread_pool_work work,
                     void (*wait)(void *context), void *context) {
  job j = {.work = work, .context = context};
  j.helpers_wanted = helper_count < QD_THREADS_MAX ? helper_count : QD_THREADS_MAX;
  crew *c = pool != NULL && helper_count > 0 ? crew_of(pool) : NULL;
  if (c == NULL || pthread_cond_init(&j.done, NULL) != 0) {
    work(context, 0);
    return;
  }
  job_publish(c, &j);
  work(context, 0);
  job_withdraw(c, &j, wait);
  pthread_cond_destroy(&j.done);
}

qd_thread_pool *qd_thread_pool_create(void) {
  qd_thread_pool *pool = malloc(sizeof *pool);
  if (pool != NULL) {
    atomic_init(&pool->crew, NULL);
  }
  return pool;
}

void qd_thread_pool_destroy(qd_thread_pool *pool) {
  if (pool == NULL) {
    return;
  }
  crew *c = atomic_load(&pool->crew);
  if (c != NULL && c->pid == process_self()) {
    pthread_mutex_lock(&c->mutex);
    const int busy = c->caller_count > 0; /* a caller never returned: its data stay */
    c->stop = !busy;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->mutex);
    if (busy) {
      return;
    }
    for (int i = 0; i < c->thread_count; ++i) {
      pthread_join(c->threads[i], NULL);
    }
    crew_free(c);
  }
  free(pool);
}
