/* Common parts of the docstrings of steps. */
#ifndef QD_BINDING_DOCSTRINGS_H
#define QD_BINDING_DOCSTRINGS_H

#define DOC_CONFIGURATION                                                                          \
  "    model: the qdsim.Model.\n"                                                                  \
  "    q: (nq) configuration; its quaternions are unit to within 1e-3, and normalised.\n"

#define DOC_COMMANDS "    u: (nu) commands, in the units of the actuators.\n"

#define DOC_FORCES                                                                                 \
  "    tau: (nv) applied generalised force, N or Nm; on actuated joints it adds to their "         \
  "springs'.\n"                                                                                    \
  "    wrench: (body_count, 6), or a mapping from names of bodies to (6): applied force, N, at "   \
  "the\n"                                                                                          \
  "        centre of mass, then moment, Nm, world axes (as MuJoCo's xfrc_applied).\n"              \
  "    mocap: (mocap_count, 7) poses in the order of model.mocap_names, or a mapping from names "  \
  "to\n"                                                                                           \
  "        (7): position, m, and quaternion w x y z. Others keep their poses of the "              \
  "model.\n"

#define DOC_RAISES                                                                                 \
  "Raises:\n"                                                                                      \
  "    TypeError, ValueError: an argument has a wrong type, shape or value; the message names "    \
  "it.\n"                                                                                          \
  "    SolverError: the program has no solution, or was not solved; `info` holds its residuals.\n"

#endif
