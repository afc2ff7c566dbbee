/* Commands of a rollout that depend on the state at the beginning of each step, and their
 * derivatives. */
#ifndef QD_RUNTIME_FEEDBACK_H
#define QD_RUNTIME_FEEDBACK_H

#include "runtime/rollout.h"

/* Adds the feedback of step t of sample i to p->u, which holds the open-loop input, clips it, and
 * records the command. */
void feedback_react(const rollout_job *job, participant *p, int64_t i, int64_t t);

/* Adds to the tape's by_u (nu) the change of the command of a step from q. In: tangents of q and v
 * in the tape's cotangent and v_cotangent. Clipped commands do not change. */
void feedback_push(const rollout_job *job, tape *on, int64_t i, int64_t t, const double *q);
/* Adds to the tape's by_q and by_v (nv) the pullback of by_u (nu), the gradient with respect to the
 * command. Sets by_u to zero for clipped commands. */
void feedback_pull(const rollout_job *job, tape *on, int64_t i, int64_t t, const double *q);

#endif
