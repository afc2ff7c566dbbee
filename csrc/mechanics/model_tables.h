/* Index tables of a model's topology, computed once. */
#ifndef QD_MECHANICS_MODEL_TABLES_H
#define QD_MECHANICS_MODEL_TABLES_H

#include "mechanics/inertia.h"
#include "mechanics/kinematics.h"
#include "mechanics/model.h"

/* Chains, DOF tables, actuated DOFs, geometry bounds, the plane of planar models. */
void model_tables_fill(qd_model *model, const qd_model_spec *spec);
/* default_q, and quantities at it: the plane, the largest mass diagonal per tree. 0 if memory is
 * exhausted. */
int model_inertia_tables_fill(qd_model *model, const double *q);

/* Quantities that depend on parameters, for a model with a complete topology. */
void model_bounds_fill(qd_model *model);
void model_stiffness_fill(qd_model *model);
void model_compliance_fill(qd_model *model);
void model_radii_fill(qd_model *model);
void model_tree_inertia_fill(qd_model *model, const kinematics *k, const inertia *I);

#endif
