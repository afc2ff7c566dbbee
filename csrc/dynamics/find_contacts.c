#include "dynamics/find_contacts.h"

#include <math.h>

#include "dynamics/warm_start.h"

/* Which contacts and limits a step begins with; a barrier acts at any distance. */
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

void begin_contacts(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                    const qd_step_input *input) {
  w->collision.by_edges = options->contacts == QD_CONTACTS_MUJOCO;
  collision_compute(model, &w->kinematics, options->margin, &w->collision);
  set_begin(model, w, options, input);
}
