/* Workspaces of one model, lent to one thread at a time. */
#ifndef QD_BINDING_WORKSPACE_POOL_H
#define QD_BINDING_WORKSPACE_POOL_H

#include <Python.h>

#include "qdsim.h"

/* A workspace and the vectors of one call. The caller's arrays are copied here first, so that
 * another thread that writes to them during the call cannot change checked numbers. */
typedef struct workspace_entry {
  struct workspace_entry *next;
  qd_workspace *workspace;
  double *q;                /* (nq) */
  double *u;                /* (nu) */
  double *tau;              /* (nv) */
  double *wrench;           /* (body_count, 6) */
  double *mocap;            /* (mocap_count, 7) */
  double *q_next;           /* (nq) */
  double *delta;            /* (nv) */
  double *limit_force;      /* (nv) */
  double *constraint_force; /* (constraint_count, 6) */
  double *tendon_force;     /* (tendon_count) */
  double *v;                /* (nv) */
  double *v_next;           /* (nv) */
  double *actuator_force;   /* (2, nu) */
  double *bristle;          /* (soft_pair_count, 6) */
  double *bristle_next;     /* (soft_pair_count, 6) */
  double *A;                /* (nv, nv) */
  double *B;                /* (nv, nu) */
  double numbers[];         /* the memory behind the pointers */
} workspace_entry;

typedef struct workspace_pool {
  workspace_entry *idle;
#ifdef Py_GIL_DISABLED
  PyMutex mutex; /* with the GIL, acquire and release run under it */
#endif
} workspace_pool;

/* An idle entry or a new one; NULL if memory is exhausted (no exception set). */
workspace_entry *workspace_pool_acquire(workspace_pool *pool, const qd_model *model);
void workspace_pool_release(workspace_pool *pool, workspace_entry *entry);
/* Returns an entry; beyond one idle entry, it is freed. */
void workspace_pool_give_back(workspace_pool *pool, workspace_entry *entry);
void workspace_pool_clear(workspace_pool *pool);

#endif
