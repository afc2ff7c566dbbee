#include "runtime/tape.h"

#include <stdlib.h>

#include "mechanics/applied.h"
#include "mechanics/kinematics.h"
#include "mechanics/model.h"

/* Memory, by size of the workspaces, that a thread's tape may take by default; a step touches only
 * a small part of its workspace. Ten times less: rollouts of 50 steps with a hand are stepped
 * twice. */
#define TAPE_BYTES ((size_t)128 << 20)

tape *tape_create(const qd_model *model) {
  size_t parameters = 0;
  for (int i = QD_BY_PARAMETER; i < QD_ARGUMENT_COUNT; ++i) {
    parameters += (size_t)qd_argument_size(model, i);
  }
  const size_t nv = (size_t)model->nv, nu = (size_t)model->nu;
  tape *t = calloc(1, sizeof *t + (7 * nv + nu + parameters) * sizeof(double));
  if (t == NULL) {
    return NULL;
  }
  t->model = model;
  t->cotangent = t->numbers;
  t->by_q = t->cotangent + nv;
  t->v_cotangent = t->by_q + nv;
  t->by_v = t->v_cotangent + nv;
  t->by_u = t->by_v + nv;
  t->away = t->by_u + nu;
  t->change = t->away + nv;
  t->moved = t->change + nv;
  double *next = t->moved + nv;
  for (int i = QD_BY_PARAMETER; i < QD_ARGUMENT_COUNT; ++i) {
    t->by_parameter[i] = next;
    next += qd_argument_size(model, i);
  }
  return t;
}

static void step_destroy(taped_step *s) {
  if (s != NULL) {
    qd_workspace_destroy(s->workspace);
    free(s);
  }
}

void tape_destroy(tape *t) {
  for (int64_t i = 0; t != NULL && i < t->count; ++i) {
    step_destroy(t->steps[i]);
  }
  if (t != NULL) {
    free(t->steps);
    free(t);
  }
}

static taped_step *step_create(const qd_model *model) {
  const size_t nq = (size_t)model->nq, nv = (size_t)model->nv, nu = (size_t)model->nu;
  const size_t nw = QD_WRENCH * (size_t)model->body.count;
  const size_t nf = QD_CONSTRAINT_FORCE * (size_t)model->constraint.count;
  const size_t nt = (size_t)model->tendon.count, nm = QD_POSE * (size_t)model->mocap_count;
  taped_step *s =
      calloc(1, sizeof *s + (2 * nq + nu + 5 * nv + nw + nm + nf + nt) * sizeof(double));
  if (s == NULL || (s->workspace = qd_workspace_create(model, 0)) == NULL) {
    free(s);
    return NULL;
  }
  s->q = s->numbers;
  s->v = s->q + nq;
  s->u = s->v + nv;
  s->tau = s->u + nu;
  s->wrench = s->tau + nv;
  s->mocap = s->wrench + nw;
  s->result.q_next = s->mocap + nm;
  s->result.delta = s->result.q_next + nq;
  s->result.v_next = s->result.delta + nv;
  s->result.limit_force = s->result.v_next + nv;
  s->result.constraint_force = s->result.limit_force + nv;
  s->result.tendon_force = s->result.constraint_force + nf;
  return s;
}

qd_status tape_reserve(tape *t, int64_t count) {
  if (count <= t->count) {
    return QD_OK;
  }
  taped_step **larger = realloc(t->steps, (size_t)count * sizeof *larger);
  if (larger == NULL) {
    return QD_OUT_OF_MEMORY;
  }
  t->steps = larger;
  while (t->count < count) {
    if ((t->steps[t->count] = step_create(t->model)) == NULL) {
      return QD_OUT_OF_MEMORY;
    }
    ++t->count;
  }
  return QD_OK;
}

int64_t tape_affordable(tape *t) {
  if (tape_reserve(t, 1) != QD_OK) {
    return 0;
  }
  const size_t each = qd_workspace_bytes(t->steps[0]->workspace);
  return (int64_t)(TAPE_BYTES / each) + 1;
}
