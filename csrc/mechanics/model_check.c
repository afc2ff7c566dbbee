#include "mechanics/model_check.h"

#include "geometry/fields/field.h"

#include <math.h>
#include <stdio.h>

#include "geometry/collide.h"
#include "mechanics/constraint.h"
#include "mechanics/model.h"

typedef struct report {
  char *message;
  size_t size;
} report;

static qd_status fail(const report *r, const char *array, int index, const char *reason) {
  if (r->message != NULL && r->size > 0) {
    snprintf(r->message, r->size, "%s[%d]: %s", array, index, reason);
  }
  return QD_BAD_ARGUMENT;
}

static qd_status check_finite(const report *r, const char *array, const double *values, int rows,
                              int columns) {
  for (int i = 0; values != NULL && i < rows * columns; ++i) {
    if (!isfinite(values[i])) {
      fail(r, array, i / columns, "not finite");
      return QD_NOT_FINITE;
    }
  }
  return QD_OK;
}

static qd_status check_quats(const report *r, const char *array, const double *quats, int count) {
  for (int i = 0; i < count; ++i) {
    const double *q = quats + 4 * i;
    const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(fabs(norm - 1.0) <= 1e-3)) {
      return fail(r, array, i, "not a unit quaternion");
    }
  }
  return QD_OK;
}

/* values: may be NULL */
static qd_status check_not_negative(const report *r, const char *array, const double *values,
                                    int count) {
  for (int i = 0; values != NULL && i < count; ++i) {
    if (!(values[i] >= 0.0 && isfinite(values[i]))) {
      return fail(r, array, i, "negative, or not finite");
    }
  }
  return QD_OK;
}

#define TRY(call)                                                                                  \
  do {                                                                                             \
    const qd_status status_ = (call);                                                              \
    if (status_ != QD_OK) {                                                                        \
      return status_;                                                                              \
    }                                                                                              \
  } while (0)

/* Positive semidefinite up to rounding, by its principal minors. */
int is_inertia(const double *I) {
  const double scale = fabs(I[0]) + fabs(I[4]) + fabs(I[8]);
  const double asymmetry = fabs(I[1] - I[3]) + fabs(I[2] - I[6]) + fabs(I[5] - I[7]);
  if (asymmetry > 1e-9 * scale) {
    return 0;
  }
  const double minor = I[0] * I[4] - I[1] * I[3];
  const double det = I[0] * (I[4] * I[8] - I[5] * I[7]) - I[1] * (I[3] * I[8] - I[5] * I[6]) +
                     I[2] * (I[3] * I[7] - I[4] * I[6]);
  const double slack = -1e-9 * scale;
  return I[0] >= slack && I[4] >= slack && I[8] >= slack && minor >= slack * scale &&
         det >= slack * scale * scale;
}

static qd_status check_bodies(const qd_model_spec *s, const report *r) {
  if (s->body_count < 1 || s->body_parent[0] != 0) {
    return fail(r, "body_parent", 0, "body 0 must be the world");
  }
  for (int b = 1; b < s->body_count; ++b) {
    if (s->body_parent[b] < 0 || s->body_parent[b] >= b) {
      return fail(r, "body_parent", b, "parents must come before their children");
    }
  }
  TRY(check_finite(r, "body_pos", s->body_pos, s->body_count, 3));
  TRY(check_finite(r, "body_quat", s->body_quat, s->body_count, 4));
  TRY(check_quats(r, "body_quat", s->body_quat, s->body_count));
  TRY(check_finite(r, "body_mass", s->body_mass, s->body_count, 1));
  TRY(check_finite(r, "body_com", s->body_com, s->body_count, 3));
  TRY(check_finite(r, "body_inertia", s->body_inertia, s->body_count, 9));
  for (int b = 0; b < s->body_count; ++b) {
    if (s->body_mass[b] < 0.0) {
      return fail(r, "body_mass", b, "negative");
    }
    if (s->body_gravcomp != NULL && !isfinite(s->body_gravcomp[b])) {
      return fail(r, "body_gravcomp", b, "not finite");
    }
    if (!is_inertia(s->body_inertia + 9 * b)) {
      return fail(r, "body_inertia", b, "not symmetric positive semidefinite");
    }
  }
  return QD_OK;
}

/* Of its own pose alone a mocap body is the child: no joints, no other parent. */
static qd_status check_mocap(const qd_model_spec *s, const report *r) {
  for (int i = 0; i < s->mocap_count; ++i) {
    const int body = s->mocap_body[i];
    int joints = 0, twice = 0;
    for (int j = 0; j < s->joint_count; ++j) {
      joints += s->joint_body[j] == body;
    }
    for (int k = 0; k < i; ++k) {
      twice |= s->mocap_body[k] == body;
    }
    if (body < 1 || body >= s->body_count || s->body_parent[body] != 0 || joints > 0 || twice) {
      return fail(r, "mocap_body", i, "must be a child of the world without joints, named once");
    }
  }
  return QD_OK;
}

static qd_status check_joint(const qd_model_spec *s, int j, const report *r) {
  const int type = s->joint_type[j];
  const int body = s->joint_body[j];
  if (type < QD_HINGE || type > QD_FREE) {
    return fail(r, "joint_type", j, "unknown joint type");
  }
  if (body < 1 || body >= s->body_count || (j > 0 && body < s->joint_body[j - 1])) {
    return fail(r, "joint_body", j, "joints must be sorted by body, and the world has none");
  }
  if (type == QD_FREE && s->body_parent[body] != 0) {
    return fail(r, "joint_type", j, "a free joint's body must be a child of the world");
  }
  const int shares = (j > 0 && s->joint_body[j - 1] == body) ||
                     (j + 1 < s->joint_count && s->joint_body[j + 1] == body);
  if (type == QD_FREE && shares) {
    return fail(r, "joint_type", j, "a free joint must be the only one of its body");
  }
  const double *axis = s->joint_axis + 3 * j;
  const double norm = sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
  if (type <= QD_SLIDE && !(fabs(norm - 1.0) <= 1e-6)) {
    return fail(r, "joint_axis", j, "not a unit vector");
  }
  const double lower = s->joint_range[2 * j], upper = s->joint_range[2 * j + 1];
  if (isnan(lower) || isnan(upper) || !(lower <= upper) || lower == INFINITY ||
      upper == -INFINITY) {
    return fail(r, "joint_range", j, "lower must not exceed upper");
  }
  if (s->joint_stiffness[j] < 0.0) {
    return fail(r, "joint_stiffness", j, "negative");
  }
  if (s->joint_damping != NULL && s->joint_damping[j] < 0.0) {
    return fail(r, "joint_damping", j, "negative");
  }
  if (s->joint_friction != NULL && s->joint_friction[j] < 0.0) {
    return fail(r, "joint_friction", j, "negative");
  }
  if (s->joint_armature != NULL && s->joint_armature[j] < 0.0) {
    return fail(r, "joint_armature", j, "negative");
  }
  if (type > QD_SLIDE && (isfinite(lower) || isfinite(upper))) {
    return fail(r, "joint_type", j, "limits are for hinge and slide joints");
  }
  return QD_OK;
}

static qd_status check_joints(const qd_model_spec *s, const report *r) {
  int nq = 0;
  TRY(check_finite(r, "joint_pos", s->joint_pos, s->joint_count, 3));
  TRY(check_finite(r, "joint_axis", s->joint_axis, s->joint_count, 3));
  TRY(check_finite(r, "joint_ref", s->joint_ref, s->joint_count, 1));
  TRY(check_finite(r, "joint_stiffness", s->joint_stiffness, s->joint_count, 1));
  TRY(check_finite(r, "joint_springref", s->joint_springref, s->joint_count, 1));
  TRY(check_finite(r, "joint_damping", s->joint_damping, s->joint_count, 1));
  TRY(check_finite(r, "joint_friction", s->joint_friction, s->joint_count, 1));
  TRY(check_finite(r, "joint_armature", s->joint_armature, s->joint_count, 1));
  for (int j = 0; j < s->joint_count; ++j) {
    TRY(check_joint(s, j, r));
    nq += joint_q_count(s->joint_type[j]);
  }
  return check_finite(r, "default_q", s->default_q, nq, 1);
}

const char *force_range_fault(const double *range) {
  if (isnan(range[0]) || isnan(range[1])) {
    return "not a number";
  }
  const int empty = !(range[0] <= range[1]) || range[0] == INFINITY || range[1] == -INFINITY;
  return empty ? "lower must not exceed upper" : NULL;
}

static const char *joint_fault(const qd_model_spec *s, int i, int tendon) {
  const int joint = s->actuator_joint[i];
  if (tendon >= 0) {
    return joint == -1 ? NULL : "must be -1 where there is a tendon";
  }
  const int moves = joint >= 0 && joint < s->joint_count && s->joint_type[joint] <= QD_SLIDE;
  return moves ? NULL : "must be a hinge or slide joint";
}

static qd_status check_actuators(const qd_model_spec *s, const report *r) {
  TRY(check_finite(r, "actuator_stiffness", s->actuator_stiffness, s->actuator_count, 1));
  TRY(check_finite(r, "actuator_gain", s->actuator_gain, s->actuator_count, 1));
  TRY(check_finite(r, "actuator_gain_slope", s->actuator_gain_slope, s->actuator_count, 2));
  TRY(check_finite(r, "actuator_bias", s->actuator_bias, s->actuator_count, 1));
  TRY(check_finite(r, "actuator_damping", s->actuator_damping, s->actuator_count, 1));
  for (int i = 0; i < s->actuator_count; ++i) {
    const int tendon = s->actuator_tendon != NULL ? s->actuator_tendon[i] : -1;
    if (tendon >= s->tendon_count) {
      return fail(r, "actuator_tendon", i, "no such tendon");
    }
    const char *wrong = joint_fault(s, i, tendon);
    if (wrong != NULL) {
      return fail(r, "actuator_joint", i, wrong);
    }
    if (s->actuator_stiffness[i] < 0.0) {
      return fail(r, "actuator_stiffness", i, "negative");
    }
    if (s->actuator_damping != NULL && s->actuator_damping[i] < 0.0) {
      return fail(r, "actuator_damping", i, "negative");
    }
    const char *fault =
        s->actuator_force_range != NULL ? force_range_fault(s->actuator_force_range + 2 * i) : NULL;
    if (fault != NULL) {
      return fail(r, "actuator_force_range", i, fault);
    }
    if (s->actuator_gear[i] == 0.0 || isnan(s->actuator_gear[i])) {
      return fail(r, "actuator_gear", i, "must be a number and not zero");
    }
  }
  return QD_OK;
}

static int size_count(int type) {
  static const int counts[QD_SHAPE_TYPE_COUNT] = {0, 1, 2, 3, 2, 3, 0, 1};
  return counts[type];
}

const char *geom_size_fault(int type, const double *size) {
  for (int k = 0; k < size_count(type); ++k) {
    const int may_be_zero = (type == QD_CAPSULE && k == 1) || type == QD_CLOUD;
    if (!(size[k] > 0.0) && !(may_be_zero && size[k] == 0.0)) {
      return "must be positive";
    }
  }
  return NULL;
}

const char *pair_friction_fault(int dim, const double *mu) {
  for (int k = 0; k < 5; ++k) {
    if (mu[k] < 0.0) {
      return "negative";
    }
  }
  if ((dim >= 3 && mu[0] != mu[1]) || (dim == 6 && mu[3] != mu[4])) {
    return "two different coefficients (anisotropic friction)";
  }
  return NULL;
}

static qd_status check_geoms(const qd_model_spec *s, const report *r) {
  TRY(check_finite(r, "geom_pos", s->geom_pos, s->geom_count, 3));
  TRY(check_finite(r, "geom_quat", s->geom_quat, s->geom_count, 4));
  TRY(check_quats(r, "geom_quat", s->geom_quat, s->geom_count));
  TRY(check_finite(r, "geom_size", s->geom_size, s->geom_count, 3));
  for (int i = 0; i < s->geom_count; ++i) {
    if (s->geom_type[i] < 0 || s->geom_type[i] >= QD_SHAPE_TYPE_COUNT) {
      return fail(r, "geom_type", i, "unknown shape");
    }
    if (s->geom_body[i] < 0 || s->geom_body[i] >= s->body_count) {
      return fail(r, "geom_body", i, "no such body");
    }
    const char *fault = geom_size_fault(s->geom_type[i], s->geom_size + 3 * i);
    if (fault != NULL) {
      return fail(r, "geom_size", i, fault);
    }
  }
  return QD_OK;
}

static int geom_mesh(const qd_model_spec *s, int geom) {
  return s->geom_mesh != NULL ? s->geom_mesh[geom] : -1;
}

static qd_status check_meshes(const qd_model_spec *s, const report *r) {
  int vertices = 0, faces = 0;
  for (int i = 0; i < s->mesh_count; ++i) {
    if (s->mesh_vertex_count[i] < 0 || s->mesh_vertex_count[i] > s->mesh_vertex_total - vertices) {
      return fail(r, "mesh_vertex_count", i, "more than there are");
    }
    if (s->mesh_face_count[i] < 0 || s->mesh_face_count[i] > s->mesh_face_total - faces) {
      return fail(r, "mesh_face_count", i, "more than there are");
    }
    vertices += s->mesh_vertex_count[i];
    faces += s->mesh_face_count[i];
  }
  if (vertices != s->mesh_vertex_total) {
    return fail(r, "mesh_vertex", vertices, "belongs to no mesh");
  }
  if (faces != s->mesh_face_total) {
    return fail(r, "mesh_face", faces, "belongs to no mesh");
  }
  for (int i = 0; i < s->geom_count; ++i) {
    if (geom_mesh(s, i) < -1 || geom_mesh(s, i) >= s->mesh_count) {
      return fail(r, "geom_mesh", i, "no such mesh");
    }
    if (geom_mesh(s, i) >= 0 && s->geom_type[i] != QD_MESH) {
      return fail(r, "geom_mesh", i, "only meshes have one");
    }
  }
  return check_finite(r, "mesh_vertex", s->mesh_vertex, s->mesh_vertex_total, 3);
}

/* Beyond this squares of lengths overflow. */
#define POINT_MAX 1e100

static qd_status check_clouds(const qd_model_spec *s, const report *r) {
  int points = 0;
  for (int i = 0; i < s->cloud_count; ++i) {
    if (s->cloud_point_count[i] < 1 || s->cloud_point_count[i] > s->cloud_point_total - points) {
      return fail(r, "cloud_point_count", i, "less than one, or more than there are");
    }
    if (s->cloud_contact_count[i] < 1 || s->cloud_contact_count[i] > CONTACTS_PER_PAIR_MAX) {
      return fail(r, "cloud_contact_count", i, "must be 1 to 8");
    }
    points += s->cloud_point_count[i];
  }
  if (points != s->cloud_point_total) {
    return fail(r, "cloud_point", points, "belongs to no cloud");
  }
  for (int i = 0; i < s->geom_count; ++i) {
    const int cloud = s->geom_cloud != NULL ? s->geom_cloud[i] : -1;
    if (cloud < -1 || cloud >= s->cloud_count || (cloud >= 0) != (s->geom_type[i] == QD_CLOUD)) {
      return fail(r, "geom_cloud", i, "clouds have one, other shapes have none");
    }
  }
  TRY(check_finite(r, "cloud_point", s->cloud_point, s->cloud_point_total, 3));
  for (int i = 0; i < 3 * s->cloud_point_total; ++i) {
    if (fabs(s->cloud_point[i]) > POINT_MAX) {
      return fail(r, "cloud_point", i / 3, "too large");
    }
  }
  return QD_OK;
}

const char *geom_modulus_fault(int is_soft, double modulus) {
  if (!is_soft) {
    return modulus == 0.0 ? NULL : "must be zero: this geometry has no pressure field";
  }
  return modulus > 0.0 ? NULL : "must be positive";
}

static int geom_field(const qd_model_spec *s, int geom) {
  return s->geom_field != NULL ? s->geom_field[geom] : -1;
}

static int geom_is_soft(const qd_model_spec *s, int geom) {
  const int field = geom_field(s, geom);
  return field >= 0 &&
         (s->field_kind[field] == QD_FIELD_SOFT || s->field_kind[field] == QD_FIELD_SOFT_SPACE);
}

static qd_status check_field_sizes(const qd_model_spec *s, const report *r) {
  int vertices = 0, indices = 0;
  for (int i = 0; i < s->field_count; ++i) {
    if (s->field_kind[i] < QD_FIELD_SOFT || s->field_kind[i] > QD_FIELD_RIGID_SPACE) {
      return fail(r, "field_kind", i, "unknown kind of field");
    }
    const int corners = field_corners((qd_field_kind)s->field_kind[i]);
    if (s->field_vertex_count[i] < 0 ||
        s->field_vertex_count[i] > s->field_vertex_total - vertices) {
      return fail(r, "field_vertex_count", i, "more than there are");
    }
    if (s->field_element_count[i] < 0 ||
        s->field_element_count[i] > (s->field_index_total - indices) / corners) {
      return fail(r, "field_element_count", i, "more than there are");
    }
    vertices += s->field_vertex_count[i];
    indices += corners * s->field_element_count[i];
  }
  if (vertices != s->field_vertex_total) {
    return fail(r, "field_vertex", vertices, "belongs to no field");
  }
  return indices == s->field_index_total ? QD_OK
                                         : fail(r, "field_index", indices, "belongs to no field");
}

static qd_status check_fields(const qd_model_spec *s, const report *r) {
  TRY(check_field_sizes(s, r));
  TRY(check_not_negative(r, "geom_dissipation", s->geom_dissipation, s->geom_count));
  TRY(check_not_negative(r, "geom_modulus", s->geom_modulus, s->geom_count));
  for (int i = 0; i < s->geom_count; ++i) {
    if (geom_field(s, i) < -1 || geom_field(s, i) >= s->field_count) {
      return fail(r, "geom_field", i, "no such field");
    }
    const double modulus = s->geom_modulus != NULL ? s->geom_modulus[i] : 0.0;
    const char *fault = geom_modulus_fault(geom_is_soft(s, i), modulus);
    if (fault != NULL) {
      return fail(r, "geom_modulus", i, fault);
    }
  }
  for (int i = 0; i < s->pair_count; ++i) {
    const int a = s->pair_geom[2 * i], b = s->pair_geom[2 * i + 1];
    if (!geom_is_soft(s, a) && !geom_is_soft(s, b)) {
      continue;
    }
    if (geom_field(s, a) < 0 || geom_field(s, b) < 0) {
      return fail(r, "pair_geom", i, "a soft geometry and one without a surface");
    }
    const qd_field_kind kind_a = (qd_field_kind)s->field_kind[geom_field(s, a)];
    if (!qd_field_pair_supported(kind_a, (qd_field_kind)s->field_kind[geom_field(s, b)])) {
      return fail(r, "pair_geom", i, "no surface between two such fields");
    }
  }
  return QD_OK;
}

static qd_status check_pairs(const qd_model_spec *s, const report *r) {
  TRY(check_finite(r, "pair_friction", s->pair_friction, s->pair_count, 5));
  TRY(check_finite(r, "pair_margin", s->pair_margin, s->pair_count, 1));
  TRY(check_not_negative(r, "pair_compliance", s->pair_compliance, s->pair_count));
  for (int i = 0; s->pair_restitution != NULL && i < s->pair_count; ++i) {
    if (!(s->pair_restitution[i] <= 1.0)) {
      return fail(r, "pair_restitution", i, "above 1, or not a number");
    }
  }
  for (int i = 0; i < s->pair_count; ++i) {
    const int a = s->pair_geom[2 * i], b = s->pair_geom[2 * i + 1];
    if (a < 0 || b < 0 || a >= s->geom_count || b >= s->geom_count || a == b) {
      return fail(r, "pair_geom", i, "no such pair of geometries");
    }
    if (!qd_shape_pair_supported(s->geom_type[a], s->geom_type[b])) {
      return fail(r, "pair_geom", i, "this pair of shapes is not supported");
    }
    if ((s->geom_type[a] == QD_MESH && geom_mesh(s, a) < 0) ||
        (s->geom_type[b] == QD_MESH && geom_mesh(s, b) < 0)) {
      return fail(r, "pair_geom", i, "a geometry of type mesh has no mesh");
    }
    if (s->geom_type[a] == QD_CLOUD && s->geom_type[b] == QD_CLOUD &&
        s->geom_size[3 * a] + s->geom_size[3 * b] == 0.0) {
      return fail(r, "pair_geom", i, "two clouds of points without radius never touch");
    }
    const int dim = s->pair_dim[i];
    if (dim != 1 && dim != 3 && dim != 4 && dim != 6) {
      return fail(r, "pair_dim", i, "must be 1, 3, 4 or 6");
    }
    const char *fault = pair_friction_fault(dim, s->pair_friction + 5 * i);
    if (fault != NULL) {
      return fail(r, "pair_friction", i, fault);
    }
  }
  return QD_OK;
}

static qd_status check_constraint(const qd_model_spec *s, int i, const report *r) {
  const int type = s->constraint_type[i];
  const int32_t *object = s->constraint_object + 2 * i;
  const double *data = s->constraint_data + CONSTRAINT_DATA * i;
  if (type < QD_CONNECT || type > QD_COUPLING) {
    return fail(r, "constraint_type", i, "unknown constraint");
  }
  if (type == QD_COUPLING) {
    for (int k = 0; k < 2; ++k) {
      const int joint = object[k];
      const int none = k == 1 && joint == -1;
      if (!none && (joint < 0 || joint >= s->joint_count || s->joint_type[joint] > QD_SLIDE)) {
        return fail(r, "constraint_object", i, "must be hinge or slide joints");
      }
    }
    return object[0] != object[1] ? QD_OK
                                  : fail(r, "constraint_object", i, "a joint cannot follow itself");
  }
  for (int k = 0; k < 2; ++k) {
    if (object[k] < 0 || object[k] >= s->body_count) {
      return fail(r, "constraint_object", i, "no such body");
    }
  }
  if (object[0] == object[1]) {
    return fail(r, "constraint_object", i, "must be two different bodies");
  }
  return type == QD_WELD ? check_quats(r, "constraint_data", data + 6, 1) : QD_OK;
}

static qd_status check_constraints(const qd_model_spec *s, const report *r) {
  TRY(check_finite(r, "constraint_data", s->constraint_data, s->constraint_count, CONSTRAINT_DATA));
  TRY(check_not_negative(r, "constraint_compliance", s->constraint_compliance,
                         2 * s->constraint_count));
  for (int i = 0; i < s->constraint_count; ++i) {
    TRY(check_constraint(s, i, r));
  }
  return QD_OK;
}

static qd_status check_tendon(const qd_model_spec *s, int t, int first, const report *r) {
  const double lower = s->tendon_range[2 * t], upper = s->tendon_range[2 * t + 1];
  const int count = s->tendon_point_count[t], fixed = s->tendon_type[t] == QD_TENDON_FIXED;
  if (!fixed && s->tendon_type[t] != QD_TENDON_SPATIAL) {
    return fail(r, "tendon_type", t, "unknown tendon");
  }
  if (count < (fixed ? 1 : 2) || count > s->tendon_point_total - first) {
    return fail(r, "tendon_point_count", t, "too few joints or points, or more than there are");
  }
  if (!(lower <= upper) || lower == INFINITY || upper == -INFINITY) {
    return fail(r, "tendon_range", t, "lower must not exceed upper");
  }
  const double *rest = s->tendon_springrange != NULL ? s->tendon_springrange + 2 * t : NULL;
  if (rest != NULL && !(isfinite(rest[0]) && isfinite(rest[1]) && rest[0] <= rest[1])) {
    return fail(r, "tendon_springrange", t, "must be finite, and lower must not exceed upper");
  }
  for (int i = first; i < first + count; ++i) {
    const int object = s->tendon_object[i];
    if (fixed && (object < 0 || object >= s->joint_count || s->joint_type[object] > QD_SLIDE)) {
      return fail(r, "tendon_object", i, "must be a hinge or slide joint");
    }
    if (!fixed && (object < 0 || object >= s->body_count)) {
      return fail(r, "tendon_object", i, "no such body");
    }
  }
  return QD_OK;
}

static qd_status check_tendons(const qd_model_spec *s, const report *r) {
  int first = 0;
  TRY(check_finite(r, "tendon_data", s->tendon_data, s->tendon_point_total, 3));
  TRY(check_not_negative(r, "tendon_stiffness", s->tendon_stiffness, s->tendon_count));
  TRY(check_not_negative(r, "tendon_frictionloss", s->tendon_frictionloss, s->tendon_count));
  for (int t = 0; t < s->tendon_count; ++t) {
    TRY(check_tendon(s, t, first, r));
    first += s->tendon_point_count[t];
  }
  return first == s->tendon_point_total ? QD_OK
                                        : fail(r, "tendon_object", first, "belongs to no tendon");
}

qd_status model_spec_check(const qd_model_spec *spec, char *message, size_t message_size) {
  const report r = {message, message_size};
  TRY(check_bodies(spec, &r));
  TRY(check_joints(spec, &r));
  TRY(check_mocap(spec, &r));
  TRY(check_actuators(spec, &r));
  TRY(check_geoms(spec, &r));
  TRY(check_meshes(spec, &r));
  TRY(check_clouds(spec, &r));
  TRY(check_pairs(spec, &r));
  TRY(check_fields(spec, &r));
  TRY(check_constraints(spec, &r));
  TRY(check_tendons(spec, &r));
  return check_finite(&r, "gravity", spec->gravity, 3, 1);
}
