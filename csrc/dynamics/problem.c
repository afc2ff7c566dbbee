#include "dynamics/problem.h"

#include <math.h>

#include "mechanics/applied.h"

/* A component of the relative motion below this cannot move: exact zeros up to rounding. */
#define MOTION_ZERO 1e-12

void problem_lay_out(problem *p, const qd_model *model, int contact_capacity, arena *a) {
  const size_t nv = (size_t)model->nv;
  const size_t nc = (size_t)model->constraint_count;
  const size_t equalities = (size_t)model->constraint_row_count;
  islands_lay_out(&p->islands, model, contact_capacity, a);
  p->variable_of_dof = arena_ints(a, nv);
  p->dof_of_variable = arena_ints(a, nv);
  p->epsilon = arena_doubles(a, nv);
  p->mass_row = arena_doubles(a, nv);
  p->gravity = arena_doubles(a, nv);
  p->applied = arena_doubles(a, nv);
  p->b = arena_doubles(a, nv);
  p->x = arena_doubles(a, nv);
  p->c = arena_doubles(a, equalities);
  p->dual_eq = arena_doubles(a, equalities);
  p->constraint = arena_take(a, nc * sizeof(constraint_state));
  p->equality = arena_take(a, equalities * sizeof(equality_row));
  p->constraint_force = arena_doubles(a, nc * QD_CONSTRAINT_FORCE);
  p->block = arena_take(a, (size_t)contact_capacity * sizeof(contact_block));
  p->limit = arena_take(a, 2 * nv * sizeof(limit_row));
  p->motion = arena_doubles(a, nv * MOTION_MAX);
}

void problem_lay_out_program(problem *p, arena *a) {
  size_t rows = 0, cones = 0;
  for (int i = 0; i < p->islands.count; ++i) {
    island *one = p->islands.island + i;
    const size_t n = (size_t)one->variable_count;
    rows += (size_t)one->row_bound;
    cones += (size_t)one->contact_count + 1; /* one for the limits */
    one->Q = arena_doubles(a, n * n);
    one->G = arena_doubles(a, (size_t)one->row_bound * n);
    one->C = arena_doubles(a, (size_t)one->equality_bound * n);
  }
  p->g = arena_doubles(a, rows);
  p->slack = arena_doubles(a, rows);
  p->dual = arena_doubles(a, rows);
  p->friction_row = arena_take(a, rows * sizeof(friction_row));
  p->cone_kind = arena_ints(a, cones);
  p->cone_dim = arena_ints(a, cones);
  p->target_mu = arena_doubles(a, cones);
}

void problem_number_variables(problem *p, const qd_model *model, const uint8_t *held) {
  islands *s = &p->islands;
  for (int i = 0; i < s->count; ++i) {
    s->island[i].variable_count = 0; /* counted again */
  }
  p->n = 0;
  for (int dof = 0; dof < model->nv; ++dof) {
    if (held != NULL && held[dof]) {
      p->variable_of_dof[dof] = -1;
    } else {
      island *one = s->island + s->parent[model->dof_tree[dof]];
      const int variable = one->variable + one->variable_count++;
      p->variable_of_dof[dof] = variable;
      p->dof_of_variable[variable] = dof;
      ++p->n;
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

/* Column of a DOF in the matrices of its island. */
static int column_of(const problem *p, const island *one, int dof) {
  return p->variable_of_dof[dof] - one->variable;
}

static void fill_mass_block(problem *p, const qd_model *model, const kinematics *k,
                            const inertia *I, const island *one, double h) {
  const int n = one->variable_count;
  memset(one->Q, 0, (size_t)n * (size_t)n * sizeof(double));
  for (int i = 0; i < n; ++i) {
    const int di = p->dof_of_variable[one->variable + i];
    if (model->dof_actuator[di] >= 0) {
      continue;
    }
    int count;
    const int *chain = body_chain(model, model->dof_body[di], &count);
    const double factor = p->epsilon[di] / (h * h);
    count = inertia_mass_row(p->mass_row, model, k, I, di);
    for (int c = 0; c < count; ++c) {
      const int j = column_of(p, one, chain[c]);
      if (p->variable_of_dof[chain[c]] >= 0 && model->dof_actuator[chain[c]] < 0) {
        one->Q[i * n + j] = one->Q[j * n + i] = factor * p->mass_row[c];
      }
    }
  }
}

static void add_springs(problem *p, const qd_model *model, const island *one, const double *q,
                        const double *u) {
  const model_parameters *par = &model->parameters;
  const int n = one->variable_count;
  double *b = p->b + one->variable;
  for (int i = 0; i < n; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    const int actuator = model->dof_actuator[dof], joint = model->dof_joint[dof];
    double *diagonal = one->Q + i * n + i;
    if (actuator >= 0) {
      const double stiffness = par->actuator_stiffness[actuator];
      const double command = u[actuator] / model->actuator_gear[actuator];
      *diagonal += stiffness;
      b[i] -= stiffness * (command - q[model->dof_q[dof]]);
    }
    if (par->joint_stiffness[joint] > 0.0) {
      *diagonal += par->joint_stiffness[joint];
      b[i] += par->joint_stiffness[joint] * (q[model->dof_q[dof]] - par->joint_springref[joint]);
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
  inertia_gravity_force(p->gravity, model, k, I);
  fill_applied(p, model, k, I, input);
  fill_epsilon(p, model, o);
  for (int i = 0; i < p->n; ++i) {
    const int dof = p->dof_of_variable[i];
    const int falls = model->dof_actuator[dof] < 0 || o->gravity_on_actuated;
    p->b[i] = -(falls ? p->gravity[dof] : 0.0) - p->applied[dof];
  }
  for (int i = 0; i < p->islands.count; ++i) {
    fill_mass_block(p, model, k, I, p->islands.island + i, o->h);
    add_springs(p, model, p->islands.island + i, input->q, input->u);
  }
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
static void write_columns(const problem *p, const island *one, const contact_block *block,
                          const int *dofs, int count) {
  const int n = one->variable_count;
  double *rows = one->G + (size_t)(block->row - one->row) * (size_t)n;
  for (int i = 0; i < count; ++i) {
    const double *motion = p->motion + MOTION_MAX * dofs[i];
    if (p->variable_of_dof[dofs[i]] < 0) {
      continue;
    }
    const int column = column_of(p, one, dofs[i]);
    for (int r = 0; r < block->rows.count; ++r) {
      rows[r * n + column] = friction_row_of(block->rows.row + r, motion);
    }
  }
}

static void add_cone(problem *p, island *one, int kind, int dim, double target) {
  ++one->cone_count;
  p->cone_kind[p->cone_count] = kind;
  p->cone_dim[p->cone_count] = dim;
  p->target_mu[p->cone_count++] = target;
}

static double barrier_target(const qd_step_options *o, int log_count) {
  return isinf(o->kappa) ? 0.0 : log_count / o->kappa;
}

static void assemble_contact(problem *p, const qd_model *model, const qd_step_options *o,
                             const kinematics *k, const qd_contact *contact, island *one,
                             contact_block *block) {
  contact_dofs dofs;
  int present[MOTION_MAX] = {0};
  contact_dofs_find(&dofs, model, contact);
  contact_motion_rows(p, k, contact, dofs.a, dofs.a_count, -1.0, present);
  contact_motion_rows(p, k, contact, dofs.b, dofs.b_count, 1.0, present);
  if (!present[0]) {
    return;
  }
  block->row = p->row_count;
  block->rows.row = p->friction_row + p->friction_row_count;
  friction_rows_fill(&block->rows, contact->friction, contact->dim, present, o->friction_model,
                     o->ray_count, p->rays);
  const int rows = block->rows.count;
  memset(one->G + (size_t)one->row_count * (size_t)one->variable_count, 0,
         (size_t)rows * (size_t)one->variable_count * sizeof(double));
  write_columns(p, one, block, dofs.a, dofs.a_count);
  write_columns(p, one, block, dofs.b, dofs.b_count);
  for (int r = 0; r < rows; ++r) {
    p->g[block->row + r] = block->rows.row[r].normal * contact->dist;
  }
  add_cone(p, one, block->rows.kind, rows, barrier_target(o, block->rows.log_count));
  p->friction_row_count += rows;
  p->row_count += rows;
  one->row_count += rows;
}

/* ---------------------------------------------------------------- joint limits */

static void add_limit(problem *p, island *one, int dof, double sign, double gap) {
  double *row = one->G + (size_t)one->row_count++ * (size_t)one->variable_count;
  memset(row, 0, (size_t)one->variable_count * sizeof(double));
  row[column_of(p, one, dof)] = sign;
  p->g[p->row_count] = gap;
  p->limit[p->limit_count].dof = dof;
  p->limit[p->limit_count].row = p->row_count++;
  p->limit[p->limit_count++].sign = sign;
  ++one->limit_count;
}

static void assemble_limits(problem *p, const qd_model *model, const qd_step_options *o,
                            const double *q, island *one) {
  one->limit = p->limit_count;
  for (int i = 0; o->joint_limits && i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i], joint = model->dof_joint[dof];
    const double *range = model->joint_range + 2 * joint;
    if (model->dof_q[dof] < 0) {
      continue;
    }
    const double position = q[model->dof_q[dof]];
    if (isfinite(range[0])) {
      add_limit(p, one, dof, 1.0, position - range[0]);
    }
    if (isfinite(range[1])) {
      add_limit(p, one, dof, -1.0, range[1] - position);
    }
  }
  if (one->limit_count > 0) {
    add_cone(p, one, QD_ORTHANT, one->limit_count, barrier_target(o, 1));
  }
}

/* ---------------------------------------------------------------- bilateral constraints */

/* Columns of a constraint's rows, for the DOFs given that are free. */
static void write_constraint_columns(const problem *p, const island *one, double *rows,
                                     const constraint_state *s, const qd_model *model,
                                     const kinematics *k, const int *dofs, int count) {
  for (int i = 0; i < count; ++i) {
    double column[CONSTRAINT_ROWS_MAX];
    if (dofs[i] < 0 || p->variable_of_dof[dofs[i]] < 0) {
      continue;
    }
    constraint_column(column, s, model, k, dofs[i]);
    for (int r = 0; r < s->rows; ++r) {
      rows[r * one->variable_count + column_of(p, one, dofs[i])] = column[r];
    }
  }
}

/* Keeps those of the rows behind the last one that anything free moves. */
static void keep_equalities(problem *p, island *one, const constraint_state *s, int constraint) {
  const size_t n = (size_t)one->variable_count;
  const double *rows = one->C + (size_t)one->equality_count * n;
  for (int component = 0; component < s->rows; ++component) {
    const double *row = rows + (size_t)component * n;
    double largest = 0.0;
    for (size_t i = 0; i < n; ++i) {
      largest = fmax(largest, fabs(row[i]));
    }
    if (largest > MOTION_ZERO) {
      memmove(one->C + (size_t)one->equality_count++ * n, row, n * sizeof(double));
      p->c[p->equality_count] = s->violation[component];
      p->equality[p->equality_count].constraint = constraint;
      p->equality[p->equality_count++].component = component;
    }
  }
}

static void assemble_constraint(problem *p, const qd_model *model, const kinematics *k, island *one,
                                int index) {
  const constraint_state *s = p->constraint + index;
  double *rows = one->C + (size_t)(one->equality_count * one->variable_count);
  memset(rows, 0, (size_t)s->rows * (size_t)one->variable_count * sizeof(double));
  if (s->rows == 1) {
    write_constraint_columns(p, one, rows, s, model, k, s->dof, 2);
  } else {
    for (int side = 0; side < 2; ++side) {
      int count;
      const int *chain = body_chain(model, s->body[side], &count);
      write_constraint_columns(p, one, rows, s, model, k, chain, count);
    }
  }
  keep_equalities(p, one, s, index);
}

/* ---------------------------------------------------------------- all of it */

static void assemble_rows(problem *p, const qd_model *model, const qd_step_options *options,
                          const kinematics *k, const collision *c, const double *q, island *one) {
  one->row = p->row_count;
  one->cone = p->cone_count;
  one->equality = p->equality_count;
  one->row_count = one->cone_count = one->limit_count = one->equality_count = 0;
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const int index = p->islands.contact_order[i];
    assemble_contact(p, model, options, k, c->contact + index, one, p->block + index);
  }
  assemble_limits(p, model, options, q, one);
  for (int i = one->constraint; i < one->constraint + one->constraint_count; ++i) {
    assemble_constraint(p, model, k, one, p->islands.constraint_order[i]);
  }
}

void problem_assemble(problem *p, const qd_model *model, const qd_step_options *options,
                      const kinematics *k, inertia *I, const collision *c,
                      const qd_step_input *input) {
  assemble_cost(p, model, options, k, I, input);
  p->row_count = p->cone_count = p->limit_count = p->equality_count = 0;
  p->friction_row_count = 0;
  friction_rays(p->rays, options->ray_count);
  for (int i = 0; i < c->count; ++i) {
    p->block[i].row = p->block[i].rows.count = 0;
  }
  for (int i = 0; i < model->constraint_count; ++i) {
    constraint_compute(p->constraint + i, model, k, input->q, i);
  }
  for (int i = 0; i < p->islands.count; ++i) {
    assemble_rows(p, model, options, k, c, input->q, p->islands.island + i);
  }
}

qd_cone_program problem_program(const problem *p, const island *one) {
  qd_cone_program program = {0};
  program.variable_count = one->variable_count;
  program.row_count = one->row_count;
  program.cone_count = one->cone_count;
  program.Q = one->Q;
  program.b = p->b + one->variable;
  program.G = one->G;
  program.g = p->g + one->row;
  program.cone_kind = p->cone_kind + one->cone;
  program.cone_dim = p->cone_dim + one->cone;
  program.target_mu = p->target_mu + one->cone;
  program.equality_count = one->equality_count;
  program.C = one->C;
  program.c = p->c + one->equality;
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
    limit_force[p->limit[i].dof] += p->limit[i].sign * p->dual[p->limit[i].row];
  }
}
