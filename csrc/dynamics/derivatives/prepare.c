#include "dynamics/derivatives/differential.h"

#include <math.h>

#include "dynamics/friction_law.h"
#include "dynamics/workspace.h"

/* 1 if all offsets of the step's programs have the derivatives that the rows imply. */
static int has_plain_offsets(const qd_step_result *result) {
  return result->relaxed_contacts == 0 && result->softened == 0 && result->bounce_share == 1.0;
}

/* 1 if the weight of a row along one DOF differs from that of the model. */
static int is_shared(const qd_model *model, int dof, double weight) {
  return weight > 0.0 && weight != model->dof.invweight[dof];
}

/* 1 if a row of a limit acts, or one of dry friction sticks. */
static int row_gives(const problem *p, int row, int is_limit) {
  const double force = p->solution.dual[row];
  return is_limit ? force > 0.0 : force > p->program.lower[row] && force < p->program.upper[row];
}

/* 1 if an active inverse weight depends on the metric (metric_share.h), whose derivatives are not
 * computed. */
static int weights_move(const solved_step *s) {
  const problem *p = &s->w->problem;
  int found = 0;
  for (int i = 0; i < s->w->collision.count && !found; ++i) {
    found = p->block[i].weight_share != 1.0 && problem_contact_counts(p, i, 1);
  }
  for (int i = 0; i < p->count.limits && !found; ++i) {
    found = is_shared(s->model, p->limit[i].dof, p->limit[i].weight) &&
            row_gives(p, p->limit[i].row, 1);
  }
  for (int i = 0; i < p->count.force_rows && !found; ++i) {
    const force_row *row = p->force_row + i;
    found = is_shared(s->model, row->dof, row->weight) && row_gives(p, row->row, 0);
  }
  for (int i = 0; i < p->count.turn_rows && !found; ++i) {
    const turn_row *row = p->turn_row + i;
    found = row->shares && row_gives(p, row->row, row->is_limit);
  }
  for (int i = 0; i < p->count.tendon_rows && !found; ++i) {
    const tendon_row *row = p->tendon_row + i;
    found = row->shares && row_gives(p, row->row, row->kind == TENDON_LIMIT);
  }
  for (int i = 0; i < p->count.equalities && !found; ++i) {
    found = p->equality[i].shares;
  }
  return found;
}

qd_status derivatives_prepare(const solved_step *s, qd_step_result *result) {
  qd_workspace *w = s->w;
  problem *p = &w->problem;
  const int plain = has_plain_offsets(result);
  qd_status status = QD_OK;
  result->derivative_exact = plain && !weights_move(s);
  memset(w->differential.counts, 0, (size_t)w->collision.count * sizeof(int));
  pressure_derivative_begin(s);
  for (int i = 0; i < p->islands.count && status == QD_OK; ++i) {
    island *one = p->islands.island + i;
    one->exact = 1;
    if (one->gave) { /* the violation depends on q, too */
      result->derivative_exact = 0;
    }
    status = law_sensitivity_prepare(p, one, &one->exact);
    if (status == QD_OK && plain && isinf(s->options->kappa)) {
      status = derivatives_settle_sides(s, one, result->limit_force);
    }
    result->derivative_exact &= one->exact;
    derivatives_choose_contacts(s, one);
  }
  w->differential.poses_known = w->differential.sizes_known = 0;
  step_point_compute(&w->point, s);
  if (w->integration.applies) {
    const solved_step end = integration_end(s, result);
    step_point_compute(&w->after, &end);
    result->derivative_exact &= integration_is_plain(s);
  }
  return status;
}
