/* Index tables that follow from a model's topology, computed once. */
#ifndef QD_MECHANICS_MODEL_TABLES_H
#define QD_MECHANICS_MODEL_TABLES_H

#include "mechanics/model.h"

/* Chains, DOF tables, actuated DOFs, geometry bounds, the plane of planar models. */
void model_tables_fill(qd_model *model, const qd_model_spec *spec);
/* Largest mass diagonal per tree at q. 0 if memory is exhausted. */
int model_inertia_tables_fill(qd_model *model, const double *q);

#endif
