#include "mechanics/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "base/quat.h"
#include "base/vec3.h"
#include "mechanics/constraint.h"
#include "mechanics/inverse_weights.h"
#include "mechanics/model_tables.h"
#include "mechanics/spec/spec_check.h"

/* Counts the sizes that the layout needs, from the checked spec. */
static void count_sizes(qd_model *model, const qd_model_spec *spec) {
  model->body.count = spec->body_count;
  model->joint.count = spec->joint_count;
  model->geom.count = spec->geom_count;
  model->pair.count = spec->pair_count;
  model->pair.table.in_use = pair_table_wanted(spec);
  model->mesh_count = spec->mesh_count;
  model->cloud_count = spec->cloud_count;
  model->hfield_count = spec->hfield_count;
  model->field_count = spec->field_count;
  model->nu = spec->actuator_count;
  model->constraint.count = spec->constraint_count;
  for (int i = 0; i < spec->constraint_count; ++i) {
    model->constraint.row_count += constraint_row_count(spec->constraint_type[i]);
  }
  model->mocap_count = spec->mocap_count;
  for (int b = 0; b < spec->body_count && spec->body_gravcomp != NULL; ++b) {
    model->compensates |= spec->body_gravcomp[b] != 0.0;
  }
  model->tendon.count = spec->tendon_count;
  model->tendon.point_total = spec->tendon_point_total;
  for (int j = 0; j < spec->joint_count; ++j) {
    model->nq += joint_q_count(spec->joint_type[j]);
    model->nv += joint_v_count(spec->joint_type[j]);
  }
  model->tendon.dof_total = model->tendon.count * model->nv; /* upper bound, until they are found */
}

static int chain_total(const qd_model_spec *spec, int *depth) {
  int total = 0;
  for (int b = 0; b < spec->body_count; ++b) {
    depth[b] = b == 0 ? 0 : depth[spec->body_parent[b]];
    for (int j = 0; j < spec->joint_count; ++j) {
      depth[b] += spec->joint_body[j] == b ? joint_v_count(spec->joint_type[j]) : 0;
    }
    total += depth[b];
  }
  return total;
}

void model_parameters_lay_out(qd_model *m, arena *a) {
  model_parameters *p = &m->parameters;
  const size_t nb = (size_t)m->body.count, nj = (size_t)m->joint.count;
  p->gravity = arena_doubles(a, 3);
  p->body_mass = arena_doubles(a, nb);
  p->body_com = arena_doubles(a, 3 * nb);
  p->body_inertia = arena_doubles(a, 9 * nb);
  ARENA_DOUBLES(a, nj, &p->joint_stiffness, &p->joint_springref, &p->joint_damping,
                &p->joint_armature, &p->joint_friction);
  ARENA_DOUBLES(a, (size_t)m->nu, &p->actuator_stiffness, &p->actuator_gain, &p->actuator_bias,
                &p->actuator_damping);
  p->actuator_force_range = arena_doubles(a, 2 * (size_t)m->nu);
  p->geom_size = arena_doubles(a, 3 * (size_t)m->geom.count);
  p->geom_modulus = arena_doubles(a, (size_t)m->geom.count);
  p->pair_friction = arena_doubles(a, 5 * (size_t)m->pair.count);
  p->pair_compliance = arena_doubles(a, (size_t)m->pair.count);
  p->tendon_stiffness = arena_doubles(a, (size_t)m->tendon.count);
}

static void lay_out_bodies(qd_model *m, arena *a, int chain_count) {
  const size_t nb = (size_t)m->body.count, nv = (size_t)m->nv;
  ARENA_INTS(a, nb, &m->body.parent, &m->body.mocap, &m->body.tree, &m->body.tile_bound);
  ARENA_INTS(a, nb + 1, &m->body.joint_start, &m->chain_start);
  m->chain = arena_ints(a, (size_t)chain_count);
  m->body.pos = arena_doubles(a, 3 * nb);
  m->body.quat = arena_doubles(a, 4 * nb);
  ARENA_DOUBLES(a, nb, &m->body.fall, &m->tree.inertia, &m->body.invweight, &m->body.turn_invweight,
                &m->body.arm);
  m->mocap_body = arena_ints(a, (size_t)m->mocap_count);
  m->tree.dof_start = arena_ints(a, nv + 1);
  ARENA_INTS(a, nv, &m->tree.dofs, &m->tree.tile_bound, &m->tree.is_driven);
  m->default_q = arena_doubles(a, (size_t)m->nq);
  m->body.least_weight = arena_doubles(a, 2 * nb);
  m->dof.invweight = arena_doubles(a, (size_t)m->nv);
}

static void lay_out_joints(qd_model *m, arena *a) {
  const size_t nj = (size_t)m->joint.count, nv = (size_t)m->nv;
  ARENA_INTS(a, nj, &m->joint.type, &m->joint.body, &m->joint.q, &m->joint.v);
  m->joint.limit_solver = arena_doubles(a, 9 * nj);
  m->joint.friction_solver = arena_doubles(a, 8 * nj);
  ARENA_DOUBLES(a, 3 * nj, &m->joint.pos, &m->joint.axis);
  ARENA_DOUBLES(a, nj, &m->joint.ref, &m->joint.arm);
  m->joint.range = arena_doubles(a, 2 * nj);
  ARENA_INTS(a, nv, &m->dof.joint, &m->dof.body, &m->dof.block_start, &m->dof.block_last,
             &m->dof.is_driven, &m->dof.is_limited, &m->dof.tree, &m->dof.q);
}

static void lay_out_actuators(qd_model *m, arena *a) {
  const size_t nv = (size_t)m->nv, nu = (size_t)m->nu;
  m->dof.actuator_start = arena_ints(a, nv + 1);
  ARENA_INTS(a, nu, &m->dof.actuators, &m->actuator.dof, &m->actuator.tendon, &m->tendon.actuators,
             &m->actuator.is_spring);
  m->tendon.actuator_start = arena_ints(a, (size_t)m->tendon.count + 1);
  ARENA_DOUBLES(a, nu, &m->actuator.gear, &m->actuator.inertia);
  ARENA_DOUBLES(a, 2 * nu, &m->actuator.gain_slope, &m->actuator.range, &m->actuator.own_range);
}

/* Constraints and tendons. */
static void lay_out_rows(qd_model *m, arena *a) {
  const size_t nc = (size_t)m->constraint.count, nt = (size_t)m->tendon.count,
               points = (size_t)m->tendon.point_total;
  m->constraint.type = arena_ints(a, nc);
  m->constraint.object = arena_ints(a, 2 * nc);
  m->constraint.data = arena_doubles(a, CONSTRAINT_DATA * nc);
  m->constraint.compliance = arena_doubles(a, 2 * nc);
  m->constraint.solver = arena_doubles(a, 8 * nc);
  m->constraint.torquescale = arena_doubles(a, nc);
  m->constraint.is_mocap = arena_take(a, nc);
  ARENA_INTS(a, nt, &m->tendon.type, &m->tendon.is_coupled);
  ARENA_INTS(a, nt + 1, &m->tendon.start, &m->tendon.dof_start);
  ARENA_INTS(a, points, &m->tendon.part, &m->tendon.object);
  m->tendon.data = arena_doubles(a, 3 * points);
  ARENA_DOUBLES(a, 2 * nt, &m->tendon.range, &m->tendon.rest);
  ARENA_DOUBLES(a, nt, &m->tendon.friction, &m->tendon.damping, &m->tendon.invweight);
  m->tendon.limit_solver = arena_doubles(a, 9 * nt);
  m->tendon.friction_solver = arena_doubles(a, 8 * nt);
  ARENA_INTS(a, (size_t)m->tendon.dof_total, &m->tendon.dof, &m->tendon.dof_counts);
}

static void lay_out_geoms(qd_model *m, arena *a) {
  const size_t ng = (size_t)m->geom.count;
  ARENA_INTS(a, ng, &m->geom.type, &m->geom.body, &m->geom.mesh, &m->geom.cloud, &m->geom.hfield,
             &m->geom.field);
  ARENA_DOUBLES(a, 3 * ng, &m->geom.pos, &m->geom.field_pos);
  m->geom.rot = arena_doubles(a, 9 * ng);
  ARENA_DOUBLES(a, ng, &m->geom.radius, &m->geom.arm, &m->geom.dissipation);
  m->mesh = arena_take(a, (size_t)m->mesh_count * sizeof *m->mesh);
  m->cloud = arena_take(a, (size_t)m->cloud_count * sizeof *m->cloud);
  m->hfield = arena_take(a, (size_t)m->hfield_count * sizeof *m->hfield);
  m->field = arena_take(a, (size_t)m->field_count * sizeof *m->field);
}

static void lay_out_pairs(qd_model *m, arena *a) {
  const size_t np = (size_t)m->pair.count;
  ARENA_INTS(a, np, &m->pair.soft, &m->pair.of_soft, &m->pair.dim, &m->pair.edges);
  m->pair.geom = arena_ints(a, 2 * np);
  ARENA_DOUBLES(a, np, &m->pair.margin, &m->pair.restitution, &m->pair.impratio, &m->pair.weight);
  m->pair.reference = arena_doubles(a, 4 * np);
  m->pair.impedance = arena_doubles(a, 5 * np);
  pair_table_lay_out(&m->pair.table, m->geom.count, m->pair.count, a);
}

static void lay_out(qd_model *m, arena *a, int chain_count) {
  lay_out_bodies(m, a, chain_count);
  lay_out_joints(m, a);
  lay_out_actuators(m, a);
  lay_out_geoms(m, a);
  lay_out_pairs(m, a);
  lay_out_rows(m, a);
  model_parameters_lay_out(m, a);
}

static void copy_ints(int *to, const int32_t *from, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = from[i];
  }
}

static void copy_doubles(double *to, const double *from, size_t count) {
  if (count > 0 && from != NULL) { /* arrays that are not given are zero */
    memcpy(to, from, count * sizeof(double));
  }
}

/* Copies an array if it is given; otherwise the destination stays zero. */
static void copy_given(double *to, const double *from, size_t count) {
  if (from != NULL) {
    copy_doubles(to, from, count);
  }
}

static void copy_parameters(qd_model *m, const qd_model_spec *spec) {
  const model_parameters *p = &m->parameters;
  const size_t nb = (size_t)m->body.count, nj = (size_t)m->joint.count;
  copy_doubles(p->gravity, spec->gravity, 3);
  m->integration = spec->integration;
  copy_doubles(p->body_mass, spec->body_mass, nb);
  copy_doubles(p->body_com, spec->body_com, 3 * nb);
  copy_doubles(p->body_inertia, spec->body_inertia, 9 * nb);
  copy_doubles(p->joint_stiffness, spec->joint_stiffness, nj);
  copy_doubles(p->joint_springref, spec->joint_springref, nj);
  copy_doubles(p->joint_damping, spec->joint_damping, nj);
  copy_doubles(p->joint_armature, spec->joint_armature, nj);
  copy_doubles(p->joint_friction, spec->joint_friction, nj);
  copy_doubles(p->actuator_stiffness, spec->actuator_stiffness, (size_t)m->nu);
  copy_doubles(p->actuator_gain, spec->actuator_gain, (size_t)m->nu);
  copy_doubles(p->actuator_bias, spec->actuator_bias, (size_t)m->nu);
  copy_doubles(p->actuator_damping, spec->actuator_damping, (size_t)m->nu);
  for (int i = 0; i < m->nu; ++i) {
    p->actuator_force_range[2 * i] = -INFINITY;
    p->actuator_force_range[2 * i + 1] = INFINITY;
  }
  copy_doubles(p->actuator_force_range, spec->actuator_force_range, 2 * (size_t)m->nu);
  copy_doubles(p->geom_size, spec->geom_size, 3 * (size_t)m->geom.count);
  copy_given(p->geom_modulus, spec->geom_modulus, (size_t)m->geom.count);
  copy_doubles(p->pair_friction, spec->pair_friction, 5 * (size_t)m->pair.count);
  copy_given(p->pair_compliance, spec->pair_compliance, (size_t)m->pair.count);
  copy_given(p->tendon_stiffness, spec->tendon_stiffness, (size_t)m->tendon.count);
}

/* MuJoCo's defaults for values that are not given: solref 0.02 s and 1, as K and B with the
 * solimp's largest impedance. */
#define DEFAULT_K (2500.0 / (0.95 * 0.95))
#define DEFAULT_B (100.0 / 0.95)
#define DEFAULT_SOLIMP 0.9, 0.95, 0.001, 0.5, 2.0

static void copy_rows(double *to, const double *from, int count, size_t width) {
  static const double law[9] = {DEFAULT_K, DEFAULT_B, QD_REFERENCE_TIMES, DEFAULT_SOLIMP, 0.0};
  for (size_t i = 0; i < (size_t)count; ++i) {
    copy_doubles(to + width * i, from != NULL ? from + width * i : law, width);
  }
}

static void copy_row_solvers(qd_model *m, const qd_model_spec *spec) {
  copy_rows(m->joint.limit_solver, spec->joint_limit_solver, m->joint.count, 9);
  copy_rows(m->joint.friction_solver, spec->joint_friction_solver, m->joint.count, 8);
  copy_rows(m->tendon.limit_solver, spec->tendon_limit_solver, m->tendon.count, 9);
  copy_rows(m->tendon.friction_solver, spec->tendon_friction_solver, m->tendon.count, 8);
  copy_rows(m->constraint.solver, spec->constraint_solver, m->constraint.count, 8);
}

static void copy_contact_solver(qd_model *m, const qd_model_spec *spec) {
  static const double impedance[5] = {DEFAULT_SOLIMP};
  static const double reference[4] = {DEFAULT_K, DEFAULT_B, DEFAULT_B, QD_REFERENCE_TIMES};
  m->pair.undamped = m->pair.bouncing = -1;
  for (int i = 0; i < m->pair.count; ++i) {
    const double *of = spec->pair_reference != NULL ? spec->pair_reference + 4 * i : reference;
    copy_doubles(m->pair.reference + 4 * i, of, 4);
    of = spec->pair_impedance != NULL ? spec->pair_impedance + 5 * i : impedance;
    copy_doubles(m->pair.impedance + 5 * i, of, 5);
    m->pair.impratio[i] = spec->pair_impratio != NULL ? spec->pair_impratio[i] : 1.0;
    m->pair.edges[i] = spec->pair_edges != NULL ? spec->pair_edges[i] : 2 * (m->pair.dim[i] - 1);
    m->pair.act_apart |= m->pair.margin[i] > 0.0;
    of = m->pair.reference + 4 * i;
    if (m->pair.undamped < 0 && !(of[1] > 0.0 && of[2] > 0.0)) {
      m->pair.undamped = i;
    }
    if (m->pair.bouncing < 0 && m->pair.restitution[i] > 0.0) {
      m->pair.bouncing = i;
    }
  }
}

static void copy_spec(qd_model *m, const qd_model_spec *spec) {
  const size_t nb = (size_t)m->body.count, nj = (size_t)m->joint.count;
  const size_t ng = (size_t)m->geom.count, np = (size_t)m->pair.count;
  copy_ints(m->body.parent, spec->body_parent, nb);
  copy_doubles(m->body.pos, spec->body_pos, 3 * nb);
  copy_doubles(m->body.quat, spec->body_quat, 4 * nb);
  for (size_t b = 0; b < nb; ++b) {
    quat_normalize(m->body.quat + 4 * b);
    m->body.fall[b] = spec->body_gravcomp != NULL ? 1.0 - spec->body_gravcomp[b] : 1.0;
    m->body.mocap[b] = -1;
  }
  copy_ints(m->mocap_body, spec->mocap_body, (size_t)m->mocap_count);
  for (int i = 0; i < m->mocap_count; ++i) {
    m->body.mocap[m->mocap_body[i]] = i;
  }
  copy_ints(m->joint.type, spec->joint_type, nj);
  copy_ints(m->joint.body, spec->joint_body, nj);
  copy_doubles(m->joint.pos, spec->joint_pos, 3 * nj);
  copy_doubles(m->joint.axis, spec->joint_axis, 3 * nj);
  for (size_t j = 0; j < nj; ++j) {
    vec3_normalize(m->joint.axis + 3 * j);
  }
  copy_doubles(m->joint.ref, spec->joint_ref, nj);
  copy_doubles(m->joint.range, spec->joint_range, 2 * nj);
  copy_doubles(m->actuator.gear, spec->actuator_gear, (size_t)m->nu);
  copy_doubles(m->actuator.gain_slope, spec->actuator_gain_slope, 2 * (size_t)m->nu);
  for (int i = 0; i < m->nu; ++i) {
    m->actuator.range[2 * i] = -INFINITY;
    m->actuator.range[2 * i + 1] = INFINITY;
    m->actuator.own_range[2 * i] = INFINITY;
    m->actuator.own_range[2 * i + 1] = -INFINITY;
  }
  copy_doubles(m->actuator.range, spec->actuator_range, 2 * (size_t)m->nu);
  copy_doubles(m->actuator.own_range, spec->actuator_own_range, 2 * (size_t)m->nu);
  copy_ints(m->geom.type, spec->geom_type, ng);
  copy_ints(m->geom.body, spec->geom_body, ng);
  for (size_t i = 0; i < ng; ++i) {
    m->geom.mesh[i] = spec->geom_mesh != NULL ? spec->geom_mesh[i] : -1;
    m->geom.cloud[i] = spec->geom_cloud != NULL ? spec->geom_cloud[i] : -1;
    m->geom.hfield[i] = spec->geom_hfield != NULL ? spec->geom_hfield[i] : -1;
    m->geom.field[i] = spec->geom_field != NULL ? spec->geom_field[i] : -1;
  }
  copy_doubles(m->geom.pos, spec->geom_pos, 3 * ng);
  copy_doubles(m->geom.field_pos, spec->geom_pos, 3 * ng);
  copy_given(m->geom.dissipation, spec->geom_dissipation, ng);
  copy_ints(m->pair.geom, spec->pair_geom, 2 * np);
  copy_ints(m->pair.dim, spec->pair_dim, np);
  copy_doubles(m->pair.margin, spec->pair_margin, np);
  for (size_t i = 0; i < np; ++i) {
    m->pair.restitution[i] = spec->pair_restitution != NULL ? spec->pair_restitution[i] : -1.0;
  }
  copy_row_solvers(m, spec);
  copy_contact_solver(m, spec);
  const size_t nc = (size_t)m->constraint.count;
  copy_ints(m->constraint.type, spec->constraint_type, nc);
  copy_ints(m->constraint.object, spec->constraint_object, 2 * nc);
  copy_doubles(m->constraint.data, spec->constraint_data, CONSTRAINT_DATA * nc);
  copy_given(m->constraint.compliance, spec->constraint_compliance, 2 * nc);
  for (size_t i = 0; i < nc; ++i) {
    const int *body = m->constraint.object + 2 * i;
    m->constraint.torquescale[i] =
        spec->constraint_torquescale != NULL ? spec->constraint_torquescale[i] : 1.0;
    m->constraint.is_mocap[i] = m->constraint.type[i] <= QD_WELD &&
                                (m->body.mocap[body[0]] >= 0 || m->body.mocap[body[1]] >= 0);
  }
  const size_t nt = (size_t)m->tendon.count, points = (size_t)m->tendon.point_total;
  copy_ints(m->tendon.type, spec->tendon_type, nt);
  copy_ints(m->tendon.object, spec->tendon_object, points);
  for (size_t i = 0; i < points && spec->tendon_part != NULL; ++i) {
    m->tendon.part[i] = spec->tendon_part[i];
    m->tendon.wrap_count += spec->tendon_part[i] == QD_TENDON_WRAP;
  }
  copy_doubles(m->tendon.data, spec->tendon_data, 3 * points);
  copy_doubles(m->tendon.range, spec->tendon_range, 2 * nt);
  copy_given(m->tendon.rest, spec->tendon_springrange, 2 * nt);
  copy_given(m->tendon.friction, spec->tendon_frictionloss, nt);
  copy_given(m->tendon.damping, spec->tendon_damping, nt);
  copy_parameters(m, spec);
}

/* One block holds the struct and all its arrays. */
static qd_model *allocate(const qd_model_spec *spec) {
  qd_model sizes;
  memset(&sizes, 0, sizeof sizes);
  count_sizes(&sizes, spec);
  int *depth = malloc((size_t)spec->body_count * sizeof(int));
  if (depth == NULL) {
    return NULL;
  }
  const int chain_count = chain_total(spec, depth);
  free(depth);
  arena counting = {NULL, 0};
  arena_take(&counting, sizeof(qd_model));
  lay_out(&sizes, &counting, chain_count);
  char *block = block_allocate(counting.offset);
  if (block == NULL) {
    return NULL;
  }
  memset(block, 0, counting.offset);
  arena a = {block, 0};
  qd_model *model = arena_take(&a, sizeof(qd_model));
  *model = sizes;
  lay_out(model, &a, chain_count);
  return model;
}

static qd_status create_meshes(qd_model *m, const qd_model_spec *spec, char *message,
                               size_t message_size) {
  const double *vertex = spec->mesh_vertex;
  const int32_t *face = spec->mesh_face;
  for (int i = 0; i < m->mesh_count; ++i) {
    const char *reason = NULL;
    int at;
    const qd_status status = convex_mesh_create(m->mesh + i, vertex, spec->mesh_vertex_count[i],
                                                face, spec->mesh_face_count[i], &reason, &at);
    if (status != QD_OK) {
      if (message != NULL && message_size > 0 && reason != NULL) {
        if (at >= 0) {
          snprintf(message, message_size, "mesh[%d]: face %d: %s", i, at, reason);
        } else {
          snprintf(message, message_size, "mesh[%d]: %s", i, reason);
        }
      }
      return status;
    }
    vertex += 3 * spec->mesh_vertex_count[i];
    face += 3 * spec->mesh_face_count[i];
  }
  return QD_OK;
}

static qd_status create_clouds(qd_model *m, const qd_model_spec *spec) {
  const double *point = spec->cloud_point;
  for (int i = 0; i < m->cloud_count; ++i) {
    m->cloud[i] =
        point_cloud_create(point, spec->cloud_point_count[i], spec->cloud_contact_count[i]);
    if (m->cloud[i] == NULL) {
      return QD_OUT_OF_MEMORY;
    }
    point += 3 * spec->cloud_point_count[i];
  }
  return QD_OK;
}

static qd_status create_hfields(qd_model *m, const qd_model_spec *spec) {
  const double *height = spec->hfield_height;
  for (int i = 0; i < m->hfield_count; ++i) {
    const int32_t *grid = spec->hfield_grid + 2 * i;
    const double *size = spec->hfield_size + 3 * i;
    m->hfield[i] = height_field_create(height, grid[0], grid[1], size, size[2]);
    if (m->hfield[i] == NULL) {
      return QD_OUT_OF_MEMORY;
    }
    height += (ptrdiff_t)grid[0] * grid[1];
  }
  return QD_OK;
}

static qd_status create_fields(qd_model *m, const qd_model_spec *spec, char *message,
                               size_t message_size) {
  const double *vertex = spec->field_vertex, *pressure = spec->field_pressure;
  const int32_t *index = spec->field_index;
  for (int i = 0; i < m->field_count; ++i) {
    const qd_field_spec one = {.kind = (qd_field_kind)spec->field_kind[i],
                               .vertex_count = spec->field_vertex_count[i],
                               .element_count = spec->field_element_count[i],
                               .vertex = vertex,
                               .element = index,
                               .pressure = pressure,
                               .slope = spec->field_slope[i]};
    char reason[160] = "";
    const qd_status status = qd_field_create(&one, m->field + i, reason, sizeof reason);
    if (status != QD_OK) {
      if (message != NULL && message_size > 0 && reason[0]) {
        snprintf(message, message_size, "field[%d]: %s", i, reason);
      }
      return status;
    }
    vertex += 3 * one.vertex_count;
    pressure += one.vertex_count;
    index += field_corners(one.kind) * one.element_count;
  }
  return QD_OK;
}

qd_status qd_model_create(const qd_model_spec *spec, qd_model **model, char *message,
                          size_t message_size) {
  *model = NULL;
  qd_status status = model_spec_check(spec, message, message_size);
  if (status != QD_OK) {
    return status;
  }
  qd_model *m = allocate(spec);
  if (m == NULL) {
    return QD_OUT_OF_MEMORY;
  }
  copy_spec(m, spec);
  status = create_meshes(m, spec, message, message_size);
  if (status == QD_OK) {
    status = create_clouds(m, spec);
  }
  if (status == QD_OK) {
    status = create_hfields(m, spec);
  }
  if (status == QD_OK) {
    status = create_fields(m, spec, message, message_size);
  }
  if (status != QD_OK) {
    qd_model_destroy(m);
    return status;
  }
  model_tables_fill(m, spec);
  if (!model_inertia_tables_fill(m, spec->default_q) || !model_inverse_weights_fill(m, spec)) {
    qd_model_destroy(m);
    return QD_OUT_OF_MEMORY;
  }
  *model = m;
  return QD_OK;
}

void qd_model_destroy(qd_model *model) {
  for (int i = 0; model != NULL && i < model->mesh_count; ++i) {
    convex_mesh_destroy(model->mesh[i]);
  }
  for (int i = 0; model != NULL && i < model->cloud_count; ++i) {
    point_cloud_destroy(model->cloud[i]);
  }
  for (int i = 0; model != NULL && i < model->hfield_count; ++i) {
    height_field_destroy(model->hfield[i]);
  }
  for (int i = 0; model != NULL && i < model->field_count; ++i) {
    qd_field_destroy(model->field[i]);
  }
  block_free(model);
}

int qd_model_nq(const qd_model *model) { return model->nq; }
int qd_model_nv(const qd_model *model) { return model->nv; }
int qd_model_nu(const qd_model *model) { return model->nu; }
int qd_model_constraint_count(const qd_model *model) { return model->constraint.count; }
int qd_model_tendon_count(const qd_model *model) { return model->tendon.count; }
int qd_model_mocap_count(const qd_model *model) { return model->mocap_count; }
int qd_model_body_count(const qd_model *model) { return model->body.count; }
const double *qd_model_body_invweights(const qd_model *model) { return model->body.invweight; }

/* Copies the pair's geometries; returns 0 if there is no such pair. */
static int read_pair(const qd_model *model, int pair, int geom[2]) {
  if (pair >= 0) {
    memcpy(geom, model->pair.geom + 2 * pair, 2 * sizeof(int));
  }
  return pair >= 0;
}

int qd_model_undamped_pair(const qd_model *model, int geom[2]) {
  return read_pair(model, model->pair.undamped, geom);
}
int qd_model_bouncing_pair(const qd_model *model, int geom[2]) {
  return read_pair(model, model->pair.bouncing, geom);
}
int qd_model_soft_pair_count(const qd_model *model) { return model->pair.soft_count; }

int qd_model_planar_normal(const qd_model *model, double *normal) {
  if (model->planar) {
    vec3_copy(normal, model->planar_normal);
  }
  return model->planar;
}
