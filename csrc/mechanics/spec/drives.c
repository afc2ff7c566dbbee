#include <math.h>

#include "mechanics/constraint.h"
#include "mechanics/spec/parts.h"
#include "mechanics/spec/spec_check.h"

int range_is_empty(const double *range) {
  return !(range[0] <= range[1]) || range[0] == INFINITY || range[1] == -INFINITY;
}

const char *force_range_fault(const double *range) {
  if (isnan(range[0]) || isnan(range[1])) {
    return "not a number";
  }
  return range_is_empty(range) ? "lower must not exceed upper" : NULL;
}

static int is_single(const qd_model_spec *s, int joint) {
  return joint >= 0 && joint < s->joint_count && s->joint_type[joint] <= QD_SLIDE;
}

static const char *joint_fault(const qd_model_spec *s, int i, int tendon) {
  const int joint = s->actuator_joint[i];
  if (tendon >= 0) {
    return joint == -1 ? NULL : "must be -1 where there is a tendon";
  }
  return is_single(s, joint) ? NULL : "must be a hinge or slide joint";
}

static qd_status check_actuator(const qd_model_spec *s, int i, const report *r) {
  const int tendon = spec_index(s->actuator_tendon, i);
  if (tendon >= s->tendon_count) {
    return spec_fail(r, "actuator_tendon", i, "no such tendon");
  }
  const char *fault = joint_fault(s, i, tendon);
  if (fault) {
    return spec_fail(r, "actuator_joint", i, fault);
  }
  fault = s->actuator_force_range ? force_range_fault(s->actuator_force_range + 2 * i) : NULL;
  if (fault) {
    return spec_fail(r, "actuator_force_range", i, fault);
  }
  fault = s->actuator_range ? force_range_fault(s->actuator_range + 2 * i) : NULL;
  if (fault) {
    return spec_fail(r, "actuator_range", i, fault);
  }
  const double *own = s->actuator_own_range ? s->actuator_own_range + 2 * i : NULL;
  if (own && (isnan(own[0]) || isnan(own[1]))) {
    return spec_fail(r, "actuator_own_range", i, "not a number");
  }
  if (s->actuator_gear[i] == 0.0 || isnan(s->actuator_gear[i])) {
    return spec_fail(r, "actuator_gear", i, "must be a number and not zero");
  }
  return QD_OK;
}

static qd_status check_actuators(const qd_model_spec *s, const report *r) {
  const int count = s->actuator_count;
  TRY(spec_finite(r, "actuator_gain", s->actuator_gain, count, 1));
  TRY(spec_finite(r, "actuator_gain_slope", s->actuator_gain_slope, count, 2));
  TRY(spec_finite(r, "actuator_bias", s->actuator_bias, count, 1));
  TRY(spec_not_negative(r, "actuator_stiffness", s->actuator_stiffness, count));
  TRY(spec_not_negative(r, "actuator_damping", s->actuator_damping, count));
  for (int i = 0; i < count; ++i) {
    TRY(check_actuator(s, i, r));
  }
  return QD_OK;
}

static qd_status check_coupling(const qd_model_spec *s, int i, const report *r) {
  const int32_t *joint = s->constraint_object + 2 * i;
  if (!is_single(s, joint[0]) || (joint[1] != -1 && !is_single(s, joint[1]))) {
    return spec_fail(r, "constraint_object", i, "must be hinge or slide joints");
  }
  return joint[0] != joint[1]
             ? QD_OK
             : spec_fail(r, "constraint_object", i, "a joint cannot follow itself");
}

static qd_status check_tendon_coupling(const qd_model_spec *s, int i, const report *r) {
  const int32_t *tendon = s->constraint_object + 2 * i;
  const int follows = tendon[1] >= -1 && tendon[1] < s->tendon_count;
  const int given = tendon[0] >= 0 && tendon[0] < s->tendon_count && follows;
  return given && tendon[0] != tendon[1]
             ? QD_OK
             : spec_fail(r, "constraint_object", i, "must be two different tendons");
}

static qd_status check_bodies_held(const qd_model_spec *s, int i, const report *r) {
  const int32_t *body = s->constraint_object + 2 * i;
  for (int k = 0; k < 2; ++k) {
    if (body[k] < 0 || body[k] >= s->body_count) {
      return spec_fail(r, "constraint_object", i, "no such body");
    }
  }
  return body[0] != body[1] ? QD_OK
                            : spec_fail(r, "constraint_object", i, "must be two different bodies");
}

static qd_status check_constraint(const qd_model_spec *s, int i, const report *r) {
  const int type = s->constraint_type[i];
  if (type < QD_CONNECT || type > QD_TENDON_COUPLING) {
    return spec_fail(r, "constraint_type", i, "unknown constraint");
  }
  if (type == QD_COUPLING) {
    return check_coupling(s, i, r);
  }
  if (type == QD_TENDON_COUPLING) {
    return check_tendon_coupling(s, i, r);
  }
  TRY(check_bodies_held(s, i, r));
  const double *data = s->constraint_data + CONSTRAINT_DATA * i;
  return type == QD_WELD ? spec_quats(r, "constraint_data", data + 6, 1) : QD_OK;
}

static qd_status check_constraints(const qd_model_spec *s, const report *r) {
  TRY(spec_finite(r, "constraint_data", s->constraint_data, s->constraint_count, CONSTRAINT_DATA));
  TRY(spec_row_solver(r, "constraint_solver", s->constraint_solver, s->constraint_count, 8));
  TRY(spec_finite(r, "constraint_torquescale", s->constraint_torquescale, s->constraint_count, 1));
  TRY(spec_not_negative(r, "constraint_compliance", s->constraint_compliance,
                        2 * s->constraint_count));
  for (int i = 0; i < s->constraint_count; ++i) {
    TRY(check_constraint(s, i, r));
  }
  return QD_OK;
}

static qd_status check_tendon_ranges(const qd_model_spec *s, int t, const report *r) {
  if (range_is_empty(s->tendon_range + 2 * t)) {
    return spec_fail(r, "tendon_range", t, "lower must not exceed upper");
  }
  const double *rest = s->tendon_springrange ? s->tendon_springrange + 2 * t : NULL;
  if (rest && !(isfinite(rest[0]) && isfinite(rest[1]) && rest[0] <= rest[1])) {
    return spec_fail(r, "tendon_springrange", t, "must be finite, and lower must not exceed upper");
  }
  return QD_OK;
}

static int spec_tendon_part(const qd_model_spec *s, int i) {
  return s->tendon_part != NULL ? s->tendon_part[i] : QD_TENDON_POINT;
}

/* The fault of row i of a spatial tendon whose rows are first .. end - 1; NULL: none. */
static const char *part_fault(const qd_model_spec *s, int i, int first, int end) {
  const int part = spec_tendon_part(s, i), object = s->tendon_object[i];
  const int before = i > first ? spec_tendon_part(s, i - 1) : QD_TENDON_PULLEY;
  const int next = i + 1 < end ? spec_tendon_part(s, i + 1) : QD_TENDON_PULLEY;
  switch (part) {
  case QD_TENDON_POINT:
    return before == QD_TENDON_PULLEY && next == QD_TENDON_PULLEY ? "no line leads to or from it"
                                                                  : NULL;
  case QD_TENDON_WRAP:
    if (before != QD_TENDON_POINT || next != QD_TENDON_SIDE) {
      return "a geometry needs a point before it, and a row for its side behind it";
    }
    return object >= 0 && object < s->geom_count &&
                   (s->geom_type[object] == QD_SPHERE || s->geom_type[object] == QD_CYLINDER)
               ? NULL
               : "must be a sphere or a cylinder";
  case QD_TENDON_SIDE:
    if (before != QD_TENDON_WRAP || next != QD_TENDON_POINT) {
      return "a side needs a geometry before it, and a point behind it";
    }
    return object >= -1 && object < s->body_count ? NULL : "no such body";
  case QD_TENDON_PULLEY:
    if (next != QD_TENDON_POINT) {
      return "a pulley needs a point behind it";
    }
    return s->tendon_data[3 * i] > 0.0 ? NULL : "a pulley's divisor must be positive";
  default:
    return "unknown part";
  }
}

static qd_status check_tendon_parts(const qd_model_spec *s, int t, int first, const report *r) {
  const int end = first + s->tendon_point_count[t];
  for (int i = first; i < end; ++i) {
    const int spatial = s->tendon_type[t] == QD_TENDON_SPATIAL;
    const char *fault = spatial ? part_fault(s, i, first, end)
                                : (spec_tendon_part(s, i) == QD_TENDON_POINT
                                       ? NULL
                                       : "only spatial tendons have other parts than points");
    if (fault) {
      return spec_fail(r, "tendon_part", i, fault);
    }
  }
  return QD_OK;
}

/* Checks the joints of a fixed tendon, or the bodies of other tendons. */
static qd_status check_tendon_objects(const qd_model_spec *s, int t, int first, const report *r) {
  const int fixed = s->tendon_type[t] == QD_TENDON_FIXED;
  const int thrust = s->tendon_type[t] == QD_TENDON_THRUST;
  for (int i = first; i < first + s->tendon_point_count[t]; ++i) {
    const int object = s->tendon_object[i];
    if (spec_tendon_part(s, i) != QD_TENDON_POINT) {
      continue;
    }
    if (fixed && !is_single(s, object)) {
      return spec_fail(r, "tendon_object", i, "must be a hinge or slide joint");
    }
    if (!fixed && (object < 0 || object >= s->body_count)) {
      return spec_fail(r, "tendon_object", i, "no such body");
    }
    if (thrust && object != s->tendon_object[first]) {
      return spec_fail(r, "tendon_object", i, "a thrust is of one body");
    }
    if (s->tendon_type[t] == QD_TENDON_REACH && i >= first + 2 &&
        object != s->tendon_object[i == first + 3 ? first : first + 1]) {
      return spec_fail(r, "tendon_object", i,
                       "a reach has direction and axis in the second body, and the rotation that "
                       "counts as none in the first");
    }
  }
  return QD_OK;
}

static qd_status check_tendon(const qd_model_spec *s, int t, int first, const report *r) {
  const int count = s->tendon_point_count[t], type = s->tendon_type[t];
  if (type < QD_TENDON_FIXED || type > QD_TENDON_REACH) {
    return spec_fail(r, "tendon_type", t, "unknown tendon");
  }
  if (type == QD_TENDON_THRUST && count != 3) {
    return spec_fail(r, "tendon_point_count", t, "a thrust has a point, a force and a moment");
  }
  if (type == QD_TENDON_REACH && count != 3 && count != 5) {
    return spec_fail(r, "tendon_point_count", t,
                     "a reach has two points and a direction, or a rotation and an axis, too");
  }
  if (count < (type == QD_TENDON_FIXED ? 1 : 2) || count > s->tendon_point_total - first) {
    return spec_fail(r, "tendon_point_count", t,
                     "too few joints or points, or more than there are");
  }
  TRY(check_tendon_parts(s, t, first, r));
  TRY(check_tendon_objects(s, t, first, r));
  return check_tendon_ranges(s, t, r);
}

static qd_status check_tendons(const qd_model_spec *s, const report *r) {
  int first = 0;
  TRY(spec_finite(r, "tendon_data", s->tendon_data, s->tendon_point_total, 3));
  TRY(spec_not_negative(r, "tendon_stiffness", s->tendon_stiffness, s->tendon_count));
  TRY(spec_not_negative(r, "tendon_frictionloss", s->tendon_frictionloss, s->tendon_count));
  TRY(spec_not_negative(r, "tendon_damping", s->tendon_damping, s->tendon_count));
  TRY(spec_row_solver(r, "tendon_limit_solver", s->tendon_limit_solver, s->tendon_count, 9));
  TRY(spec_row_solver(r, "tendon_friction_solver", s->tendon_friction_solver, s->tendon_count, 8));
  TRY(spec_finite(r, "tendon_invweight", s->tendon_invweight, s->tendon_count, 1));
  for (int t = 0; t < s->tendon_count; ++t) {
    TRY(check_tendon(s, t, first, r));
    first += s->tendon_point_count[t];
  }
  return first == s->tendon_point_total
             ? QD_OK
             : spec_fail(r, "tendon_object", first, "belongs to no tendon");
}

qd_status spec_check_drives(const qd_model_spec *s, const report *r) {
  TRY(check_actuators(s, r));
  TRY(check_constraints(s, r));
  return check_tendons(s, r);
}
