#include "geometry/collide.h"
#include "mechanics/spec/parts.h"
#include "mechanics/spec/spec_check.h"

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

static qd_status check_pair_shapes(const qd_model_spec *s, int i, const report *r) {
  const int a = s->pair_geom[2 * i], b = s->pair_geom[2 * i + 1];
  if (a < 0 || b < 0 || a >= s->geom_count || b >= s->geom_count || a == b) {
    return spec_fail(r, "pair_geom", i, "no such pair of geometries");
  }
  const int type_a = s->geom_type[a], type_b = s->geom_type[b];
  if (!qd_shape_pair_supported(type_a, type_b)) {
    return spec_fail(r, "pair_geom", i, "this pair of shapes is not supported");
  }
  if ((type_a == QD_MESH && spec_index(s->geom_mesh, a) < 0) ||
      (type_b == QD_MESH && spec_index(s->geom_mesh, b) < 0)) {
    return spec_fail(r, "pair_geom", i, "a geometry of type mesh has no mesh");
  }
  if (type_a == QD_CLOUD && type_b == QD_CLOUD &&
      s->geom_size[3 * a] + s->geom_size[3 * b] == 0.0) {
    return spec_fail(r, "pair_geom", i, "two clouds of points without radius never touch");
  }
  return QD_OK;
}

static qd_status check_pair_law(const qd_model_spec *s, int i, const report *r) {
  const int dim = s->pair_dim[i];
  if (dim != 1 && dim != 3 && dim != 4 && dim != 6) {
    return spec_fail(r, "pair_dim", i, "must be 1, 3, 4 or 6");
  }
  if (!(spec_value(s->pair_restitution, i) <= 1.0)) {
    return spec_fail(r, "pair_restitution", i, "above 1, or not a number");
  }
  if (s->pair_impratio != NULL && !(s->pair_impratio[i] > 0.0)) {
    return spec_fail(r, "pair_impratio", i, "must be positive");
  }
  if (s->pair_edges != NULL && s->pair_edges[i] != 0 && s->pair_edges[i] != 2 * (dim - 1)) {
    return spec_fail(r, "pair_edges", i, "must be 0 or 2 (dim - 1)");
  }
  if (s->pair_reference != NULL && s->pair_reference[4 * i + 3] > 3.0) {
    return spec_fail(r, "pair_reference", i, "no such kind");
  }
  const char *fault = pair_friction_fault(dim, s->pair_friction + 5 * i);
  return fault ? spec_fail(r, "pair_friction", i, fault) : QD_OK;
}

qd_status spec_check_pairs(const qd_model_spec *s, const report *r) {
  TRY(spec_finite(r, "pair_friction", s->pair_friction, s->pair_count, 5));
  TRY(spec_finite(r, "pair_margin", s->pair_margin, s->pair_count, 1));
  TRY(spec_not_negative(r, "pair_compliance", s->pair_compliance, s->pair_count));
  TRY(spec_not_negative(r, "pair_reference", s->pair_reference, 4 * s->pair_count));
  TRY(spec_finite(r, "pair_impedance", s->pair_impedance, s->pair_count, 5));
  TRY(spec_finite(r, "pair_impratio", s->pair_impratio, s->pair_count, 1));
  for (int i = 0; i < s->pair_count; ++i) {
    TRY(check_pair_shapes(s, i, r));
    TRY(check_pair_law(s, i, r));
  }
  return QD_OK;
}
