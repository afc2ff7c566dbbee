#include "dynamics/begin.h"

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
  working_set_choose(&w->set, model, options, &w->collision, input);
  if (is_warm) {
    warm_start_choose(&w->warm, model, &w->set);
  }
}

/* Contacts of the shapes at q; of an exact step that leaves distant pairs out, of those that its
 * motion might bring together. */
static void find_contacts(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                          const qd_step_input *input, int near_only) {
  const screw *motion = NULL;
  if (isinf(options->kappa)) {
    motion = working_set_motion(&w->set, model, options, &w->kinematics, input);
  }
  collision_compute_near(model, &w->kinematics, options->margin, near_only ? motion : NULL,
                         &w->collision);
}

void begin_contacts(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                    const qd_step_input *input, int near_only) {
  find_contacts(model, w, options, input, near_only);
  set_begin(model, w, options, input);
}
