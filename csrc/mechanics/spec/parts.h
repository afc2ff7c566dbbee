/* Checks of a model spec, one function for each part. Later checks may rely on earlier ones. */
#ifndef QD_MECHANICS_SPEC_PARTS_H
#define QD_MECHANICS_SPEC_PARTS_H

#include "mechanics/spec/report.h"

/* tree.c: bodies, joints, mocap bodies */
qd_status spec_check_tree(const qd_model_spec *s, const report *r);
/* shapes.c: geometries, their meshes, point clouds and height fields */
qd_status spec_check_shapes(const qd_model_spec *s, const report *r);
/* contacts.c: pairs of geometries */
qd_status spec_check_pairs(const qd_model_spec *s, const report *r);
/* fields.c: pressure fields, and the pairs that have one */
qd_status spec_check_fields(const qd_model_spec *s, const report *r);
/* drives.c: actuators, constraints, tendons */
qd_status spec_check_drives(const qd_model_spec *s, const report *r);

#endif
