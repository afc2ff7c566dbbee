#include "dynamics/workspace.h"

#include <stdlib.h>
#include <string.h>

/* Row capacity per contact: pyramids of up to eight rows fit as they are; more rays make the
 * workspace grow by its contact capacity. */
#define ROWS_PER_CONTACT 8

static void lay_out_sensitivity(sensitivity *s, const qd_model *model, int row_capacity, arena *a) {
  const size_t nb = (size_t)model->body_count, nv = (size_t)model->nv;
  const size_t columns = nv + (size_t)model->nu;
  s->body_twist = arena_take(a, nb * sizeof(screw));
  s->unmoved_twist = arena_take(a, nv * sizeof(screw));
  s->body_wrench = arena_take(a, nb * sizeof(wrench));
  s->D = arena_doubles(a, nv * nv);
  s->row_scale = arena_doubles(a, nv);
  s->masked_delta = arena_doubles(a, nv);
  s->d_stationarity = arena_doubles(a, nv * columns);
  s->d_slack = arena_doubles(a, (size_t)row_capacity * columns);
  s->d_equality = arena_doubles(a, (size_t)model->constraint_row_count * columns);
  s->d_x = arena_doubles(a, nv * columns);
}

static void lay_out(qd_workspace *w, const qd_model *model, int contact_capacity, arena *a) {
  const int row_capacity = ROWS_PER_CONTACT * contact_capacity + 2 * model->nv;
  kinematics_lay_out(&w->kinematics, model, a);
  kinematics_lay_out(&w->next, model, a);
  inertia_lay_out(&w->inertia, model, a);
  collision_lay_out(&w->collision, model, contact_capacity, a);
  problem_lay_out(&w->problem, model, contact_capacity, row_capacity, a);
  lay_out_sensitivity(&w->sensitivity, model, row_capacity, a);
}

/* Fills an empty workspace; on failure it stays empty. */
static qd_status allocate(const qd_model *model, qd_workspace *w, int contact_capacity) {
  arena counting = {NULL, 0};
  lay_out(w, model, contact_capacity, &counting);
  w->block = aligned_alloc(ARENA_ALIGNMENT, counting.offset + ARENA_ALIGNMENT);
  w->cone = qd_cone_workspace_create(model->nv > 0 ? model->nv : 1, w->problem.row_capacity,
                                     model->constraint_row_count);
  if (w->block == NULL || w->cone == NULL) {
    return QD_OUT_OF_MEMORY;
  }
  w->block_bytes = counting.offset + ARENA_ALIGNMENT;
#ifndef NDEBUG
  memset(w->block, 0xff, w->block_bytes); /* NaN: nothing may be read before it is written */
#endif
  arena a = {w->block, 0};
  lay_out(w, model, contact_capacity, &a);
  return QD_OK;
}

static void release(qd_workspace *w) {
  free(w->block);
  qd_cone_workspace_destroy(w->cone);
  memset(w, 0, sizeof *w);
}

qd_workspace *qd_workspace_create(const qd_model *model, int contact_capacity) {
  qd_workspace *w = calloc(1, sizeof *w);
  const int capacity = contact_capacity > 0 ? contact_capacity : model->contact_capacity;
  if (w != NULL && allocate(model, w, capacity) != QD_OK) {
    qd_workspace_destroy(w);
    w = NULL;
  }
  return w;
}

void qd_workspace_destroy(qd_workspace *workspace) {
  if (workspace != NULL) {
    release(workspace);
    free(workspace);
  }
}

qd_status qd_workspace_reserve(const qd_model *model, qd_workspace *workspace,
                               int contact_capacity) {
  if (contact_capacity <= workspace->collision.capacity) {
    return QD_OK;
  }
  qd_workspace larger;
  memset(&larger, 0, sizeof larger);
  const qd_status status = allocate(model, &larger, contact_capacity);
  if (status != QD_OK) {
    release(&larger); /* the old workspace stays usable */
    return status;
  }
  release(workspace);
  *workspace = larger;
  return QD_OK;
}

size_t qd_workspace_bytes(const qd_workspace *workspace) {
  return sizeof *workspace + workspace->block_bytes + qd_cone_workspace_bytes(workspace->cone);
}
