#include "dynamics/step.h"

#include <math.h>

#include "base/lanes.h"
#include "dynamics/workspace.h"

#define TELLING 1e-2 /* relative to the largest weight */

/* Adds to the entry of the same bodies and kind, or appends; replaces the smallest entry if full.
 */
static void note(qd_step_result *result, int kind, int index, int body_a, int body_b,
                 double weight) {
  const qd_culprit one = {kind, index, body_a, body_b, fabs(weight)};
  qd_culprit *list = result->culprit;
  int least = 0;
  for (int i = 0; i < result->culprit_count; ++i) {
    if (list[i].kind == kind && list[i].body_a == body_a && list[i].body_b == body_b) {
      list[i].weight += one.weight;
      return;
    }
    least = list[i].weight < list[least].weight ? i : least;
  }
  if (result->culprit_count < QD_CULPRITS_MAX) {
    list[result->culprit_count++] = one;
  } else if (one.weight > list[least].weight) {
    list[least] = one;
  }
}

/* A DOF, for the body that it moves. */
static void note_dof(qd_step_result *result, const qd_model *model, int kind, int dof,
                     double weight) {
  note(result, kind, dof, model->dof.body[dof], model->dof.body[dof], weight);
}

/* Sorts by weight, without entries of little weight. */
static void settle(qd_step_result *result) {
  qd_culprit *list = result->culprit;
  for (int i = 1; i < result->culprit_count; ++i) {
    const qd_culprit one = list[i];
    int at = i;
    for (; at > 0 && list[at - 1].weight < one.weight; --at) {
      list[at] = list[at - 1];
    }
    list[at] = one;
  }
  const double largest = result->culprit_count > 0 ? list[0].weight : 0.0;
  int count = 0;
  while (count < result->culprit_count && list[count].weight > TELLING * largest) {
    list[count++].weight /= largest;
  }
  result->culprit_count = count;
}

static void note_contacts(const qd_workspace *w, const island *one, qd_step_result *result) {
  const problem *p = &w->problem;
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const int index = p->islands.contact_order[i];
    const qd_contact *contact = w->collision.contact + index;
    const contact_block *block = p->block + index;
    const double weight = max_norm(p->solution.dual + block->row, block->rows.count);
    if (weight > 0.0) {
      note(result, QD_CULPRIT_PAIR, contact->pair, contact->body_a, contact->body_b, weight);
    }
  }
}

/* The body that a side of a constraint holds. */
static int held_body(const qd_model *model, const constraint_state *s, int side) {
  if (s->rows > 1) {
    return s->body[side];
  }
  const int joints = s->dof[0] >= 0, *list = joints ? s->dof : s->tendon;
  const int at = list[side] >= 0 ? list[side] : list[0];
  return model->dof.body[joints ? at : model->tendon.dof[model->tendon.dof_start[at]]];
}

void culprits_of_contradiction(const qd_workspace *w, const island *one, qd_step_result *result) {
  const problem *p = &w->problem;
  result->culprit_count = 0;
  note_contacts(w, one, result);
  for (int i = one->limit; i < one->limit + one->limit_count; ++i) {
    note_dof(result, p->model, QD_CULPRIT_LIMIT, p->limit[i].dof,
             p->solution.dual[p->limit[i].row]);
  }
  for (int i = one->ball_limit; i < one->ball_limit + one->ball_limit_count; ++i) {
    const ball_limit *limit = p->ball_limit + i;
    note_dof(result, p->model, QD_CULPRIT_LIMIT, limit->dof, p->solution.dual[limit->row]);
  }
  for (int i = one->tendon_row; i < one->tendon_row + one->tendon_row_count; ++i) {
    const tendon_row *row = p->tendon_row + i;
    const int_list dofs = list_part(p->model->tendon.dof, p->model->tendon.dof_start, row->tendon);
    note(result, QD_CULPRIT_TENDON, row->tendon, p->model->dof.body[dofs.at[0]],
         p->model->dof.body[dofs.at[dofs.count - 1]], p->solution.dual[row->row]);
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    const int index = p->equality[i].constraint;
    const constraint_state *s = p->constraint + index;
    note(result, QD_CULPRIT_CONSTRAINT, index, held_body(p->model, s, 0), held_body(p->model, s, 1),
         p->solution.dual_eq[i]);
  }
  settle(result);
}

void culprits_of_motion(const qd_workspace *w, const island *one, const double *direction,
                        qd_step_result *result) {
  const problem *p = &w->problem;
  result->culprit_count = 0;
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    if (dof >= 0) {
      note_dof(result, p->model, QD_CULPRIT_MOTION, dof, direction[i]);
    }
  }
  settle(result);
}
