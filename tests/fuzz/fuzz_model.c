/* Any spec: either a message that says what is wrong, or a model that can be stepped and
 * differentiated, with finite results or a status. */
#include "fuzz_input.h"
#include "qdsim.h"

#define BODIES_MAX 5
#define JOINTS_MAX 6
#define GEOMS_MAX 6
#define PAIRS_MAX 6
#define CONSTRAINTS_MAX 2
#define Q_MAX (7 * JOINTS_MAX)

typedef struct spec_data {
  int32_t body_parent[BODIES_MAX], joint_type[JOINTS_MAX], joint_body[JOINTS_MAX];
  int32_t actuator_joint[JOINTS_MAX], geom_type[GEOMS_MAX], geom_body[GEOMS_MAX];
  int32_t pair_geom[2 * PAIRS_MAX], pair_dim[PAIRS_MAX];
  int32_t constraint_type[CONSTRAINTS_MAX], constraint_object[2 * CONSTRAINTS_MAX];
  double body_pos[3 * BODIES_MAX], body_quat[4 * BODIES_MAX], body_mass[BODIES_MAX];
  double body_com[3 * BODIES_MAX], body_inertia[9 * BODIES_MAX];
  double joint_pos[3 * JOINTS_MAX], joint_axis[3 * JOINTS_MAX], joint_ref[JOINTS_MAX];
  double joint_range[2 * JOINTS_MAX], joint_stiffness[JOINTS_MAX], joint_springref[JOINTS_MAX];
  double default_q[Q_MAX], actuator_stiffness[JOINTS_MAX], actuator_gear[JOINTS_MAX];
  double geom_pos[3 * GEOMS_MAX], geom_quat[4 * GEOMS_MAX], geom_size[3 * GEOMS_MAX];
  double pair_friction[5 * PAIRS_MAX], pair_margin[PAIRS_MAX];
  double constraint_data[10 * CONSTRAINTS_MAX];
} spec_data;

static void fill(fuzz_input *in, double *out, int count) {
  for (int i = 0; i < count; ++i) {
    out[i] = fuzz_any(in);
  }
}

static void fill_positive(fuzz_input *in, double *out, int count) {
  for (int i = 0; i < count; ++i) {
    out[i] = fuzz_integer(in, 0, 15) == 0 ? fuzz_any(in) : fuzz_size(in, 1e-3, 1e2);
  }
}

static void fill_quaternions(fuzz_input *in, double *out, int count) {
  for (int i = 0; i < count; ++i) {
    if (fuzz_integer(in, 0, 31) == 0) {
      fill(in, out + 4 * i, 4);
    } else {
      fuzz_quaternion(in, out + 4 * i);
    }
  }
}

/* Mostly in range, so that creation gets past the first check. */
static void fill_integers(fuzz_input *in, int32_t *out, int count, int high) {
  for (int i = 0; i < count; ++i) {
    out[i] = fuzz_integer(in, 0, 31) == 0 ? (int32_t)fuzz_bits(in, 4)
                                          : fuzz_integer(in, 0, high > 0 ? high : 0);
  }
}

static void read_bodies(fuzz_input *in, qd_model_spec *s, spec_data *d) {
  s->body_count = fuzz_integer(in, 1, BODIES_MAX);
  for (int b = 0; b < s->body_count; ++b) {
    fill_integers(in, d->body_parent + b, 1, b - 1);
    for (int i = 0; i < 9; ++i) {
      d->body_inertia[9 * b + i] = i % 4 == 0 ? fuzz_size(in, 1e-4, 1.0) : 0.0;
    }
  }
  fill(in, d->body_pos, 3 * s->body_count);
  fill_quaternions(in, d->body_quat, s->body_count);
  fill_positive(in, d->body_mass, s->body_count);
  fill(in, d->body_com, 3 * s->body_count);
  s->body_parent = d->body_parent;
  s->body_pos = d->body_pos;
  s->body_quat = d->body_quat;
  s->body_mass = d->body_mass;
  s->body_com = d->body_com;
  s->body_inertia = d->body_inertia;
}

static void read_joints(fuzz_input *in, qd_model_spec *s, spec_data *d) {
  int body = 0;
  s->joint_count = fuzz_integer(in, 0, JOINTS_MAX);
  for (int j = 0; j < s->joint_count; ++j) {
    body += fuzz_integer(in, 0, 1);
    d->joint_body[j] = fuzz_integer(in, 0, 31) == 0 ? (int32_t)fuzz_bits(in, 4) : body;
    const int axis = fuzz_integer(in, 0, 2);
    for (int i = 0; i < 3; ++i) {
      d->joint_axis[3 * j + i] = i == axis ? 1.0 : 0.0;
    }
    d->joint_range[2 * j] = fuzz_integer(in, 0, 1) ? fuzz_any(in) : -INFINITY;
    d->joint_range[2 * j + 1] = fuzz_integer(in, 0, 1) ? fuzz_any(in) : INFINITY;
    d->joint_stiffness[j] = fuzz_integer(in, 0, 1) ? fuzz_any(in) : 0.0;
  }
  fill_integers(in, d->joint_type, s->joint_count, QD_FREE);
  fill(in, d->joint_pos, 3 * s->joint_count);
  fill(in, d->joint_ref, s->joint_count);
  fill(in, d->joint_springref, s->joint_count);
  s->joint_type = d->joint_type;
  s->joint_body = d->joint_body;
  s->joint_pos = d->joint_pos;
  s->joint_axis = d->joint_axis;
  s->joint_ref = d->joint_ref;
  s->joint_range = d->joint_range;
  s->joint_stiffness = d->joint_stiffness;
  s->joint_springref = d->joint_springref;
  s->default_q = d->default_q;
  for (int j = 0, q = 0; j < s->joint_count; ++j) {
    const int type = d->joint_type[j];
    q += type == QD_FREE ? 3 : 0;
    fill(in, d->default_q + (q < 3 ? 0 : q - 3), 3);
    if (type == QD_FREE || type == QD_BALL) {
      fill_quaternions(in, d->default_q + q, 1);
      q += 4;
    } else {
      q += 1;
    }
  }
  s->actuator_count = fuzz_integer(in, 0, s->joint_count);
  fill_integers(in, d->actuator_joint, s->actuator_count, s->joint_count - 1);
  fill_positive(in, d->actuator_stiffness, s->actuator_count);
  fill_positive(in, d->actuator_gear, s->actuator_count);
  s->actuator_joint = d->actuator_joint;
  s->actuator_stiffness = d->actuator_stiffness;
  s->actuator_gear = d->actuator_gear;
}

static void read_geoms(fuzz_input *in, qd_model_spec *s, spec_data *d) {
  s->geom_count = fuzz_integer(in, 0, GEOMS_MAX);
  fill_integers(in, d->geom_type, s->geom_count, QD_ELLIPSOID);
  fill_integers(in, d->geom_body, s->geom_count, s->body_count - 1);
  fill(in, d->geom_pos, 3 * s->geom_count);
  fill_quaternions(in, d->geom_quat, s->geom_count);
  fill_positive(in, d->geom_size, 3 * s->geom_count);
  s->geom_type = d->geom_type;
  s->geom_body = d->geom_body;
  s->geom_pos = d->geom_pos;
  s->geom_quat = d->geom_quat;
  s->geom_size = d->geom_size;
  s->pair_count = s->geom_count > 1 ? fuzz_integer(in, 0, PAIRS_MAX) : 0;
  fill_integers(in, d->pair_geom, 2 * s->pair_count, s->geom_count - 1);
  for (int i = 0; i < s->pair_count; ++i) {
    static const int32_t DIM[8] = {1, 3, 4, 6, 3, 3, 3, 2};
    d->pair_dim[i] = DIM[fuzz_integer(in, 0, 7)];
  }
  fill_positive(in, d->pair_friction, 5 * s->pair_count);
  fill_positive(in, d->pair_margin, s->pair_count);
  s->pair_geom = d->pair_geom;
  s->pair_dim = d->pair_dim;
  s->pair_friction = d->pair_friction;
  s->pair_margin = d->pair_margin;
}

static void read_constraints(fuzz_input *in, qd_model_spec *s, spec_data *d) {
  s->constraint_count = fuzz_integer(in, 0, CONSTRAINTS_MAX);
  fill_integers(in, d->constraint_type, s->constraint_count, QD_COUPLING);
  for (int i = 0; i < s->constraint_count; ++i) {
    const int joints = d->constraint_type[i] == QD_COUPLING;
    fill_integers(in, d->constraint_object + 2 * i, 2,
                  (joints ? s->joint_count : s->body_count) - 1);
    fill(in, d->constraint_data + 10 * i, 6);
    fill_quaternions(in, d->constraint_data + 10 * i + 6, 1);
  }
  s->constraint_type = d->constraint_type;
  s->constraint_object = d->constraint_object;
  s->constraint_data = d->constraint_data;
}

static void check_finite(const double *values, int count, const char *what) {
  for (int i = 0; i < count; ++i) {
    FUZZ_CHECK(isfinite(values[i]), "%s %d", what, i);
  }
}

static qd_step_options read_options(fuzz_input *in) {
  qd_step_options options = qd_step_options_default();
  options.h = fuzz_size(in, 1e-3, 1.0);
  options.friction_model = fuzz_integer(in, QD_CONE, QD_PYRAMID);
  options.ray_count = fuzz_integer(in, 3, 8);
  options.kappa = fuzz_integer(in, 0, 1) ? fuzz_size(in, 1.0, 1e6) : INFINITY;
  options.epsilon = fuzz_integer(in, 0, 3) == 0 ? 0.0 : fuzz_size(in, 1e-2, 1e2);
  options.margin = fuzz_integer(in, 0, 3) == 0 ? INFINITY : fuzz_size(in, 1e-3, 1.0);
  options.add_missed_pairs = fuzz_integer(in, 0, 1);
  options.joint_limits = fuzz_integer(in, 0, 1);
  options.gravity_on_actuated = fuzz_integer(in, 0, 1);
  return options;
}

static void exercise(fuzz_input *in, const qd_model *model, int body_count, const double *start) {
  const int nq = qd_model_nq(model), nv = qd_model_nv(model), nu = qd_model_nu(model);
  const qd_step_options options = read_options(in);
  double q[Q_MAX], q_next[Q_MAX], delta[Q_MAX], limit_force[Q_MAX], u[JOINTS_MAX], tau[Q_MAX];
  double wrench[6 * BODIES_MAX];
  double A[Q_MAX * Q_MAX], B[Q_MAX * JOINTS_MAX], forces[6 * CONSTRAINTS_MAX];
  int joint;
  if (nv == 0 || qd_normalize(model, start, q, &joint) != QD_OK) {
    return;
  }
  fill(in, u, nu);
  fill(in, tau, nv);
  fill(in, wrench, 6 * body_count);
  const qd_step_input input = {.q = q, .u = u, .tau = tau, .wrench = wrench};
  qd_workspace *workspace = qd_workspace_create(model, 0);
  qd_step_result result = {
      .q_next = q_next, .delta = delta, .limit_force = limit_force, .constraint_force = forces};
  for (int i = 0; i < 2; ++i) {
    const qd_status status = qd_linearize(model, workspace, &options, &input, &result, A, B);
    FUZZ_CHECK(status == result.info.status, "status %d, info %d", status, result.info.status);
    if (status != QD_OK) {
      break;
    }
    check_finite(q_next, nq, "q_next");
    check_finite(A, nv * nv, "A");
    check_finite(B, nv * nu, "B");
    memcpy(q, q_next, (size_t)nq * sizeof(double));
  }
  qd_workspace_destroy(workspace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size};
  spec_data d;
  qd_model_spec spec = {0};
  qd_model *model;
  char message[256] = "";
  memset(&d, 0, sizeof d);
  read_bodies(&in, &spec, &d);
  read_joints(&in, &spec, &d);
  read_geoms(&in, &spec, &d);
  read_constraints(&in, &spec, &d);
  spec.gravity[2] = -9.81;
  const qd_status status = qd_model_create(&spec, &model, message, sizeof message);
  FUZZ_CHECK((status == QD_OK) == (model != NULL), "status %d, model %p", status, (void *)model);
  FUZZ_CHECK(status == QD_OK || message[0] != '\0', "status %d without a message", status);
  if (model != NULL) {
    exercise(&in, model, spec.body_count, d.default_q);
    qd_model_destroy(model);
  }
  return 0;
}
