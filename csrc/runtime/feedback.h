/* Commands of a rollout that depend on the state at the beginning of each step, and their
 * derivatives. */
#ifndef QD_RUNTIME_FEEDBACK_H
#define QD_RUNTIME_FEEDBACK_H

#include "runtime/rollout.h"

/* Adds the feedback of step t of sample i to p->u, which contains the input so far, and records it.
 */
void feedback_react(const rollout_job *job, participant *p, int64_t i, int64_t t);

/* The tape's by_u (nu) += change of the command of a step from q for the change of q in the tape's
 * cotangent (here a tangent), and of v in its v_cotangent; zero for clipped commands. */
void feedback_push(const rollout_job *job, tape *on, int64_t i, int64_t t, const double *q);
/* The tape's by_q and by_v (nv) += pullback of by_u (nu), the gradient with respect to the command,
 * which is set to zero for clipped commands. */
void feedback_pull(const rollout_job *job, tape *on, int64_t i, int64_t t, const double *q);

#endif
