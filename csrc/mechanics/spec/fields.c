#include "geometry/pressure_fields/field.h"
#include "mechanics/spec/parts.h"
#include "mechanics/spec/spec_check.h"

const char *geom_modulus_fault(int is_soft, double modulus) {
  if (!is_soft) {
    return modulus == 0.0 ? NULL : "must be zero: this geometry has no pressure field";
  }
  return modulus > 0.0 ? NULL : "must be positive";
}

static int geom_is_soft(const qd_model_spec *s, int geom) {
  const int field = spec_index(s->geom_field, geom);
  return field >= 0 &&
         (s->field_kind[field] == QD_FIELD_SOFT || s->field_kind[field] == QD_FIELD_SOFT_SPACE);
}

static qd_status check_field_sizes(const qd_model_spec *s, const report *r) {
  int vertices = 0, indices = 0;
  for (int i = 0; i < s->field_count; ++i) {
    if (s->field_kind[i] < QD_FIELD_SOFT || s->field_kind[i] > QD_FIELD_RIGID_SPACE) {
      return spec_fail(r, "field_kind", i, "unknown kind of field");
    }
    const int corners = field_corners((qd_field_kind)s->field_kind[i]);
    if (s->field_vertex_count[i] < 0 ||
        s->field_vertex_count[i] > s->field_vertex_total - vertices) {
      return spec_fail(r, "field_vertex_count", i, "more than there are");
    }
    if (s->field_element_count[i] < 0 ||
        s->field_element_count[i] > (s->field_index_total - indices) / corners) {
      return spec_fail(r, "field_element_count", i, "more than there are");
    }
    vertices += s->field_vertex_count[i];
    indices += corners * s->field_element_count[i];
  }
  if (vertices != s->field_vertex_total) {
    return spec_fail(r, "field_vertex", vertices, "belongs to no field");
  }
  return indices == s->field_index_total
             ? QD_OK
             : spec_fail(r, "field_index", indices, "belongs to no field");
}

static qd_status check_geom_field(const qd_model_spec *s, int i, const report *r) {
  const int field = spec_index(s->geom_field, i);
  if (field < -1 || field >= s->field_count) {
    return spec_fail(r, "geom_field", i, "no such field");
  }
  const char *fault = geom_modulus_fault(geom_is_soft(s, i), spec_value(s->geom_modulus, i));
  return fault ? spec_fail(r, "geom_modulus", i, fault) : QD_OK;
}

static qd_status check_pair_fields(const qd_model_spec *s, int i, const report *r) {
  const int a = s->pair_geom[2 * i], b = s->pair_geom[2 * i + 1];
  if (!geom_is_soft(s, a) && !geom_is_soft(s, b)) {
    return QD_OK;
  }
  const int field_a = spec_index(s->geom_field, a), field_b = spec_index(s->geom_field, b);
  if (field_a < 0 || field_b < 0) {
    return spec_fail(r, "pair_geom", i, "a soft geometry and one without a surface");
  }
  return qd_field_pair_supported((qd_field_kind)s->field_kind[field_a],
                                 (qd_field_kind)s->field_kind[field_b])
             ? QD_OK
             : spec_fail(r, "pair_geom", i, "no surface between two such fields");
}

qd_status spec_check_fields(const qd_model_spec *s, const report *r) {
  TRY(check_field_sizes(s, r));
  TRY(spec_not_negative(r, "geom_dissipation", s->geom_dissipation, s->geom_count));
  TRY(spec_not_negative(r, "geom_modulus", s->geom_modulus, s->geom_count));
  for (int i = 0; i < s->geom_count; ++i) {
    TRY(check_geom_field(s, i, r));
  }
  for (int i = 0; i < s->pair_count; ++i) {
    TRY(check_pair_fields(s, i, r));
  }
  return QD_OK;
}
