/* The arguments by which a step can be differentiated. */
#include "mechanics/applied.h"
#include "qdsim.h"

const char *qd_argument_name(int argument) {
  static const char *const names[] = {"q", "u", "tau", "wrench", "mocap", "v", "h"};
  return argument < QD_BY_PARAMETER ? names[argument]
                                    : qd_parameter_name((qd_parameter)(argument - QD_BY_PARAMETER));
}

int qd_argument_size(const qd_model *model, int argument) {
  const int sizes[] = {
      model->nv, model->nu, model->nv, QD_WRENCH * model->body.count, 6 * model->mocap_count,
      model->nv, 1};
  return argument < QD_BY_PARAMETER
             ? sizes[argument]
             : qd_parameter_size(model, (qd_parameter)(argument - QD_BY_PARAMETER));
}
