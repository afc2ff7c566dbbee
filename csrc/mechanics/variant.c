#include "mechanics/variant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "mechanics/inertia.h"
#include "mechanics/kinematics.h"
#include "mechanics/model_tables.h"
#include "mechanics/spec/spec_check.h"

struct model_variant {
  qd_model model;
  kinematics at_default; /* at default_q, which does not depend on parameters */
  inertia inertia;
};

/* ---------------------------------------------------------------- parameters by index */

static const char *const names[QD_PARAMETER_COUNT] = {
    "body_mass",
    "body_com",
    "body_inertia",
    "joint_stiffness",
    "joint_springref",
    "joint_damping",
    "joint_armature",
    "joint_friction",
    "actuator_stiffness",
    "actuator_gain",
    "actuator_bias",
    "actuator_damping",
    "actuator_force_range",
    "geom_size",
    "geom_modulus",
    "pair_friction",
    "pair_compliance",
    "tendon_stiffness",
    "gravity",
};

const char *qd_parameter_name(qd_parameter parameter) {
  return parameter >= 0 && parameter < QD_PARAMETER_COUNT ? names[parameter] : "unknown";
}

/* Returns the number of elements of a parameter; *width: numbers per element. */
static int shape(const qd_model *m, qd_parameter parameter, int *width) {
  static const int widths[QD_PARAMETER_COUNT] = {1, 3, 9, 1, 1, 1, 1, 1, 1, 1,
                                                 1, 1, 2, 3, 1, 5, 1, 1, 3};
  const int counts[QD_PARAMETER_COUNT] = {m->body.count,
                                          m->body.count,
                                          m->body.count,
                                          m->joint.count,
                                          m->joint.count,
                                          m->joint.count,
                                          m->joint.count,
                                          m->joint.count,
                                          m->nu,
                                          m->nu,
                                          m->nu,
                                          m->nu,
                                          m->nu,
                                          m->geom.count,
                                          m->geom.count,
                                          m->pair.count,
                                          m->pair.count,
                                          m->tendon.count,
                                          1};
  *width = widths[parameter];
  return counts[parameter];
}

int qd_parameter_size(const qd_model *model, qd_parameter parameter) {
  int width;
  const int count = shape(model, parameter, &width);
  return count * width;
}

static double *parameter_values(const model_parameters *p, qd_parameter parameter) {
  double *const all[QD_PARAMETER_COUNT] = {
      p->body_mass,
      p->body_com,
      p->body_inertia,
      p->joint_stiffness,
      p->joint_springref,
      p->joint_damping,
      p->joint_armature,
      p->joint_friction,
      p->actuator_stiffness,
      p->actuator_gain,
      p->actuator_bias,
      p->actuator_damping,
      p->actuator_force_range,
      p->geom_size,
      p->geom_modulus,
      p->pair_friction,
      p->pair_compliance,
      p->tendon_stiffness,
      p->gravity,
  };
  return all[parameter];
}

const double *qd_parameter_values(const qd_model *model, qd_parameter parameter) {
  return parameter_values(&model->parameters, parameter);
}

/* ---------------------------------------------------------------- checks */

/* A pressure field has the shape of its geometry at creation. */
static const char *field_size_fault(const qd_model *m, int geom, const double *size) {
  const double *made = m->parameters.geom_size + 3 * geom;
  const int same = size[0] == made[0] && size[1] == made[1] && size[2] == made[2];
  return m->geom.field[geom] >= 0 && !same ? "the size of a geometry with a pressure field is fixed"
                                           : geom_size_fault(m->geom.type[geom], size);
}

static const char *spring_fault(const qd_model *m, int actuator, double stiffness) {
  if (!m->actuator.is_spring[actuator]) {
    return stiffness == 0.0 ? NULL : "must be zero: this actuator has no spring";
  }
  return stiffness > 0.0 ? NULL : "must be positive";
}

/* 1 if a parameter's numbers only need to be nonnegative. */
static int only_sign_counts(qd_parameter parameter) {
  switch (parameter) {
  case QD_PARAMETER_BODY_MASS:
  case QD_PARAMETER_PAIR_COMPLIANCE:
  case QD_PARAMETER_TENDON_STIFFNESS:
  case QD_PARAMETER_JOINT_STIFFNESS:
  case QD_PARAMETER_JOINT_DAMPING:
  case QD_PARAMETER_JOINT_ARMATURE:
  case QD_PARAMETER_JOINT_FRICTION:
  case QD_PARAMETER_ACTUATOR_DAMPING:
    return 1;
  default:
    return 0;
  }
}

/* The fault of an element by the rules of model_spec_check; NULL if there is none. */
static const char *element_fault(const qd_model *m, qd_parameter parameter, int i,
                                 const double *value) {
  if (only_sign_counts(parameter)) {
    return value[0] < 0.0 ? "negative" : NULL;
  }
  switch (parameter) {
  case QD_PARAMETER_BODY_INERTIA:
    return is_inertia(value) ? NULL : "not symmetric positive semidefinite";
  case QD_PARAMETER_ACTUATOR_FORCE_RANGE:
    return force_range_fault(value);
  case QD_PARAMETER_ACTUATOR_STIFFNESS:
    return spring_fault(m, i, value[0]);
  case QD_PARAMETER_GEOM_SIZE:
    return field_size_fault(m, i, value);
  case QD_PARAMETER_GEOM_MODULUS:
    return geom_modulus_fault(m->parameters.geom_modulus[i] > 0.0, value[0]);
  case QD_PARAMETER_PAIR_FRICTION:
    return pair_friction_fault(m->pair.dim[i], value);
  default:
    return NULL;
  }
}

qd_status qd_parameter_check(const qd_model *model, qd_parameter parameter, const double *values,
                             int *index, const char **reason) {
  int width;
  const int count = shape(model, parameter, &width);
  for (int i = 0; i < count; ++i) {
    const double *value = values + i * width;
    *index = i;
    for (int k = 0; k < width && parameter != QD_PARAMETER_ACTUATOR_FORCE_RANGE; ++k) {
      if (!isfinite(value[k])) {
        *reason = "not finite";
        return QD_NOT_FINITE;
      }
    }
    *reason = element_fault(model, parameter, i, value);
    if (*reason != NULL) {
      return QD_BAD_ARGUMENT;
    }
  }
  *index = -1;
  *reason = NULL;
  return QD_OK;
}

/* ---------------------------------------------------------------- the variant */

static void lay_out(model_variant *v, const qd_model *base, arena *a) {
  qd_model *m = &v->model;
  model_parameters_lay_out(m, a);
  m->tree.inertia = arena_doubles(a, (size_t)base->body.count);
  m->dof.is_limited = arena_ints(a, (size_t)base->nv);
  m->actuator.inertia = arena_doubles(a, (size_t)base->nu);
  m->geom.radius = arena_doubles(a, (size_t)base->geom.count);
  kinematics_lay_out(&v->at_default, base, a);
  inertia_lay_out(&v->inertia, base, a);
}

model_variant *model_variant_create(const qd_model *base) {
  model_variant sizes;
  memset(&sizes, 0, sizeof sizes);
  sizes.model = *base;
  arena counting = {NULL, 0};
  arena_take(&counting, sizeof(model_variant));
  lay_out(&sizes, base, &counting);
  char *block = block_allocate(counting.offset);
  if (block == NULL) {
    return NULL;
  }
  memset(block, 0, counting.offset);
  arena a = {block, 0};
  model_variant *v = arena_take(&a, sizeof(model_variant));
  v->model = *base;
  lay_out(v, base, &a);
  const double *own[QD_PARAMETER_COUNT];
  for (int i = 0; i < QD_PARAMETER_COUNT; ++i) {
    own[i] = qd_parameter_values(base, (qd_parameter)i);
  }
  kinematics_compute(base, base->default_q, NULL, &v->at_default);
  model_variant_set(v, own);
  return v;
}

void model_variant_destroy(model_variant *variant) { block_free(variant); }

/* 1 if at least one of these parameters is given. */
static int has(const double *const values[QD_PARAMETER_COUNT], const qd_parameter *which,
               int count) {
  int any = 0;
  for (int i = 0; i < count; ++i) {
    any |= values[which[i]] != NULL;
  }
  return any;
}

/* Recomputes the quantities that depend on the given parameters. */
static void refill(model_variant *variant, const double *const values[QD_PARAMETER_COUNT]) {
  static const qd_parameter STIFFNESS[] = {QD_PARAMETER_ACTUATOR_STIFFNESS,
                                           QD_PARAMETER_ACTUATOR_GAIN, QD_PARAMETER_ACTUATOR_BIAS,
                                           QD_PARAMETER_ACTUATOR_DAMPING};
  static const qd_parameter COMPLIANCE[] = {QD_PARAMETER_PAIR_COMPLIANCE};
  static const qd_parameter BOUNDS[] = {QD_PARAMETER_JOINT_FRICTION,
                                        QD_PARAMETER_ACTUATOR_FORCE_RANGE};
  static const qd_parameter RADII[] = {QD_PARAMETER_GEOM_SIZE};
  static const qd_parameter INERTIA[] = {QD_PARAMETER_BODY_MASS, QD_PARAMETER_BODY_COM,
                                         QD_PARAMETER_BODY_INERTIA,
                                         QD_PARAMETER_ACTUATOR_FORCE_RANGE};
  qd_model *m = &variant->model;
  if (has(values, STIFFNESS, 4)) {
    model_stiffness_fill(m);
  }
  if (has(values, COMPLIANCE, 1)) {
    model_compliance_fill(m);
  }
  if (has(values, BOUNDS, 2)) {
    model_bounds_fill(m);
  }
  if (has(values, RADII, 1)) {
    model_radii_fill(m);
  }
  if (has(values, INERTIA, 4)) {
    inertia_compute(m, &variant->at_default, 1, &variant->inertia);
    model_tree_inertia_fill(m, &variant->at_default, &variant->inertia);
  }
}

void model_variant_set(model_variant *variant, const double *const values[QD_PARAMETER_COUNT]) {
  qd_model *m = &variant->model;
  for (int i = 0; i < QD_PARAMETER_COUNT; ++i) {
    const size_t size = (size_t)qd_parameter_size(m, (qd_parameter)i);
    if (values[i] != NULL && size > 0) {
      memcpy(parameter_values(&m->parameters, (qd_parameter)i), values[i], size * sizeof(double));
    }
  }
  refill(variant, values);
}

const qd_model *model_variant_model(const model_variant *variant) { return &variant->model; }
