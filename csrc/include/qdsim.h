/* qdsim: convex quasi-dynamic contact. The public interface of the C core, in four parts.
 *
 * Units are SI (m, kg, s, rad, N). Matrices are row-major. Quaternions are unit, order w x y z.
 * A configuration q has nq numbers; a displacement v (or delta) has nv numbers in the tangent
 * space: hinge and slide one each; ball three (rotation vector in the axes of the frame before the
 * joint); free six (translation of the body origin, then the rotation vector in world axes). A
 * quasi-dynamic step is a pure map q_next = f(q, u): a qd_model never changes after its creation, a
 * qd_workspace is one thread's scratch memory and carries no state from call to call.
 */
#ifndef QDSIM_H
#define QDSIM_H

#include "qdsim/batches.h"
#include "qdsim/models.h"
#include "qdsim/solvers.h"
#include "qdsim/steps.h"

#endif
