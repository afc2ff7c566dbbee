/* Worker threads. Only thread_pool.c and process.h use POSIX threads. Several threads may call
 * thread_pool_run at the same time. */
#ifndef QD_RUNTIME_THREAD_POOL_H
#define QD_RUNTIME_THREAD_POOL_H

#include "qdsim.h"

/* work(context, participant). Participants are numbered from 0, which is the calling thread. */
typedef void (*thread_pool_work)(void *context, int participant);

/* Runs `work` on the calling thread and on up to helper_count other threads at the same time;
 * returns when all participants that began have ended. Helpers may come late or never, since other
 * callers may be using them: participants must share the work dynamically. Threads are created when
 * first needed and kept. While the calling thread waits for helpers it calls wait(context) every
 * few milliseconds. */
void thread_pool_run(qd_thread_pool *pool, int helper_count, thread_pool_work work,
                     void (*wait)(void *context), void *context);

#endif
