/* The cost of a step: masses over h^2, springs, gravity and applied forces; in the second-order
 * step also the terms of velocities and dampers (formulation 7). */
#include <limits.h>
#include <math.h>

#include "base/lanes.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"
#include "mechanics/actuator.h"
#include "mechanics/applied.h"
#include "mechanics/coasting.h"

/* N or Nm: smaller forces count as zero. Above 1e-30 forces of some model would be lost, below
 * 1e-260 the solver's units vanish. */
#define NOTHING 1e-200

/* epsilon, or k_min h^2 / (largest mass diagonal of the tree) / mass_ratio (formulation 2) */
static void fill_epsilon(problem *p) {
  for (int dof = 0; dof < p->model->nv; ++dof) {
    const double largest = p->model->tree.inertia[p->model->dof.tree[dof]];
    const int by_ratio = p->options->mass_ratio > 0.0 && largest > 0.0;
    if (p->options->dynamic) {
      p->loads.epsilon[dof] = 1.0;
      continue;
    }
    p->loads.epsilon[dof] = by_ratio ? p->model->smallest_stiffness * p->options->h *
                                           p->options->h / largest / p->options->mass_ratio
                                     : p->options->epsilon;
  }
}

/* The columns that mass couples: in each tree, from the first unactuated one to the last. */
static void find_tree_columns(problem *p) {
  for (int tree = 0; tree < p->model->tree.count; ++tree) {
    p->loads.tree_first[tree] = INT_MAX;
    p->loads.tree_last[tree] = -1;
  }
  for (int index = 0; index < p->islands.count; ++index) {
    const island *one = p->islands.island + index;
    const int *dofs = p->dof_of_variable + one->variable;
    for (int column = 0; column < one->variable_count; ++column) {
      const int dof = dofs[column];
      if (dof >= 0 && dof_has_mass(p->model, p->options, dof)) {
        const int tree = p->model->dof.tree[dof];
        p->loads.tree_first[tree] =
            column < p->loads.tree_first[tree] ? column : p->loads.tree_first[tree];
        p->loads.tree_last[tree] = column;
      }
    }
  }
}

/* Zero rows of Q with the tiles of all coupled columns. */
static void open_cost_rows(problem *p, island *one) {
  tile_rows_clear(&one->Q);
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    const int alone = dof < 0 || !dof_has_mass(p->model, p->options, dof);
    const int tree = alone ? -1 : p->model->dof.tree[dof];
    const int whole = one->soft_pairs > 0;
    const int first = whole ? 0 : (alone ? i : p->loads.tree_first[tree]) / 4;
    const int last = (whole ? one->variable_count - 1 : alone ? i : p->loads.tree_last[tree]) / 4;
    p->scratch.list.count = last - first + 1;
    for (int k = 0; k < p->scratch.list.count; ++k) {
      p->scratch.list.tiles[k] = first + k;
    }
    tile_rows_append(&one->Q, &p->scratch.list);
  }
}

LANES_INLINE void fill_mass_row(problem *p, const inertia *I, const island *one, int i) {
  const qd_model *model = p->model;
  const int di = p->dof_of_variable[one->variable + i];
  if (!dof_has_mass(model, p->options, di)) {
    return;
  }
  const int_list chain = body_chain(model, model->dof.body[di]);
  const double factor = p->loads.epsilon[di] / (p->options->h * p->options->h);
  const int count = inertia_mass_row(p->scratch.variables, model, p->kinematics, I, di);
  for (int c = 0; c < count; ++c) {
    const int j = column_of(p, one, chain.at[c]);
    if (p->variable_of_dof[chain.at[c]] >= 0 && dof_has_mass(model, p->options, chain.at[c])) {
      *cost_entry(one, i, j) = *cost_entry(one, j, i) = factor * p->scratch.variables[c];
    }
  }
}

/* Actuators, springs and dampers of a joint that have no rows. */
LANES_INLINE void add_springs(problem *p, const island *one, int i, double rate, int clamps,
                              int early) {
  const qd_model *model = p->model;
  const model_parameters *par = &model->parameters;
  const double *q = p->input->q;
  const int dof = p->dof_of_variable[one->variable + i], joint = model->dof.joint[dof];
  double *b = p->program.b + one->variable + i, *diagonal = cost_entry(one, i, i);
  const int_list actuators = dof_actuators(model, dof);
  for (int k = 0; k < actuators.count; ++k) {
    const actuator_force force = problem_actuator_force(p, actuators.at[k]);
    if (actuator_has_row(p, actuators.at[k], &force)) {
      continue;
    }
    *diagonal += force.stiffness;
    const int is_number = clamps && !(force.stiffness > 0.0);
    *b -= is_number ? actuator_clamp(model, actuators.at[k], force.at_rest) : force.at_rest;
  }
  if (par->joint_stiffness[joint] > 0.0) {
    *diagonal += early ? 0.0 : par->joint_stiffness[joint];
    *b += par->joint_stiffness[joint] * joint_stretch(model, dof, q);
  }
  *diagonal += early ? 0.0 : rate * par->joint_damping[joint];
  *b += early ? par->joint_damping[joint] * p->state.v[dof] : 0.0;
}

/* The force of the present velocity, M coasting / h - c; rotors are on the diagonal. */
LANES_INLINE void add_velocity(problem *p, const island *one, int i, double h) {
  const int dof = p->dof_of_variable[one->variable + i], joint = p->model->dof.joint[dof];
  const double rotor = p->model->parameters.joint_armature[joint] / h;
  *cost_entry(one, i, i) += rotor / h;
  p->program.b[one->variable + i] += p->state.inertial[dof] - rotor * p->state.coasting[dof];
}

/* A padding column has the curvature of the previous column, and no force. */
static void fill_padding(problem *p, const island *one, int i) {
  *cost_entry(one, i, i) = *cost_entry(one, i - 1, i - 1);
  p->program.b[one->variable + i] = 0.0;
}

LANES_INLINE double force_at_rest(const problem *p, int dof) {
  const int falls = !p->model->dof.is_driven[dof] || p->options->gravity_on_actuated;
  return (falls ? p->loads.gravity[dof] : 0.0) + p->loads.applied[dof];
}

/* The cost of an island; `padded` is a constant, so that islands without padding skip its test. */
LANES_INLINE void fill_cost(problem *p, const inertia *I, const island *one, int padded) {
  const double rate = damping_rate(p->options);
  const int clamps = p->options->force_limits && p->model->bounded_forces > 0,
            moves = p->options->dynamic;
  const int early = springs_act_early(p->model, p->options);
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    if (padded && dof < 0) {
      fill_padding(p, one, i);
      continue;
    }
    p->program.b[one->variable + i] = -force_at_rest(p, dof);
    fill_mass_row(p, I, one, i);
    const double mass = *cost_entry(one, i, i);
    add_springs(p, one, i, rate, clamps, early);
    if (moves) {
      p->program.spring[one->variable + i] = *cost_entry(one, i, i) - mass;
      add_velocity(p, one, i, p->options->h);
    }
  }
}

/* Coasting trees have no bias force, but another velocity. */
static void fill_coasting(problem *p, const inertia *I, double h) {
  for (int tree = 0; tree < p->model->tree.count; ++tree) {
    if (tree_coasts(p->model, tree)) {
      coasting c;
      coasting_compute(&c, p->state.coasting, p->model, p->kinematics, I, tree, p->state.v, h);
      memset(p->state.stirred + c.dof, 0, (size_t)c.count * sizeof(double));
    }
  }
}

/* The force required if the motion at v comes to rest within h: c - M v / h */
static void fill_inertial(problem *p, inertia *I, const double *v) {
  const qd_model *model = p->model;
  for (int dof = 0; dof < model->nv; ++dof) {
    p->state.v[dof] = p->state.coasting[dof] = p->state.stirred[dof] = v != NULL ? v[dof] : 0.0;
  }
  twist_field_compute(&p->state.velocity, model, p->kinematics, p->state.v);
  if (p->options->gyroscopic == QD_GYROSCOPIC_IMPLICIT) {
    fill_coasting(p, I, p->options->h);
  }
  for (int dof = 0; dof < model->nv; ++dof) {
    p->state.rate[dof] = -p->state.coasting[dof] / p->options->h;
  }
  body_motion_compute(&p->state.motion_in_time, model, p->kinematics, p->state.stirred,
                      p->state.rate);
  if (model->constraint.count > 0 && contacts_yield_in_time(p->options)) {
    body_motion_compute(&p->state.drift, model, p->kinematics, p->state.v, NULL);
  }
  inertial_force(p->state.inertial, I->momentum, model, p->kinematics, I, &p->state.motion_in_time);
}

static void fill_applied(problem *p, inertia *I) {
  if (p->input->tau != NULL) {
    memcpy(p->loads.applied, p->input->tau, (size_t)p->model->nv * sizeof(double));
  } else {
    memset(p->loads.applied, 0, (size_t)p->model->nv * sizeof(double));
  }
  if (p->input->wrench != NULL) {
    applied_add_force(p->loads.applied, I->momentum, p->model, p->kinematics, p->input->wrench);
  }
}

/* Long braking leaves speeds of 1e-290 m/s, whose squares underflow. */
static void drop_nothing(double *b, int count) {
  for (int i = 0; i < count; ++i) {
    if (b[i] != 0.0 && fabs(b[i]) < NOTHING) {
      b[i] = 0.0;
    }
  }
}

void cost_assemble(problem *p, inertia *I) {
  if (!p->loads.are_known) {
    inertia_compute(p->model, p->kinematics, p->options->gravity_on_actuated || p->options->dynamic,
                    I);
    inertia_gravity_force(p->loads.gravity, p->model, p->kinematics, I);
    fill_applied(p, I);
    fill_epsilon(p);
    if (p->options->dynamic) {
      fill_inertial(p, I, p->input->v);
    }
    p->loads.are_known = 1;
  }
  find_tree_columns(p);
  for (int i = 0; i < p->islands.count; ++i) {
    open_cost_rows(p, p->islands.island + i);
    const island *one = p->islands.island + i;
    if (one->in_blocks) {
      fill_cost(p, I, one, 1);
    } else {
      fill_cost(p, I, one, 0);
    }
  }
  drop_nothing(p->program.b, p->n);
}
