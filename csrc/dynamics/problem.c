#include "dynamics/problem.h"

#include <math.h>

#include "mechanics/applied.h"

/* A component of the relative motion below this cannot move: exact zeros up to rounding. */
#define MOTION_ZERO 1e-12

void problem_lay_out(problem *p, const qd_model *model, int contact_capacity, int row_capacity,
                     arena *a) {
  const size_t nv = (size_t)model->nv, rows = (size_t)row_capacity;
  const size_t cones = (size_t)contact_capacity + 2 * nv;
  p->row_capacity = row_capacity;
  p->variable_of_dof = arena_ints(a, nv);
  p->dof_of_variable = arena_ints(a, nv);
  p->epsilon = arena_doubles(a, nv);
  p->mass = arena_doubles(a, nv * nv);
  p->gravity = arena_doubles(a, nv);
  p->applied = arena_doubles(a, nv);
  p->Q = arena_doubles(a, nv * nv);
  p->b = arena_doubles(a, nv);
  p->G = arena_doubles(a, rows * nv);
  p->g = arena_doubles(a, rows);
  p->cone_kind = arena_ints(a, cones);
  p->cone_dim = arena_ints(a, cones);
  p->target_mu = arena_doubles(a, cones);
  const size_t nc = (size_t)model->constraint_count;
  const size_t equalities = (size_t)model->constraint_row_count;
  p->C = arena_doubles(a, equalities * nv);
  p->c = arena_doubles(a, equalities);
  p->dual_eq = arena_doubles(a, equalities);
  p->constraint = arena_take(a, nc * sizeof(constraint_state));
  p->equality = arena_take(a, equalities * sizeof(equality_row));
  p->constraint_force = arena_doubles(a, nc * QD_CONSTRAINT_FORCE);
  p->x = arena_doubles(a, nv);
  p->slack = arena_doubles(a, rows);
  p->dual = arena_doubles(a, rows);
  p->block = arena_take(a, (size_t)contact_capacity * sizeof(contact_block));
  p->limit = arena_take(a, 2 * nv * sizeof(limit_row));
  p->motion = arena_doubles(a, nv * MOTION_MAX);
}

static void number_variables(problem *p, const qd_model *model, const uint8_t *held) {
  p->n = 0;
  for (int dof = 0; dof < model->nv; ++dof) {
    if (held != NULL && held[dof]) {
      p->variable_of_dof[dof] = -1;
    } else {
      p->variable_of_dof[dof] = p->n;
      p->dof_of_variable[p->n++] = dof;
    }
  }
}

/* ---------------------------------------------------------------- cost */

/* epsilon, or k_min h^2 / (largest mass diagonal of the tree) / mass_ratio (systems 1.6) */
static void fill_epsilon(problem *p, const qd_model *model, const qd_step_options *o) {
  for (int dof = 0; dof < model->nv; ++dof) {
    const double largest = model->tree_inertia[model->dof_tree[dof]];
    const int by_ratio = o->mass_ratio > 0.0 && largest > 0.0;
    p->epsilon[dof] =
        by_ratio ? model->smallest_stiffness * o->h * o->h / largest / o->mass_ratio : o->epsilon;
  }
}

static void fill_mass_block(problem *p, const qd_model *model, double h) {
  const int nv = model->nv;
  for (int i = 0; i < p->n; ++i) {
    const int di = p->dof_of_variable[i];
    double *row = p->Q + i * p->n;
    memset(row, 0, (size_t)p->n * sizeof(double));
    if (model->dof_actuator[di] >= 0) {
      continue;
    }
    const double factor = p->epsilon[di] / (h * h);
    for (int j = 0; j < p->n; ++j) {
      const int dj = p->dof_of_variable[j];
      row[j] = model->dof_actuator[dj] < 0 ? factor * p->mass[di * nv + dj] : 0.0;
    }
  }
}

static void add_springs(problem *p, const qd_model *model, const double *q, const double *u) {
  const model_parameters *par = &model->parameters;
  for (int i = 0; i < p->n; ++i) {
    const int dof = p->dof_of_variable[i];
    const int actuator = model->dof_actuator[dof], joint = model->dof_joint[dof];
    if (actuator >= 0) {
      const double stiffness = par->actuator_stiffness[actuator];
      const double command = u[actuator] / model->actuator_gear[actuator];
      p->Q[i * p->n + i] += stiffness;
      p->b[i] -= stiffness * (command - q[model->dof_q[dof]]);
    }
    if (par->joint_stiffness[joint] > 0.0) {
      p->Q[i * p->n + i] += par->joint_stiffness[joint];
      p->b[i] += par->joint_stiffness[joint] * (q[model->dof_q[dof]] - par->joint_springref[joint]);
    }
  }
}

static void fill_applied(problem *p, const qd_model *model, const kinematics *k, inertia *I,
                         const qd_step_input *input) {
  if (input->tau != NULL) {
    memcpy(p->applied, input->tau, (size_t)model->nv * sizeof(double));
  } else {
    memset(p->applied, 0, (size_t)model->nv * sizeof(double));
  }
  if (input->wrench != NULL) {
    applied_add_force(p->applied, I->momentum, model, k, input->wrench);
  }
}

static void assemble_cost(problem *p, const qd_model *model, const qd_step_options *o,
                          const kinematics *k, inertia *I, const qd_step_input *input) {
  inertia_compute(model, k, I);
  inertia_mass_matrix(p->mass, model, k, I);
  inertia_gravity_force(p->gravity, model, k, I);
  fill_applied(p, model, k, I, input);
  fill_epsilon(p, model, o);
  fill_mass_block(p, model, o->h);
  for (int i = 0; i < p->n; ++i) {
    const int dof = p->dof_of_variable[i];
    const int falls = model->dof_actuator[dof] < 0 || o->gravity_on_actuated;
    p->b[i] = -(falls ? p->gravity[dof] : 0.0) - p->applied[dof];
  }
  add_springs(p, model, input->q, input->u);
}

/* ---------------------------------------------------------------- contacts */

void contact_dofs_find(contact_dofs *d, const qd_model *model, const qd_contact *contact) {
  d->a = body_chain(model, contact->body_a, &d->a_count);
  d->b = body_chain(model, contact->body_b, &d->b_count);
  while (d->a_count > 0 && d->b_count > 0 && *d->a == *d->b) {
    ++d->a;
    ++d->b;
    --d->a_count;
    --d->b_count;
  }
}

/* motion = relative motion at the contact per unit rate of one DOF: its first `dim` components */
static void dof_motion(double motion[MOTION_MAX], const qd_contact *contact, const screw *s,
                       double sign) {
  double velocity[3];
  screw_point_velocity(velocity, s, contact->pos);
  for (int axis = 0; axis < 3; ++axis) {
    motion[axis] = sign * vec3_dot(contact->frame + 3 * axis, velocity);
  }
  for (int axis = 0; axis < 3 && contact->dim > 3; ++axis) {
    motion[3 + axis] = sign * vec3_dot(contact->frame + 3 * axis, s->w);
  }
}

/* Fills p->motion for the DOFs given, and says which components of the motion are present. */
static void contact_motion_rows(problem *p, const kinematics *k, const qd_contact *contact,
                                const int *dofs, int count, double sign, int present[MOTION_MAX]) {
  for (int i = 0; i < count; ++i) {
    const int dof = dofs[i];
    double *motion = p->motion + MOTION_MAX * dof;
    if (p->variable_of_dof[dof] < 0) {
      continue;
    }
    dof_motion(motion, contact, k->dof_screw + dof, sign);
    for (int c = 0; c < contact->dim; ++c) {
      present[c] |= fabs(motion[c]) > MOTION_ZERO;
    }
  }
}

/* Columns of G for the DOFs given: map times motion. */
static void write_columns(problem *p, const contact_block *block, const int *dofs, int count) {
  for (int i = 0; i < count; ++i) {
    const int column = p->variable_of_dof[dofs[i]];
    const double *motion = p->motion + MOTION_MAX * dofs[i];
    if (column < 0) {
      continue;
    }
    for (int r = 0; r < block->rows.count; ++r) {
      p->G[(block->row + r) * p->n + column] = friction_row_of(block->rows.row + r, motion);
    }
  }
}

static void add_cone(problem *p, int kind, int dim, double target) {
  p->cone_kind[p->cone_count] = kind;
  p->cone_dim[p->cone_count] = dim;
  p->target_mu[p->cone_count++] = target;
}

static double barrier_target(const qd_step_options *o, int log_count) {
  return isinf(o->kappa) ? 0.0 : log_count / o->kappa;
}

static void assemble_contact(problem *p, const qd_model *model, const qd_step_options *o,
                             const kinematics *k, const qd_contact *contact, contact_block *block) {
  contact_dofs dofs;
  int present[MOTION_MAX] = {0};
  contact_dofs_find(&dofs, model, contact);
  contact_motion_rows(p, k, contact, dofs.a, dofs.a_count, -1.0, present);
  contact_motion_rows(p, k, contact, dofs.b, dofs.b_count, 1.0, present);
  block->row = p->row_count;
  block->rows.count = 0;
  if (!present[0]) {
    return;
  }
  friction_rows_fill(&block->rows, contact->friction, contact->dim, present, o->friction_model,
                     o->ray_count, p->rays);
  if (p->row_count + block->rows.count > p->row_capacity) {
    p->row_count += block->rows.count;
    return;
  }
  memset(p->G + p->row_count * p->n, 0, (size_t)(block->rows.count * p->n) * sizeof(double));
  write_columns(p, block, dofs.a, dofs.a_count);
  write_columns(p, block, dofs.b, dofs.b_count);
  for (int r = 0; r < block->rows.count; ++r) {
    p->g[block->row + r] = block->rows.row[r].normal * contact->dist;
  }
  add_cone(p, block->rows.kind, block->rows.count, barrier_target(o, block->rows.log_count));
  p->row_count += block->rows.count;
}

/* ---------------------------------------------------------------- joint limits */

static void add_limit(problem *p, int dof, double sign, double gap) {
  if (p->row_count < p->row_capacity) {
    double *row = p->G + p->row_count * p->n;
    memset(row, 0, (size_t)p->n * sizeof(double));
    row[p->variable_of_dof[dof]] = sign;
    p->g[p->row_count] = gap;
    p->limit[p->limit_count].dof = dof;
    p->limit[p->limit_count++].sign = sign;
  }
  ++p->row_count;
}

static void assemble_limits(problem *p, const qd_model *model, const qd_step_options *o,
                            const double *q) {
  p->limit_count = 0;
  p->limit_first_row = p->row_count;
  for (int i = 0; o->joint_limits && i < p->n; ++i) {
    const int dof = p->dof_of_variable[i], joint = model->dof_joint[dof];
    const double *range = model->joint_range + 2 * joint;
    if (model->dof_q[dof] < 0) {
      continue;
    }
    const double position = q[model->dof_q[dof]];
    if (isfinite(range[0])) {
      add_limit(p, dof, 1.0, position - range[0]);
    }
    if (isfinite(range[1])) {
      add_limit(p, dof, -1.0, range[1] - position);
    }
  }
  if (p->limit_count > 0) {
    add_cone(p, QD_ORTHANT, p->limit_count, barrier_target(o, 1));
  }
}

/* ---------------------------------------------------------------- bilateral constraints */

static void add_equality(problem *p, const constraint_state *s, int constraint, int component) {
  const double *row = p->C + p->equality_count * p->n;
  double largest = 0.0;
  for (int i = 0; i < p->n; ++i) {
    largest = fmax(largest, fabs(row[i]));
  }
  if (largest > MOTION_ZERO) {
    p->c[p->equality_count] = s->violation[component];
    p->equality[p->equality_count].constraint = constraint;
    p->equality[p->equality_count++].component = component;
  }
}

static void assemble_constraints(problem *p, const qd_model *model, const kinematics *k,
                                 const double *q) {
  p->equality_count = 0;
  for (int index = 0; index < model->constraint_count; ++index) {
    constraint_state *s = p->constraint + index;
    constraint_compute(s, model, k, q, index);
    for (int component = 0; component < s->rows; ++component) {
      for (int i = 0; i < p->n; ++i) {
        double column[CONSTRAINT_ROWS_MAX];
        constraint_column(column, s, model, k, p->dof_of_variable[i]);
        p->C[p->equality_count * p->n + i] = column[component];
      }
      add_equality(p, s, index, component);
    }
  }
}

qd_status problem_assemble(problem *p, const qd_model *model, const qd_step_options *options,
                           const kinematics *k, inertia *I, const collision *c,
                           const qd_step_input *input, int *contacts_needed) {
  number_variables(p, model, options->held);
  assemble_cost(p, model, options, k, I, input);
  p->row_count = 0;
  p->cone_count = 0;
  friction_rays(p->rays, options->ray_count);
  for (int i = 0; i < c->count; ++i) {
    assemble_contact(p, model, options, k, c->contact + i, p->block + i);
  }
  assemble_limits(p, model, options, input->q);
  assemble_constraints(p, model, k, input->q);
  *contacts_needed = c->count;
  if (p->row_count > p->row_capacity) {
    /* capacity grows with the contacts: as many as the rows ask for, in proportion */
    *contacts_needed = c->capacity * (p->row_count / p->row_capacity + 1);
    return QD_OUT_OF_CAPACITY;
  }
  return QD_OK;
}

qd_cone_program problem_program(const problem *p) {
  qd_cone_program program = {0};
  program.variable_count = p->n;
  program.row_count = p->row_count;
  program.cone_count = p->cone_count;
  program.Q = p->Q;
  program.b = p->b;
  program.G = p->G;
  program.g = p->g;
  program.cone_kind = p->cone_kind;
  program.cone_dim = p->cone_dim;
  program.target_mu = p->target_mu;
  program.equality_count = p->equality_count;
  program.C = p->C;
  program.c = p->c;
  return program;
}

void problem_forces(const problem *p, const qd_model *model, collision *c, double *limit_force) {
  for (int i = 0; i < c->count; ++i) {
    const contact_block *block = p->block + i;
    double *force = c->contact[i].force;
    memset(force, 0, MOTION_MAX * sizeof(double));
    for (int r = 0; r < block->rows.count; ++r) {
      friction_row_add_force(force, block->rows.row + r, p->dual[block->row + r]);
    }
  }
  memset(p->constraint_force, 0,
         (size_t)(model->constraint_count * QD_CONSTRAINT_FORCE) * sizeof(double));
  for (int i = 0; i < p->equality_count; ++i) {
    const equality_row *row = p->equality + i;
    p->constraint_force[row->constraint * QD_CONSTRAINT_FORCE + row->component] = p->dual_eq[i];
  }
  memset(limit_force, 0, (size_t)model->nv * sizeof(double));
  for (int i = 0; i < p->limit_count; ++i) {
    limit_force[p->limit[i].dof] += p->limit[i].sign * p->dual[p->limit_first_row + i];
  }
}
