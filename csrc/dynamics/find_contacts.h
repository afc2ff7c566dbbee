/* What a step begins with: the contacts at q, and which of them are in its first program. */
#ifndef QD_DYNAMICS_FIND_CONTACTS_H
#define QD_DYNAMICS_FIND_CONTACTS_H

#include "dynamics/workspace.h"
#include "qdsim.h"

/* Fills the list of contacts, the working set and the places of a warm start; the kinematics are
 * those of q. */
void begin_contacts(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
                    const qd_step_input *input);

#endif
