/* Any spec: either a message that says what is wrong, or a model that can be stepped and
 * differentiated, with finite results or a status; the same in a batch, bit for bit, and with any
 * parameters that pass their check. */
#include "../c/mesh_scenes.h"
#include "fuzz_input.h"
#include "qdsim.h"

#define BODIES_MAX 5
#define JOINTS_MAX 6
#define GEOMS_MAX 6
#define PAIRS_MAX 6
#define CONSTRAINTS_MAX 2
#define MESHES_MAX 2
#define MESH_VERTICES_MAX 16
#define MESH_FACES_MAX 28
#define CLOUDS_MAX 2
#define POINTS_MAX 12
#define GRID_MAX 4
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
  double joint_damping[JOINTS_MAX], joint_armature[JOINTS_MAX];
  double default_q[Q_MAX], actuator_stiffness[JOINTS_MAX], actuator_gear[JOINTS_MAX];
  double geom_pos[3 * GEOMS_MAX], geom_quat[4 * GEOMS_MAX], geom_size[3 * GEOMS_MAX];
  double pair_friction[5 * PAIRS_MAX], pair_margin[PAIRS_MAX];
  double constraint_data[10 * CONSTRAINTS_MAX];
  int32_t geom_mesh[GEOMS_MAX], mesh_vertex_count[MESHES_MAX], mesh_face_count[MESHES_MAX];
  int32_t mesh_face[3 * MESHES_MAX * MESH_FACES_MAX];
  double mesh_vertex[3 * MESHES_MAX * MESH_VERTICES_MAX];
  int32_t geom_cloud[GEOMS_MAX], cloud_point_count[CLOUDS_MAX], cloud_contact_count[CLOUDS_MAX];
  double cloud_point[3 * CLOUDS_MAX * POINTS_MAX];
  int32_t geom_hfield[GEOMS_MAX], hfield_grid[2 * CLOUDS_MAX];
  double hfield_size[3 * CLOUDS_MAX], hfield_height[CLOUDS_MAX * GRID_MAX * GRID_MAX];
} spec_data;

typedef struct parameters {
  double values[9 * BODIES_MAX + 5 * PAIRS_MAX + 3 * GEOMS_MAX]; /* of any one parameter */
} parameters;

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
  fill(in, d->joint_damping, s->joint_count);
  fill(in, d->joint_armature, s->joint_count);
  s->joint_type = d->joint_type;
  s->joint_body = d->joint_body;
  s->joint_pos = d->joint_pos;
  s->joint_axis = d->joint_axis;
  s->joint_ref = d->joint_ref;
  s->joint_range = d->joint_range;
  s->joint_stiffness = d->joint_stiffness;
  s->joint_springref = d->joint_springref;
  s->joint_damping = d->joint_damping;
  s->joint_armature = d->joint_armature;
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

/* Boxes, prisms and hulls of points, now and then with a number that does not belong. */
static void read_meshes(fuzz_input *in, qd_model_spec *s, spec_data *d) {
  static hull h;
  s->mesh_count = fuzz_integer(in, 0, MESHES_MAX);
  for (int m = 0; m < s->mesh_count; ++m) {
    const int kind = fuzz_integer(in, 0, 3);
    if (kind == 0) {
      box_hull(&h, fuzz_size(in, 1e-3, 10.0), fuzz_size(in, 1e-3, 10.0), fuzz_size(in, 1e-3, 10.0));
    } else if (kind == 1) {
      prism_hull(&h, fuzz_integer(in, 3, MESH_VERTICES_MAX / 2), fuzz_size(in, 1e-3, 10.0),
                 fuzz_size(in, 1e-3, 10.0));
    } else {
      h.vertex_count = fuzz_integer(in, 0, 6);
      fill(in, h.vertex, 3 * h.vertex_count);
      hull_of_points(&h);
    }
    h.face_count = h.face_count < MESH_FACES_MAX ? h.face_count : MESH_FACES_MAX;
    if (kind == 3) {
      h.face_count = fuzz_integer(in, 0, MESH_FACES_MAX);
      fill_integers(in, h.face, 3 * h.face_count, h.vertex_count - 1);
    }
    memcpy(d->mesh_vertex + 3 * s->mesh_vertex_total, h.vertex,
           3 * (size_t)h.vertex_count * sizeof(double));
    memcpy(d->mesh_face + 3 * s->mesh_face_total, h.face,
           3 * (size_t)h.face_count * sizeof(int32_t));
    d->mesh_vertex_count[m] = h.vertex_count;
    d->mesh_face_count[m] = h.face_count;
    s->mesh_vertex_total += h.vertex_count;
    s->mesh_face_total += h.face_count;
  }
  if (s->mesh_count > 0 && fuzz_integer(in, 0, 31) == 0) {
    fill_integers(in, d->mesh_vertex_count, s->mesh_count, MESH_VERTICES_MAX);
    fill_integers(in, d->mesh_face_count, s->mesh_count, MESH_FACES_MAX);
  }
  s->mesh_vertex_count = d->mesh_vertex_count;
  s->mesh_face_count = d->mesh_face_count;
  s->mesh_vertex = d->mesh_vertex;
  s->mesh_face = d->mesh_face;
}

static void read_clouds(fuzz_input *in, qd_model_spec *s, spec_data *d) {
  s->cloud_count = fuzz_integer(in, 0, CLOUDS_MAX);
  for (int c = 0; c < s->cloud_count; ++c) {
    d->cloud_point_count[c] = fuzz_integer(in, 0, POINTS_MAX);
    fill(in, d->cloud_point + 3 * s->cloud_point_total, 3 * d->cloud_point_count[c]);
    s->cloud_point_total += d->cloud_point_count[c];
    d->cloud_contact_count[c] = 1;
    fill_integers(in, d->cloud_contact_count + c, 1, 8);
  }
  if (s->cloud_count > 0 && fuzz_integer(in, 0, 31) == 0) {
    fill_integers(in, d->cloud_point_count, s->cloud_count, POINTS_MAX);
  }
  s->cloud_point_count = d->cloud_point_count;
  s->cloud_contact_count = d->cloud_contact_count;
  s->cloud_point = d->cloud_point;
}

static void read_hfields(fuzz_input *in, qd_model_spec *s, spec_data *d) {
  s->hfield_count = fuzz_integer(in, 0, CLOUDS_MAX);
  for (int k = 0; k < s->hfield_count; ++k) {
    int32_t *grid = d->hfield_grid + 2 * k;
    grid[0] = fuzz_integer(in, 1, GRID_MAX);
    grid[1] = fuzz_integer(in, 1, GRID_MAX);
    fill(in, d->hfield_height + s->hfield_height_total, grid[0] * grid[1]);
    fill_positive(in, d->hfield_size + 3 * k, 3);
    d->hfield_size[3 * k + 2] *= -1.0;
    s->hfield_height_total += grid[0] * grid[1];
  }
  if (s->hfield_count > 0 && fuzz_integer(in, 0, 31) == 0) {
    fill_integers(in, d->hfield_grid, 2 * s->hfield_count, GRID_MAX);
  }
  s->hfield_grid = d->hfield_grid;
  s->hfield_size = d->hfield_size;
  s->hfield_height = d->hfield_height;
}

/* Which mesh, cloud or height field a geometry shows: mostly one that there is. */
static void read_shown(fuzz_input *in, const qd_model_spec *s, spec_data *d) {
  for (int i = 0; i < s->geom_count; ++i) {
    const int type = d->geom_type[i];
    d->geom_mesh[i] = d->geom_cloud[i] = d->geom_hfield[i] = -1;
    if (type == QD_MESH || fuzz_integer(in, 0, 31) == 0) {
      fill_integers(in, d->geom_mesh + i, 1, s->mesh_count - 1);
    }
    if (type == QD_CLOUD || fuzz_integer(in, 0, 31) == 0) {
      fill_integers(in, d->geom_cloud + i, 1, s->cloud_count - 1);
    }
    if (type == QD_HFIELD || fuzz_integer(in, 0, 31) == 0) {
      fill_integers(in, d->geom_hfield + i, 1, s->hfield_count - 1);
    }
  }
}

static void read_geoms(fuzz_input *in, qd_model_spec *s, spec_data *d) {
  s->geom_count = fuzz_integer(in, 0, GEOMS_MAX);
  fill_integers(in, d->geom_type, s->geom_count, QD_SHAPE_TYPE_COUNT - 1);
  fill_integers(in, d->geom_body, s->geom_count, s->body_count - 1);
  fill(in, d->geom_pos, 3 * s->geom_count);
  fill_quaternions(in, d->geom_quat, s->geom_count);
  fill_positive(in, d->geom_size, 3 * s->geom_count);
  read_meshes(in, s, d);
  read_clouds(in, s, d);
  read_hfields(in, s, d);
  read_shown(in, s, d);
  s->geom_mesh = d->geom_mesh;
  s->geom_cloud = d->geom_cloud;
  s->geom_hfield = d->geom_hfield;
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

/* One sample, with the parameters if there are any; NULL in `own` for the model's. */
static qd_status batch_step(const qd_model *model, const qd_step_options *options,
                            const qd_step_input *input, const double *const *own, double *q_next,
                            double *A) {
  qd_batch_input samples = {
      .sample_count = 1, .q = input->q, .u = input->u, .tau = input->tau, .wrench = input->wrench};
  int32_t status = -1;
  qd_batch_failure failure;
  for (int k = 0; k < QD_PARAMETER_COUNT; ++k) {
    samples.parameter[k] = own[k];
  }
  const qd_batch_output output = {.q_next = q_next, .derivative[QD_BY_Q] = A, .status = &status};
  qd_batch *batch = qd_batch_create(model);
  const qd_status done = qd_linearize_batch(NULL, 1, batch, options, &samples, &output, &failure);
  FUZZ_CHECK(done == QD_OK, "batch status %d", done);
  FUZZ_CHECK((failure.sample == 0) == (status != QD_OK), "sample %d, status %d",
             (int)failure.sample, status);
  qd_batch_destroy(batch);
  return (qd_status)status;
}

/* Parameters near those of the model, or anything; those that the check refuses are left out. */
static void read_parameters(fuzz_input *in, const qd_model *model, parameters *p,
                            const double **own) {
  for (int k = 0; k < QD_PARAMETER_COUNT; ++k) {
    const int size = qd_parameter_size(model, (qd_parameter)k), kind = fuzz_integer(in, 0, 7);
    const char *reason = NULL;
    int index;
    own[k] = NULL;
    if (size == 0 || kind > 3) {
      continue;
    }
    memcpy(p[k].values, qd_parameter_values(model, (qd_parameter)k), (size_t)size * sizeof(double));
    for (int i = 0; i < size && kind > 0; ++i) {
      p[k].values[i] = kind == 1 ? fuzz_any(in) : p[k].values[i] * fuzz_size(in, 0.1, 10.0);
    }
    const qd_status status =
        qd_parameter_check(model, (qd_parameter)k, p[k].values, &index, &reason);
    FUZZ_CHECK((status == QD_OK) == (reason == NULL), "%s: status %d",
               qd_parameter_name((qd_parameter)k), status);
    FUZZ_CHECK(kind > 0 || status == QD_OK, "%s: the model's own are refused: %s",
               qd_parameter_name((qd_parameter)k), reason);
    own[k] = status == QD_OK ? p[k].values : NULL;
  }
}

/* A batch of one gives what a step gave, and finite numbers with other parameters. */
static void exercise_batch(fuzz_input *in, const qd_model *model, const qd_step_options *options,
                           const qd_step_input *input, qd_status status, const double *q_next) {
  static parameters p[QD_PARAMETER_COUNT];
  const double *own[QD_PARAMETER_COUNT] = {NULL};
  const int nq = qd_model_nq(model), nv = qd_model_nv(model);
  double q_batch[Q_MAX], A[Q_MAX * Q_MAX];
  const qd_status again = batch_step(model, options, input, own, q_batch, A);
  if (again == QD_NOT_FINITE) { /* a batch looks at its numbers; of a step the caller does */
    return;
  }
  FUZZ_CHECK(again == status, "status %d, in a batch %d", status, again);
  FUZZ_CHECK(status != QD_OK || memcmp(q_batch, q_next, (size_t)nq * sizeof(double)) == 0,
             "other bits in a batch");
  read_parameters(in, model, p, own);
  if (batch_step(model, options, input, own, q_batch, A) == QD_OK) {
    fuzz_check_finite(q_batch, nq, "q_next with parameters");
    fuzz_check_finite(A, nv * nv, "A with parameters");
  }
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
    if (i == 0) {
      exercise_batch(in, model, &options, &input, status, q_next);
    }
    if (status != QD_OK) {
      break;
    }
    fuzz_check_finite(q_next, nq, "q_next");
    fuzz_check_finite(A, nv * nv, "A");
    fuzz_check_finite(B, nv * nu, "B");
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
