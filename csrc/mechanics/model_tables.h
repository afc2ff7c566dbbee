/* Tables of a model that are computed once, mostly of its topology. */
#ifndef QD_MECHANICS_MODEL_TABLES_H
#define QD_MECHANICS_MODEL_TABLES_H

#include "mechanics/inertia.h"
#include "mechanics/kinematics.h"
#include "mechanics/model.h"

/* Paths, DOF tables, actuated DOFs, geometry bounds, and the plane of planar models. */
void model_tables_fill(qd_model *model, const qd_model_spec *spec);
/* default_q and quantities at it: the plane, and the largest mass diagonal of each tree. Returns 0
 * if memory is exhausted. */
int model_inertia_tables_fill(qd_model *model, const double *q);

/* Recompute quantities that depend on parameters; the model's topology must be complete. */
void model_bounds_fill(qd_model *model);
void model_stiffness_fill(qd_model *model);
void model_compliance_fill(qd_model *model);
void model_radii_fill(qd_model *model);
void model_tree_inertia_fill(qd_model *model, const kinematics *k, const inertia *I);

#endif
