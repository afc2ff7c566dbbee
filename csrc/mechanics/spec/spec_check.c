#include "mechanics/spec/spec_check.h"

#include "mechanics/spec/parts.h"

qd_status model_spec_check(const qd_model_spec *spec, char *message, size_t message_size) {
  const report r = {message, message_size};
  TRY(spec_check_tree(spec, &r));
  TRY(spec_check_shapes(spec, &r));
  TRY(spec_check_pairs(spec, &r));
  TRY(spec_check_fields(spec, &r));
  TRY(spec_check_drives(spec, &r));
  if (spec->integration < QD_INTEGRATE_LATE || spec->integration > QD_INTEGRATE_FAST) {
    return spec_fail(&r, "integration", 0, "must be a qd_integration");
  }
  return spec_finite(&r, "gravity", spec->gravity, 3, 1);
}
