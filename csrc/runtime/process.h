/* Functions of the system's processes for the thread pool: fork and signals, if there are any. */
#ifndef QD_RUNTIME_PROCESS_H
#define QD_RUNTIME_PROCESS_H

#ifdef _WIN32

typedef int process_id; /* Windows has no fork */
typedef int signal_mask;

static inline process_id process_self(void) { return 0; }
static inline void signals_block(signal_mask *before) { *before = 0; }
static inline void signals_restore(const signal_mask *before) { (void)before; }

#else

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

typedef pid_t process_id;
typedef sigset_t signal_mask;

static inline process_id process_self(void) { return getpid(); }

/* Threads created between the two calls receive no signals, so the program's own threads handle
 * them. */
static inline void signals_block(signal_mask *before) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, before);
}
static inline void signals_restore(const signal_mask *before) {
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif

#endif
