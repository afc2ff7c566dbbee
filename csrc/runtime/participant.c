#include "runtime/participant.h"

#include <stdlib.h>
#include <string.h>

#include "mechanics/applied.h"
#include "mechanics/kinematics.h"

participant *participant_create(const qd_model *model) {
  const size_t nq = (size_t)model->nq, nv = (size_t)model->nv, nu = (size_t)model->nu;
  const size_t nf = QD_CONSTRAINT_FORCE * (size_t)model->constraint.count;
  const size_t nw = QD_WRENCH * (size_t)model->body.count;
  const size_t nt = (size_t)model->tendon.count, nm = QD_POSE * (size_t)model->mocap_count;
  const size_t nb = QD_BRISTLES * (size_t)model->pair.soft_count;
  participant *p =
      calloc(1, sizeof *p + (nq + nu + 6 * nv + nw + nm + nb + 2 * (nf + nt)) * sizeof(double));
  if (p == NULL || (p->workspace = qd_workspace_create(model, 0)) == NULL) {
    free(p);
    return NULL;
  }
  p->q = p->numbers;
  p->v = p->q + nq;
  p->u = p->v + nv;
  p->tau = p->u + nu;
  p->wrench = p->tau + nv;
  p->mocap = p->wrench + nw;
  p->delta = p->mocap + nm;
  p->limit_force = p->delta + nv;
  p->constraint_force = p->limit_force + nv;
  p->tendon_force = p->constraint_force + nf;
  p->bristle = p->tendon_force + nt;
  p->kept = p->bristle + nb;
  return p;
}

void participant_destroy(participant *p) {
  if (p != NULL) {
    qd_workspace_destroy(p->workspace);
    model_variant_destroy(p->variant);
    tape_destroy(p->tape);
    free(p->contacts);
    free(p);
  }
}

int participant_reserve_variant(participant *p, const qd_model *model) {
  model_variant_destroy(p->variant);
  p->variant = model_variant_create(model);
  p->variant_is_set = 0;
  return p->variant != NULL;
}

tape *participant_tape(participant *p, const qd_model *model) {
  if (p->tape == NULL) {
    p->tape = tape_create(model);
  }
  return p->tape;
}

qd_status participant_append(participant *p, const qd_step_result *result) {
  const int64_t wanted = p->contact_count + result->contact_count;
  if (wanted > p->contact_room) {
    const int64_t room = 2 * wanted;
    qd_contact *larger = realloc(p->contacts, (size_t)room * sizeof *larger);
    if (larger == NULL) {
      return QD_OUT_OF_MEMORY;
    }
    p->contacts = larger;
    p->contact_room = room;
  }
  if (result->contact_count > 0) {
    memcpy(p->contacts + p->contact_count, result->contacts,
           (size_t)result->contact_count * sizeof(qd_contact));
  }
  p->contact_count = wanted;
  return QD_OK;
}

qd_status participant_keep(participant *p, const qd_model *model, const qd_step_result *result) {
  const size_t nv = (size_t)model->nv;
  const size_t nf = QD_CONSTRAINT_FORCE * (size_t)model->constraint.count;
  double *limit_force = p->kept + nv, *constraint_force = limit_force + nv;
  double *tendon_force = constraint_force + nf;
  p->contact_count = 0;
  const qd_status status = participant_append(p, result);
  memcpy(p->kept, result->delta, nv * sizeof(double));
  memcpy(limit_force, result->limit_force, nv * sizeof(double));
  memcpy(constraint_force, result->constraint_force, nf * sizeof(double));
  memcpy(tendon_force, result->tendon_force, (size_t)model->tendon.count * sizeof(double));
  p->start = (qd_step_start){.contact_count = result->contact_count,
                             .contacts = p->contacts,
                             .delta = p->kept,
                             .limit_force = limit_force,
                             .constraint_force = constraint_force,
                             .tendon_force = tendon_force};
  return status;
}
