#include "qdsim/solvers.h"

const char *qd_status_name(qd_status status) {
  switch (status) {
  case QD_OK:
    return "solved";
  case QD_BAD_ARGUMENT:
    return "bad argument";
  case QD_OUT_OF_MEMORY:
    return "out of memory";
  case QD_OUT_OF_CAPACITY:
    return "out of capacity";
  case QD_INFEASIBLE:
    return "infeasible";
  case QD_UNBOUNDED:
    return "unbounded";
  case QD_ITERATION_LIMIT:
    return "iteration limit";
  case QD_NUMERICAL_TROUBLE:
    return "numerical trouble";
  case QD_NOT_UNIQUE:
    return "not unique";
  case QD_NOT_FINITE:
    return "not finite";
  case QD_STOPPED:
    return "stopped";
  case QD_LAW_NOT_MET:
    return "law not met";
  }
  return "unknown status";
}
