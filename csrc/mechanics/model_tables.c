#include "mechanics/model_tables.h"

#include <math.h>
#include <stdlib.h>

#include "base/quat.h"
#include "base/rounding.h"
#include "mechanics/actuator.h"
#include "mechanics/inertia.h"
#include "mechanics/kinematics.h"

static void fill_joints(qd_model *m, const qd_model_spec *spec) {
  int nq = 0, nv = 0, j = 0;
  for (int b = 0; b < m->body.count; ++b) {
    m->body.joint_start[b] = j;
    for (; j < m->joint.count && spec->joint_body[j] == b; ++j) {
      m->joint.body[j] = b;
      m->joint.q[j] = nq;
      m->joint.v[j] = nv;
      nq += joint_q_count(m->joint.type[j]);
      nv += joint_v_count(m->joint.type[j]);
    }
  }
  m->body.joint_start[m->body.count] = j;
}

/* First and last DOF of the block of DOF v0 + i of a joint. */
static void fill_dof(qd_model *m, int joint, int i) {
  const int type = m->joint.type[joint];
  const int v0 = m->joint.v[joint], dof = v0 + i;
  m->dof.joint[dof] = joint;
  m->dof.body[dof] = m->joint.body[joint];
  m->dof.q[dof] = type <= QD_SLIDE ? m->joint.q[joint] : -1;
  m->dof.block_start[dof] = dof;
  m->dof.block_last[dof] = dof;
  if (type == QD_BALL) {
    m->dof.block_start[dof] = v0;
    m->dof.block_last[dof] = v0 + 2;
  } else if (type == QD_FREE && i >= 3) {
    m->dof.block_start[dof] = v0 + 3;
    m->dof.block_last[dof] = v0 + 5;
  }
}

static void fill_chains(qd_model *m) {
  int total = 0;
  for (int b = 0; b < m->body.count; ++b) {
    m->chain_start[b] = total;
    if (b > 0) {
      const int parent = m->body.parent[b];
      for (int i = m->chain_start[parent]; i < m->chain_start[parent + 1]; ++i) {
        m->chain[total++] = m->chain[i];
      }
    }
    for (int j = m->body.joint_start[b]; j < m->body.joint_start[b + 1]; ++j) {
      for (int i = 0; i < joint_v_count(m->joint.type[j]); ++i) {
        m->chain[total++] = m->joint.v[j] + i;
      }
    }
    m->chain_start[b + 1] = total;
  }
}

/* A tree has all DOFs whose paths start with the same joint. */
static void fill_trees(qd_model *m) {
  for (int dof = 0; dof < m->nv; ++dof) {
    const int_list chain = body_chain(m, m->dof.body[dof]);
    const int root = chain.at[0];
    m->dof.tree[dof] = root == dof ? m->tree.count++ : m->dof.tree[root];
  }
  for (int body = 0; body < m->body.count; ++body) {
    const int_list chain = body_chain(m, body);
    m->body.tree[body] = chain.count > 0 ? m->dof.tree[chain.at[0]] : -1;
  }
  for (int dof = 0; dof < m->nv; ++dof) {
    ++m->tree.dof_start[m->dof.tree[dof] + 1];
  }
  for (int tree = 0; tree < m->tree.count; ++tree) {
    m->tree.dof_start[tree + 1] += m->tree.dof_start[tree];
  }
  for (int dof = m->nv - 1; dof >= 0; --dof) { /* fills each tree from its end, */
    m->tree.dofs[--m->tree.dof_start[m->dof.tree[dof] + 1]] = dof;
  }
  for (int tree = 0; tree < m->tree.count; ++tree) { /* which has moved the starts down by one */
    m->tree.dof_start[tree] = m->tree.dof_start[tree + 1];
  }
  m->tree.dof_start[m->tree.count] = m->nv;
}

/* Upper bound of the number of tiles that contain these DOFs. Variables of a tree keep the order of
 * its DOFs, so they span no more columns than the DOFs. */
static int tile_bound(int_list dofs) {
  const int by_span = dofs.count > 0 ? (dofs.at[dofs.count - 1] - dofs.at[0] + 7) / 4 : 0;
  return dofs.count < by_span ? dofs.count : by_span;
}

static void fill_tile_bounds(qd_model *m) {
  for (int body = 0; body < m->body.count; ++body) {
    m->body.tile_bound[body] = tile_bound(body_chain(m, body));
  }
  for (int tree = 0; tree < m->tree.count; ++tree) {
    m->tree.tile_bound[tree] = tile_bound(list_part(m->tree.dofs, m->tree.dof_start, tree));
  }
}

/* The actuators of each of `count` DOFs or tendons, ascending. */
static void sort_actuators(int *start, int *list, int count, const int *of, int nu) {
  int at = 0;
  start[0] = 0;
  for (int k = 0; k < count; ++k) {
    for (int i = 0; i < nu; ++i) {
      if (of[i] == k) {
        list[at++] = i;
      }
    }
    start[k + 1] = at;
  }
}

static void fill_actuators(qd_model *m, const qd_model_spec *spec) {
  for (int i = 0; i < m->nu; ++i) {
    const int tendon = spec->actuator_tendon != NULL ? spec->actuator_tendon[i] : -1;
    const int dof = tendon < 0 ? m->joint.v[spec->actuator_joint[i]] : -1;
    m->actuator.dof[i] = dof;
    m->actuator.tendon[i] = tendon;
    m->actuator.is_spring[i] = spec->actuator_stiffness[i] > 0.0;
    if (dof >= 0) {
      m->dof.is_driven[dof] |= m->actuator.is_spring[i];
    }
  }
  sort_actuators(m->dof.actuator_start, m->dof.actuators, m->nv, m->actuator.dof, m->nu);
  sort_actuators(m->tendon.actuator_start, m->tendon.actuators, m->tendon.count, m->actuator.tendon,
                 m->nu);
  for (int tree = 0; tree < m->tree.count; ++tree) {
    m->tree.is_driven[tree] = 1;
  }
  for (int dof = 0; dof < m->nv; ++dof) {
    m->tree.is_driven[m->dof.tree[dof]] &= m->dof.is_driven[dof];
  }
  model_stiffness_fill(m);
  model_bounds_fill(m);
}

/* Driven DOFs whose springs all have force limits. */
static void fill_limited(qd_model *m) {
  memcpy(m->dof.is_limited, m->dof.is_driven, (size_t)m->nv * sizeof(int));
  for (int i = 0; i < m->nu; ++i) {
    const int holds = m->actuator.is_spring[i] && !actuator_is_bounded(m, i);
    if (m->actuator.dof[i] >= 0) {
      m->dof.is_limited[m->actuator.dof[i]] &= !holds;
    }
  }
}

void model_bounds_fill(qd_model *m) {
  m->bounded_forces = 0;
  for (int dof = 0; dof < m->nv; ++dof) {
    m->bounded_forces += m->parameters.joint_friction[m->dof.joint[dof]] > 0.0;
  }
  for (int i = 0; i < m->nu; ++i) {
    m->bounded_forces += actuator_is_bounded(m, i);
  }
  fill_limited(m);
}

void model_stiffness_fill(qd_model *m) {
  double smallest = INFINITY;
  for (int i = 0; i < m->nu; ++i) {
    if (m->actuator.is_spring[i]) {
      smallest = fmin(smallest, m->parameters.actuator_stiffness[i]);
    }
  }
  m->smallest_stiffness = smallest < INFINITY ? smallest : 0.0;
  const model_parameters *p = &m->parameters;
  m->actuator.are_springs = 1;
  for (int i = 0; i < m->nu; ++i) {
    const double *slope = m->actuator.gain_slope + 2 * i;
    const int more = p->actuator_gain[i] != 0.0 || p->actuator_bias[i] != 0.0 ||
                     p->actuator_damping[i] != 0.0 || slope[0] != 0.0 || slope[1] != 0.0;
    m->actuator.are_springs &= !more;
  }
}

void model_compliance_fill(qd_model *m) {
  m->pair.give = 0;
  for (int i = 0; i < m->pair.count; ++i) {
    m->pair.give |= m->parameters.pair_compliance[i] > 0.0;
  }
}

/* Radius of the bounding sphere about a geometry's centre. */
static double bounding_radius(const qd_model *m, int geom) {
  const double *size = m->parameters.geom_size + 3 * geom;
  switch (m->geom.type[geom]) {
  case QD_SPHERE:
    return size[0];
  case QD_CAPSULE:
    return size[0] + size[1];
  case QD_BOX:
    return vec3_norm(size);
  case QD_CYLINDER:
    return hypot(size[0], size[1]);
  case QD_ELLIPSOID:
    return fmax(size[0], fmax(size[1], size[2]));
  case QD_MESH:
    return m->geom.mesh[geom] >= 0 ? m->mesh[m->geom.mesh[geom]]->radius : INFINITY;
  case QD_CLOUD:
    return m->cloud[m->geom.cloud[geom]]->extent + size[0];
  case QD_HFIELD: {
    const height_field *field = m->hfield[m->geom.hfield[geom]];
    const double corner[3] = {field->half[0], field->half[1],
                              fmax(fabs(field->highest), fabs(field->bottom))};
    return vec3_norm(corner);
  }
  default:
    return INFINITY;
  }
}

static void fill_geoms(qd_model *m, const qd_model_spec *spec) {
  for (int i = 0; i < m->geom.count; ++i) {
    double quat[4];
    memcpy(quat, spec->geom_quat + 4 * i, sizeof quat);
    quat_normalize(quat);
    quat_to_mat3(m->geom.rot + 9 * i, quat);
    const convex_mesh *mesh = m->geom.mesh[i] >= 0 ? m->mesh[m->geom.mesh[i]] : NULL;
    if (mesh != NULL) { /* the mesh's frame is at its centroid */
      double center[3];
      mat3_mul_vec(center, m->geom.rot + 9 * i, mesh->center);
      vec3_axpy(m->geom.pos + 3 * i, 1.0, center);
    }
    const point_cloud *cloud = m->geom.cloud[i] >= 0 ? m->cloud[m->geom.cloud[i]] : NULL;
    if (cloud != NULL) { /* the cloud's frame is at the centre of its box */
      double center[3];
      mat3_mul_vec(center, m->geom.rot + 9 * i, cloud->center);
      vec3_axpy(m->geom.pos + 3 * i, 1.0, center);
    }
  }
  model_radii_fill(m);
}

static void fill_soft_pairs(qd_model *m) {
  for (int i = 0; i < m->pair.count; ++i) {
    const double *modulus = m->parameters.geom_modulus;
    const int *geom = m->pair.geom + 2 * i;
    const int is_soft = modulus[geom[0]] > 0.0 || modulus[geom[1]] > 0.0;
    m->pair.soft[i] = is_soft ? m->pair.soft_count : -1;
    if (is_soft) {
      m->pair.of_soft[m->pair.soft_count++] = i;
    }
  }
}

void model_radii_fill(qd_model *m) {
  double smallest = INFINITY;
  for (int i = 0; i < m->geom.count; ++i) {
    m->geom.radius[i] = bounding_radius(m, i);
    smallest = m->geom.radius[i] > 0.0 ? fmin(smallest, m->geom.radius[i]) : smallest;
  }
  if (smallest < INFINITY) {
    m->smallest_size = smallest;
  }
}

/* Position, in the body's frame, of the first or last joint that rotates a body; without such a
 * joint, its origin. */
static void turning_point(double point[3], const qd_model *m, int body, int last) {
  const int start = m->body.joint_start[body], end = m->body.joint_start[body + 1];
  vec3_set(point, 0.0, 0.0, 0.0);
  for (int i = start; i < end; ++i) {
    const int j = last ? start + end - 1 - i : i;
    if (m->joint.type[j] == QD_HINGE || m->joint.type[j] == QD_BALL) {
      vec3_copy(point, m->joint.pos + 3 * j);
      return;
    }
  }
}

static double distance(const double a[3], const double b[3]) {
  double d[3];
  vec3_sub(d, b, a);
  return vec3_norm(d);
}

static double max_of(const double *values, int count) {
  double largest = 0.0;
  for (int i = 0; i < count; ++i) {
    largest = fmax(largest, values[i]);
  }
  return largest;
}

/* Lengths that motions of hinges and ball joints do not change. */
static void fill_arms(qd_model *m) {
  double first[3], last[3], in_parent[3], rot[9];
  for (int b = 1; b < m->body.count; ++b) {
    turning_point(first, m, b, 0);
    turning_point(last, m, m->body.parent[b], 1);
    quat_to_mat3(rot, m->body.quat + 4 * b);
    mat3_mul_add(in_parent, rot, first, m->body.pos + 3 * b);
    m->body.arm[b] = distance(in_parent, last);
  }
  for (int j = 1; j < m->joint.count; ++j) {
    const int type = m->joint.type[j];
    for (int i = j - 1; i >= 0 && m->joint.body[i] == m->joint.body[j] && type != QD_SLIDE; --i) {
      if (m->joint.type[i] != QD_SLIDE) {
        m->joint.arm[j] = distance(m->joint.pos + 3 * i, m->joint.pos + 3 * j);
        break;
      }
    }
  }
  for (int i = 0; i < m->geom.count; ++i) {
    turning_point(last, m, m->geom.body[i], 1);
    m->geom.arm[i] = distance(m->geom.pos + 3 * i, last);
  }
  const double longest =
      fmax(max_of(m->body.arm, m->body.count), max_of(m->joint.arm, m->joint.count));
  m->smallest_size = m->smallest_size > 0.0 ? m->smallest_size : longest;
}

static int usual_contacts(const qd_model *m, int geom) {
  switch (m->geom.type[geom]) {
  case QD_BOX:
  case QD_MESH:
    return 4;
  case QD_CAPSULE:
    return 2;
  case QD_CLOUD:
    return m->cloud[m->geom.cloud[geom]]->contact_count;
  default:
    return 1;
  }
}

/* Initial capacity: all contacts of a small model, a first guess for a large one. */
static void fill_capacity(qd_model *m) {
  int capacity = 0;
  for (int i = 0; i < m->pair.count && capacity < 64; ++i) {
    const int a = usual_contacts(m, m->pair.geom[2 * i]);
    const int b = usual_contacts(m, m->pair.geom[2 * i + 1]);
    capacity += a > b ? a : b;
  }
  m->contact_capacity = capacity < 8 ? 8 : capacity;
}

static void count_probed_pairs(qd_model *m) {
  for (int i = 0; i < m->pair.count; ++i) {
    m->pair.probed_count += shape_is_in_parts(m->geom.type[m->pair.geom[2 * i]]) ||
                            shape_is_in_parts(m->geom.type[m->pair.geom[2 * i + 1]]);
  }
}

/* The body of a tendon's point or geometry; -1 for other rows. */
static int tendon_row_body(const qd_model *m, int i) {
  const int object = m->tendon.object[i], part = m->tendon.part[i];
  return part == QD_TENDON_POINT ? object : (part == QD_TENDON_WRAP ? m->geom.body[object] : -1);
}

/* Number of a tendon's joints or points that a DOF moves; *all: 1 if it moves all of them. */
static int points_moved(const qd_model *m, int tendon, int dof, int *all) {
  int moved = 0;
  *all = 1;
  for (int i = m->tendon.start[tendon]; i < m->tendon.start[tendon + 1]; ++i) {
    if (m->tendon.type[tendon] == QD_TENDON_FIXED) {
      moved += m->joint.v[m->tendon.object[i]] == dof;
      continue;
    }
    const int body = tendon_row_body(m, i);
    if (body >= 0) {
      const int moves = body_is_behind(m, body, dof);
      moved += moves;
      *all = *all && moves;
    }
  }
  return moved;
}

static void fill_tendons(qd_model *m, const qd_model_spec *spec) {
  m->tendon.dof_total = 0;
  for (int t = 0; t < m->tendon.count; ++t) {
    m->tendon.start[t + 1] = m->tendon.start[t] + spec->tendon_point_count[t];
    for (int dof = 0; dof < m->nv; ++dof) {
      int all;
      if (points_moved(m, t, dof, &all) > 0) {
        m->tendon.dof[m->tendon.dof_total] = dof;
        m->tendon.dof_counts[m->tendon.dof_total++] =
            m->tendon.type[t] == QD_TENDON_FIXED || m->tendon.type[t] == QD_TENDON_THRUST || !all;
      }
    }
    m->tendon.dof_start[t + 1] = m->tendon.dof_total;
  }
  for (int i = 0; i < m->constraint.count; ++i) {
    for (int k = 0; k < 2 && m->constraint.type[i] == QD_TENDON_COUPLING; ++k) {
      if (m->constraint.object[2 * i + k] >= 0) {
        m->tendon.is_coupled[m->constraint.object[2 * i + k]] = 1;
      }
    }
  }
}

void model_tables_fill(qd_model *m, const qd_model_spec *spec) {
  fill_joints(m, spec);
  fill_chains(m);
  for (int j = 0; j < m->joint.count; ++j) {
    for (int i = 0; i < joint_v_count(m->joint.type[j]); ++i) {
      fill_dof(m, j, i);
    }
  }
  fill_trees(m);
  fill_tile_bounds(m);
  fill_actuators(m, spec);
  fill_tendons(m, spec);
  model_compliance_fill(m);
  fill_geoms(m, spec);
  fill_soft_pairs(m);
  fill_arms(m);
  pair_table_fill(&m->pair.table, spec, m->geom.radius);
  fill_capacity(m);
  count_probed_pairs(m);
}

/* ------------------------------------------------------------ the plane of planar models */

/* A normal that is parallel to all hinge axes, or perpendicular to all slides. */
static int find_normal(const qd_model *m, const kinematics *k, double normal[3]) {
  const double *first_slide = NULL;
  for (int dof = 0; dof < m->nv; ++dof) {
    if (m->joint.type[m->dof.joint[dof]] == QD_HINGE) {
      vec3_copy(normal, k->dof_screw[dof].w);
      return 1;
    }
  }
  for (int dof = 0; dof < m->nv; ++dof) {
    const double *axis = k->dof_screw[dof].v;
    if (first_slide == NULL) {
      first_slide = axis;
      continue;
    }
    vec3_cross(normal, first_slide, axis);
    if (vec3_normalize(normal) > CALLERS_ROUNDING) {
      return 1;
    }
  }
  if (first_slide == NULL) {
    return 0;
  }
  /* all motion is along one line: any plane through it is valid */
  int least = 0;
  for (int i = 1; i < 3; ++i) {
    least = fabs(first_slide[i]) < fabs(first_slide[least]) ? i : least;
  }
  double e[3] = {0.0, 0.0, 0.0};
  e[least] = 1.0;
  vec3_cross(normal, first_slide, e);
  vec3_normalize(normal);
  return 1;
}

static void fill_planar(qd_model *m, const kinematics *k) {
  double *normal = m->planar_normal;
  for (int j = 0; j < m->joint.count; ++j) {
    if (m->joint.type[j] > QD_SLIDE) {
      return;
    }
  }
  if (!find_normal(m, k, normal)) {
    return;
  }
  for (int dof = 0; dof < m->nv; ++dof) {
    const screw *s = k->dof_screw + dof;
    const int hinge = m->joint.type[m->dof.joint[dof]] == QD_HINGE;
    double off[3];
    vec3_cross(off, s->w, normal);
    const double error = hinge ? vec3_norm(off) : fabs(vec3_dot(s->v, normal));
    if (error > CALLERS_ROUNDING) {
      return;
    }
  }
  m->planar = 1;
}

/* Number of springs that share the inertia of a limited DOF. */
static int inertia_shares(const qd_model *m, int dof) {
  int shares = 0;
  const int_list actuators = dof_actuators(m, dof);
  for (int k = 0; k < actuators.count; ++k) {
    shares += actuator_shares_inertia(m, actuators.at[k]);
  }
  return shares;
}

void model_tree_inertia_fill(qd_model *m, const kinematics *k, const inertia *I) {
  for (int tree = 0; tree < m->tree.count; ++tree) {
    m->tree.inertia[tree] = 0.0;
  }
  for (int dof = 0; dof < m->nv; ++dof) {
    if (!m->dof.is_driven[dof]) {
      double *largest = m->tree.inertia + m->dof.tree[dof];
      *largest = fmax(*largest, inertia_diagonal(m, k, I, dof));
    }
  }
  for (int i = 0; i < m->nu; ++i) {
    m->actuator.inertia[i] = 0.0;
    if (actuator_shares_inertia(m, i)) {
      m->actuator.inertia[i] =
          inertia_diagonal(m, k, I, m->actuator.dof[i]) / inertia_shares(m, m->actuator.dof[i]);
    }
  }
}

int model_inertia_tables_fill(qd_model *m, const double *q) {
  kinematics k;
  inertia I;
  arena counting = {NULL, 0};
  kinematics_lay_out(&k, m, &counting);
  inertia_lay_out(&I, m, &counting);
  char *block = malloc(counting.offset);
  if (block == NULL) {
    return 0;
  }
  arena a = {block, 0};
  kinematics_lay_out(&k, m, &a);
  inertia_lay_out(&I, m, &a);
  int joint;
  if (qd_normalize(m, q, m->default_q, &joint) != QD_OK) {
    memcpy(m->default_q, q, (size_t)m->nq * sizeof(double));
  }
  kinematics_compute(m, m->default_q, NULL, &k);
  inertia_compute(m, &k, 1, &I);
  fill_planar(m, &k);
  model_tree_inertia_fill(m, &k, &I);
  free(block);
  return 1;
}
