#include "dynamics/problem/metric_share.h"

#include <math.h>
#include <string.h>

#include "base/quat.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"
#include "mechanics/actuator.h"

static double stiffness_of(const problem *p, int actuator) {
  return problem_actuator_force(p, actuator).stiffness;
}

static void add_tendon(problem *p, int tendon) {
  const qd_model *model = p->model;
  const double *rest = model->tendon.rest + 2 * tendon, length = p->tendons.length[tendon];
  const int slack = rest[0] < rest[1] && length >= rest[0] && length <= rest[1];
  const int_list actuators = tendon_actuators(model, tendon);
  double K = damping_rate(p->options) * model->tendon.damping[tendon];
  K += slack ? 0.0 : model->parameters.tendon_stiffness[tendon];
  for (int k = 0; k < actuators.count; ++k) {
    K += stiffness_of(p, actuators.at[k]);
  }
  for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
    const int variable = p->variable_of_dof[model->tendon.dof[d]];
    if (model->tendon.dof_counts[d] && variable >= 0) {
      p->program.row_metric[variable] += K * p->tendons.rate[d] * p->tendons.rate[d];
    }
  }
}

void metric_share_begin(problem *p) {
  memset(p->program.row_metric, 0, (size_t)p->n * sizeof(double));
  if (!contacts_yield_in_time(p->options)) {
    return;
  }
  for (int i = 0; i < p->model->tendon.count; ++i) {
    add_tendon(p, i);
  }
  for (int i = 0; i < p->model->nu; ++i) {
    const int dof = p->model->actuator.dof[i], variable = dof >= 0 ? p->variable_of_dof[dof] : -1;
    const actuator_force force = {.stiffness = stiffness_of(p, i)};
    if (variable >= 0 && actuator_has_row(p, i, &force)) {
      p->program.row_metric[variable] += force.stiffness;
    }
  }
}

/* The two sums. */
typedef struct sums {
  double by_metric, by_mass;
} sums;

static void add_entry(sums *s, double entry, double mass, double spring) {
  if (mass > 0.0) {
    s->by_metric += entry * entry / (mass + spring);
    s->by_mass += entry * entry / mass;
  }
}

/* Adds the three rotations from variable i on, along the axes of their body. */
static void add_turns(sums *s, const problem *p, const island *one, int i, const double quat[4]) {
  double R[9], mass[9], along[3], turned[3];
  const double *row = p->scratch.variables + i, *spring = p->program.spring + one->variable + i;
  const double *beside = p->program.row_metric + one->variable + i;
  quat_to_mat3(R, quat);
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      mass[3 * a + b] = *cost_entry(one, i + a, i + b) - (a == b ? spring[a] : 0.0);
    }
  }
  for (int axis = 0; axis < 3; ++axis) {
    mat3_column(along, R, axis);
    mat3_mul_vec(turned, mass, along);
    add_entry(s, vec3_dot(row, along), vec3_dot(along, turned), spring[axis] + beside[axis]);
  }
}

/* The share of a row in p->scratch (variables of the island). */
static double share_of(const problem *p, const island *one) {
  sums s = {0.0, 0.0};
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    if (dof < 0) {
      continue;
    }
    const int joint = p->model->dof.joint[dof], type = p->model->joint.type[joint];
    const int first = p->model->joint.v[joint] + (type == QD_FREE ? 3 : 0);
    if ((type == QD_BALL || type == QD_FREE) && dof >= first) {
      if (dof == first) {
        add_turns(&s, p, one, i,
                  p->input->q + p->model->joint.q[joint] + (type == QD_FREE ? 3 : 0));
      }
      continue;
    }
    const double spring = p->program.spring[one->variable + i];
    const double mass = *cost_entry(one, i, i) - spring;
    add_entry(&s, p->scratch.variables[i], mass, spring + p->program.row_metric[one->variable + i]);
  }
  return s.by_mass > 0.0 ? s.by_metric / s.by_mass : 1.0;
}

int metric_share_weigh(mujoco_reference *of, const problem *p, const island *one,
                       const tile_rows *rows, int i) {
  if (!(of->kind & QD_REFERENCE_IMPLICIT)) {
    return 0;
  }
  memset(p->scratch.variables, 0, (size_t)one->variable_count * sizeof(double));
  for (int t = rows->start[i]; t < rows->start[i + 1]; ++t) {
    for (int lane = 0; lane < 4 && 4 * rows->tiles[t] + lane < one->variable_count; ++lane) {
      p->scratch.variables[4 * rows->tiles[t] + lane] = rows->values[4 * (size_t)t + (size_t)lane];
    }
  }
  const double share = share_of(p, one);
  of->weight *= share;
  return share != 1.0;
}

double metric_share_of_dof(const problem *p, const island *one, int variable) {
  const double whole = *cost_entry(one, variable, variable);
  const double mass = whole - p->program.spring[one->variable + variable];
  return mass / (whole + p->program.row_metric[one->variable + variable]);
}

/* MuJoCo's order of shapes, which determines the sign of a contact's normal. */
static int rank_of(int shape) {
  static const int rank[QD_SHAPE_TYPE_COUNT] = {0, 2, 3, 6, 5, 4, 7, 8, 1};
  return rank[shape];
}

/* mu t_1 of MuJoCo's contact, in our tangents. */
static void first_edge(double out[2], const collision *c, const qd_model *model,
                       const qd_contact *contact) {
  const double *n = contact->frame;
  const int turned =
      rank_of(model->geom.type[contact->geom_a]) > rank_of(model->geom.type[contact->geom_b]);
  tangent_axis from;
  double *t = from.axis;
  mujoco_tangent_axis(&from, c, model, contact);
  vec3_axpy(t, -vec3_dot(t, n), n);
  const double scale =
      (turned ? -1.0 : 1.0) * fmax(contact->friction[0], LEAST_FRICTION) / vec3_norm(t);
  out[0] = scale * vec3_dot(t, n + 3);
  out[1] = scale * vec3_dot(t, n + 6);
}

double metric_share_of_contact(problem *p, const island *one, const qd_contact *contact) {
  double edge[2] = {0.0, 0.0};
  if (p->model->pair.edges[contact->pair] > 0 && contact->dim > 1) {
    first_edge(edge, p->collision, p->model, contact);
  }
  memset(p->scratch.variables, 0, (size_t)one->variable_count * sizeof(double));
  for (int k = 0; k < p->scratch.list.count; ++k) {
    const double *motion = p->scratch.motion + 4 * MOTION_MAX * k;
    for (int lane = 0; lane < 4; ++lane) {
      const int i = 4 * p->scratch.list.tiles[k] + lane;
      if (i < one->variable_count) {
        const double across =
            contact->dim > 1 ? edge[0] * motion[4 + lane] + edge[1] * motion[8 + lane] : 0.0;
        p->scratch.variables[i] = motion[lane] + across;
      }
    }
  }
  return share_of(p, one);
}
