#include "dynamics/step.h"

#include <math.h>

#include "dynamics/problem/contact_dofs.h"
#include "dynamics/problem/islands.h"
#include "dynamics/problem/yield.h"
#include "dynamics/warm_start.h"
#include "dynamics/workspace.h"

/* Chooses the contacts and limits with which a step begins; a barrier acts at any distance. */
static void set_begin(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                      const qd_step_input *input) {
  const int is_warm = input->start != NULL;
  w->warm.from = input->start;
  w->warm.goes_on = 0;
  if (is_warm) {
    warm_start_match(&w->warm, input->start, &w->collision);
  }
  if (!isinf(options->kappa)) {
    working_set_fill(&w->set, model, &w->collision);
    return;
  }
  working_set_choose(&w->set, model, options, &w->kinematics, &w->collision, input);
  if (is_warm) {
    warm_start_choose(&w->warm, model, &w->set);
  }
}

/* 1 if no contact has a law that acts at a distance. */
static int all_yield(const qd_model *model) {
  return !model->pair.give && model->pair.soft_count == 0;
}

/* MuJoCo's contacts act only within their margin. */
static void drop_apart(const qd_model *model, const qd_step_options *options, collision *c) {
  int kept = 0;
  for (int i = 0; i < c->count && c->count <= c->capacity; ++i) {
    const int pair = c->contact[i].pair;
    if (!contact_yields(model, options, pair) || c->contact[i].dist < model->pair.margin[pair]) {
      c->contact[kept] = c->contact[i];
      c->feature[kept++] = c->feature[i];
    }
  }
  c->count = c->count <= c->capacity ? kept : c->count;
}

/* If only one DOF moves two rigid bodies relative to each other, sliding separates them or is
 * stopped by the normal force, so friction does not act. The convex laws, in which sliding
 * separates bodies, would hold the joint. */
static void drop_idle_friction(const qd_model *model, const qd_step_options *options,
                               collision *c) {
  for (int i = 0; i < c->count && c->count <= c->capacity; ++i) {
    qd_contact *contact = c->contact + i;
    const int pair = contact->pair;
    const contact_dofs dofs = contact_dofs_find(model, contact->body_a, contact->body_b);
    if (dofs.on[0].count + dofs.on[1].count == 1 && model->pair.soft[pair] < 0 &&
        !contact_yields(model, options, pair) && contact_compliance(model, options, pair) == 0.0) {
      contact->dim = 1;
    }
  }
}

void begin_contacts(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                    const qd_step_input *input) {
  w->collision.by_edges = options->contacts == QD_CONTACTS_MUJOCO;
  const int in_time = contacts_yield_in_time(options);
  const double margin = in_time && all_yield(model) ? 0.0 : options->margin;
  collision_compute(model, &w->kinematics, margin, &w->collision);
  if (in_time) {
    drop_apart(model, options, &w->collision);
  }
  if (options->law == QD_LAW_CONVEX) {
    drop_idle_friction(model, options, &w->collision);
  }
  set_begin(model, w, options, input);
}
