/* Threads that wait for work, on POSIX threads, which only this file uses. Several callers may run
 * work at the same time, each from its own thread. */
#ifndef QD_RUNTIME_THREAD_POOL_H
#define QD_RUNTIME_THREAD_POOL_H

#include "qdsim.h"

/* work(context, participant): participants are numbered from 0, the calling thread. */
typedef void (*thread_pool_work)(void *context, int participant);

/* Runs work on the calling thread and on up to helper_count others at the same time; returns when
 * all participants that began have ended. Helpers may come late or never (others may be using
 * them), so participants share the work dynamically. Threads are created when first needed and
 * kept. While the calling thread waits for the others it calls wait(context) every few
 * milliseconds. */
void thread_pool_run(qd_thread_pool *pool, int helper_count, thread_pool_work work,
                     void (*wait)(void *context), void *context);

#endif
