#include "binding/workspace_pool.h"

#include <stdlib.h>

static workspace_entry *entry_create(const qd_model *model) {
  size_t nq = (size_t)qd_model_nq(model);
  size_t nv = (size_t)qd_model_nv(model);
  size_t nu = (size_t)qd_model_nu(model);
  size_t nf = QD_CONSTRAINT_FORCE * (size_t)qd_model_constraint_count(model);
  size_t nw = 6 * (size_t)qd_model_body_count(model);
  size_t nt = (size_t)qd_model_tendon_count(model);
  size_t nm = 7 * (size_t)qd_model_mocap_count(model);
  size_t nb = QD_BRISTLES * (size_t)qd_model_soft_pair_count(model);
  size_t count = nm + 2 * nq + 3 * nu + 5 * nv + nw + nf + nt + 2 * nb + nv * nv + nv * nu;
  workspace_entry *entry = calloc(1, sizeof *entry + count * sizeof(double));
  if (!entry) {
    return NULL;
  }
  entry->workspace = qd_workspace_create(model, 0);
  if (!entry->workspace) {
    free(entry);
    return NULL;
  }
  entry->q = entry->numbers;
  entry->u = entry->q + nq;
  entry->tau = entry->u + nu;
  entry->wrench = entry->tau + nv;
  entry->mocap = entry->wrench + nw;
  entry->q_next = entry->mocap + nm;
  entry->delta = entry->q_next + nq;
  entry->limit_force = entry->delta + nv;
  entry->constraint_force = entry->limit_force + nv;
  entry->tendon_force = entry->constraint_force + nf;
  entry->actuator_force = entry->tendon_force + nt;
  entry->v = entry->actuator_force + 2 * nu;
  entry->v_next = entry->v + nv;
  entry->bristle = entry->v_next + nv;
  entry->bristle_next = entry->bristle + nb;
  entry->A = entry->bristle_next + nb;
  entry->B = entry->A + nv * nv;
  return entry;
}

workspace_entry *workspace_pool_acquire(workspace_pool *pool, const qd_model *model) {
#ifdef Py_GIL_DISABLED
  PyMutex_Lock(&pool->mutex);
#endif
  workspace_entry *entry = pool->idle;
  if (entry) {
    pool->idle = entry->next;
  }
#ifdef Py_GIL_DISABLED
  PyMutex_Unlock(&pool->mutex);
#endif
  return entry ? entry : entry_create(model);
}

void workspace_pool_release(workspace_pool *pool, workspace_entry *entry) {
#ifdef Py_GIL_DISABLED
  PyMutex_Lock(&pool->mutex);
#endif
  entry->next = pool->idle;
  pool->idle = entry;
#ifdef Py_GIL_DISABLED
  PyMutex_Unlock(&pool->mutex);
#endif
}

void workspace_pool_give_back(workspace_pool *pool, workspace_entry *entry) {
#ifdef Py_GIL_DISABLED
  PyMutex_Lock(&pool->mutex);
#endif
  int waits = pool->idle != NULL;
#ifdef Py_GIL_DISABLED
  PyMutex_Unlock(&pool->mutex);
#endif
  if (!waits) {
    workspace_pool_release(pool, entry);
    return;
  }
  qd_workspace_destroy(entry->workspace);
  free(entry);
}

void workspace_pool_clear(workspace_pool *pool) {
  workspace_entry *entry = pool->idle;
  pool->idle = NULL;
  while (entry) {
    workspace_entry *next = entry->next;
    qd_workspace_destroy(entry->workspace);
    free(entry);
    entry = next;
  }
}
