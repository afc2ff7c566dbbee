/* Commands of a rollout that react to the state in which each step begins, and their derivatives.
 */
#ifndef QD_RUNTIME_FEEDBACK_H
#define QD_RUNTIME_FEEDBACK_H

#include "runtime/rollout.h"

/* p->u, so far what the input has for step t of sample i, reacts to where it begins; the feedback
 * keeps it. */
void feedback_react(const rollout_job *job, participant *p, int64_t i, int64_t t);

/* The tape's by_u (nu) += change of the command of a step that was taken from q when q moves by the
 * tape's cotangent, here a tangent, and v by its v_cotangent; zero where the command is clipped. */
void feedback_push(const rollout_job *job, tape *on, int64_t i, int64_t t, const double *q);
/* The tape's by_q and by_v (nv) += pullback of by_u (nu), the gradient by the command, which is
 * set to zero where it is clipped. */
void feedback_pull(const rollout_job *job, tape *on, int64_t i, int64_t t, const double *q);

#endif
