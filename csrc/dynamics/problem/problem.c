#include "dynamics/problem/problem.h"

#include <math.h>

#include "dynamics/problem/metric_share.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"

void problem_lay_out(problem *p, const qd_model *model, int contact_capacity, arena *a) {
  const size_t nv = (size_t)model->nv;
  const size_t nc = (size_t)model->constraint.count, n = islands_variable_capacity(model);
  const size_t equalities = (size_t)model->constraint.row_count;
  islands_lay_out(&p->islands, model, contact_capacity, a);
  p->variable_of_dof = arena_ints(a, nv);
  p->dof_of_variable = arena_ints(a, n);
  ARENA_DOUBLES(a, nv, &p->loads.epsilon, &p->loads.gravity, &p->loads.applied, &p->state.v);
  p->scratch.variables = arena_doubles(a, n);
  twist_field_lay_out(&p->state.velocity, model, a);
  ARENA_DOUBLES(a, nv, &p->state.coasting, &p->state.stirred, &p->state.rate, &p->state.inertial);
  body_motion_lay_out(&p->state.motion_in_time, model, a);
  if (model->constraint.count > 0) {
    body_motion_lay_out(&p->state.drift, model, a);
  }
  ARENA_DOUBLES(a, n, &p->program.b, &p->program.spring, &p->program.row_metric, &p->solution.x);
  ARENA_DOUBLES(a, equalities, &p->program.c, &p->program.compliance_eq, &p->solution.dual_eq,
                &p->softened.compliance_eq, &p->softened.give_eq, &p->softened.held_eq);
  p->scratch.saved_equalities = arena_doubles(a, 2 * equalities);
  p->constraint = arena_take(a, nc * sizeof(constraint_state));
  p->equality = arena_take(a, equalities * sizeof(equality_row));
  p->solution.constraint_force = arena_doubles(a, nc * QD_CONSTRAINT_FORCE);
  p->law = arena_take(a, nc * sizeof(constraint_law));
  p->scratch.basis = arena_doubles(a, nc > 0 ? (IMPLIED_ROWS + 3) * (n + 8) : 0);
  p->block = arena_take(a, (size_t)contact_capacity * sizeof(contact_block));
  p->loads.bounce_share = arena_doubles(a, (size_t)model->tree.count);
  p->limit = arena_take(a, 2 * nv * sizeof(limit_row));
  p->ball_limit = arena_take(a, (size_t)model->joint.count * sizeof(ball_limit));
  p->turn_row = arena_take(a, TURN_ROWS_MAX * (size_t)model->joint.count * sizeof(turn_row));
  tendons_lay_out(&p->tendons, model, a);
  const size_t tendon_rows = TENDON_ROWS_MAX * (size_t)model->tendon.count + (size_t)model->nu;
  p->tendon_row = arena_take(a, tendon_rows * sizeof(tendon_row));
  p->solution.tendon_force = arena_doubles(a, (size_t)model->tendon.count);
  p->force_row = arena_take(a, (nv + (size_t)model->nu) * sizeof(force_row));
  p->row_of_actuator = arena_ints(a, (size_t)model->nu);
  p->columns.tile = arena_take(a, nv * sizeof(column_tile));
  p->columns.body_start = arena_ints(a, (size_t)model->body.count + 1);
  p->columns.body_tiles = arena_ints(a, (size_t)model->chain_start[model->body.count]);
  p->columns.body_mask = arena_doubles(a, 4 * (size_t)model->chain_start[model->body.count]);
  p->scratch.sign = arena_doubles(a, 4 * (n / 4 + 1));
  p->scratch.motion = arena_doubles(a, 4 * MOTION_MAX * (n / 4 + 1));
  p->scratch.list.tiles = arena_ints(a, n + 1);
  p->scratch.tile_place = arena_ints(a, n / 4 + 1);
  ARENA_INTS(a, (size_t)model->tree.count, &p->loads.tree_first, &p->loads.tree_last);
}

void problem_lay_out_program(problem *p, arena *a) {
  size_t rows = 0, cones = 0;
  for (int i = 0; i < p->islands.count; ++i) {
    island *one = p->islands.island + i;
    rows += (size_t)one->size.rows;
    /* limits, limited forces, two of rotations, bounds of softened motion, and each row of a tendon
     */
    cones += (size_t)one->contact_cones + 5 + TENDON_ROWS_MAX * (size_t)one->tendon_count;
    cones += (size_t)(one->pressure_elements + one->ball_limit_count);
    cones += one->tendon_count > 0 ? (size_t)one->size.intervals : 0;
    tile_rows_lay_out(&one->Q, (size_t)one->size.variables, one->Q_tiles, a);
    tile_rows_lay_out(&one->G, (size_t)one->size.rows, one->G_tiles, a);
    tile_rows_lay_out(&one->C, (size_t)one->size.equalities, one->C_tiles, a);
    if (p->attempt.coulomb) {
      const fixed_point_sizes sizes = {one->contact_count,
                                       one->size.rows,
                                       one->size.variables,
                                       one->size.equalities,
                                       one->G_tiles,
                                       2 * (one->Q_tiles + one->G_tiles + one->C_tiles) +
                                           (size_t)one->size.variables,
                                       3 * one->size.fill / 2};
      fixed_point_lay_out(&one->fixed_point, &sizes, a);
    }
  }
  ARENA_DOUBLES(a, rows, &p->program.g, &p->program.compliance, &p->program.lower,
                &p->program.upper, &p->program.by_lower, &p->program.by_upper, &p->solution.slack,
                &p->solution.dual, &p->softened.compliance, &p->softened.give, &p->softened.held);
  p->scratch.four_w = arena_doubles(a, 4 * rows);
  p->scratch.saved_rows = arena_doubles(a, 3 * rows);
  p->friction_row = arena_take(a, rows * sizeof(friction_row));
  ARENA_INTS(a, cones, &p->program.cone_kind, &p->program.cone_dim);
  p->program.target_mu = arena_doubles(a, cones);
}

static void number_dof(problem *p, int dof, island *one) {
  if (one == NULL) {
    p->variable_of_dof[dof] = -1;
    return;
  }
  const int variable = one->variable + one->variable_count++;
  p->variable_of_dof[dof] = variable;
  p->dof_of_variable[variable] = dof;
  ++p->n;
}

/* Fills the last tile with padding columns. */
static void pad_tile(problem *p, island *one) {
  while (one->variable_count % 4 > 0) {
    p->dof_of_variable[one->variable + one->variable_count++] = -1;
    ++p->n;
  }
}

void problem_number_variables(problem *p, const qd_model *model, const uint8_t *held) {
  islands *s = &p->islands;
  for (int i = 0; i < s->count; ++i) {
    s->island[i].variable_count = 0; /* counted again */
  }
  p->n = 0;
  for (int at = 0; at < model->tree.count; ++at) {
    const int tree = s->tree_order[at];
    island *one = s->parent[tree] >= 0 ? s->island + s->parent[tree] : NULL;
    if (one != NULL && one->in_blocks && s->tree_opens[at]) {
      pad_tile(p, one);
    }
    for (int k = model->tree.dof_start[tree]; k < model->tree.dof_start[tree + 1]; ++k) {
      const int dof = model->tree.dofs[k], is_held = held != NULL && held[dof];
      number_dof(p, dof, is_held ? NULL : one);
    }
  }
}

/* Makes all rows of the island rigid. */
static void clear_compliance(problem *p, const island *one) {
  const size_t rows = (size_t)(one->size.compliant + one->size.intervals > 0 ? one->size.rows : 0);
  memset(p->program.compliance + one->row, 0, rows * sizeof(double));
  memset(p->program.lower + one->row, 0, rows * sizeof(double));
  memset(p->program.upper + one->row, 0, rows * sizeof(double));
}

static void assemble_rows(problem *p, island *one) {
  one->row = p->count.rows;
  one->cone = p->count.cones;
  one->equality = p->count.equalities;
  one->row_count = one->cone_count = one->limit_count = one->equality_count = 0;
  one->tendon_row_count = one->force_row_count = one->compliant = one->intervals = 0;
  one->softened = one->gave = one->bound_count = 0;
  tile_rows_clear(&one->G);
  clear_compliance(p, one);
  one->length = INFINITY;
  one->load = 0.0;
  tile_rows_clear(&one->C);
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const int index = p->islands.contact_order[i];
    contact_rows_assemble(p, one, index);
  }
  if (one->soft_pairs > 0) {
    pressure_rows_assemble(p, one);
  }
  one->length = isinf(one->length) ? p->model->smallest_size : one->length;
  limit_rows_assemble(p, one);
  ball_limit_rows_assemble(p, one);
  turn_rows_assemble(p, one);
  tendon_rows_assemble(p, one);
  force_rows_assemble(p, one);
  for (int i = one->constraint; i < one->constraint + one->constraint_count; ++i) {
    constraint_rows_assemble(p, one, p->islands.constraint_order[i]);
  }
  redundant_rows_leave(p, one);
  for (int i = 0; one->size.compliant > 0 && i < one->equality_count; ++i) {
    const equality_row *row = p->equality + one->equality + i;
    const double R =
        constraint_row_compliance(p->model, p->options, row->constraint, row->component);
    p->program.compliance_eq[one->equality + i] = R;
    if (contacts_yield_in_time(p->options)) {
      equality_yield(p, one, i);
    }
    one->compliant += p->program.compliance_eq[one->equality + i] > 0.0;
  }
  if (p->attempt.recovery & RECOVER_SOFTEN) {
    bound_rows_assemble(p, one);
  }
}

void problem_assemble(problem *p, inertia *I) {
  const qd_model *model = p->model;
  p->bounded = p->set->force;
  cost_assemble(p, I);
  p->count.rows = p->count.cones = p->count.limits = p->count.equalities = 0;
  p->count.tendon_rows = p->count.force_rows = p->count.ball_limits = 0;
  p->count.turn_rows = 0;
  for (int i = 0; i < model->nu; ++i) {
    p->row_of_actuator[i] = -1;
  }
  p->count.friction_rows = p->report.relaxed = p->report.bounces = p->report.capped =
      p->report.deep = 0;
  p->report.timed = 0;
  if (p->options->friction_model == QD_PYRAMID) {
    friction_rays(p->program.rays, p->options->ray_count);
  }
  contact_columns_fill(&p->columns, p);
  for (int i = 0; i < p->collision->count; ++i) {
    p->block[i].row = p->block[i].rows.count = 0;
    p->block[i].held_force = p->block[i].compliance = 0.0;
    p->block[i].in_time[0] = p->block[i].in_time[1] = 0.0;
    p->block[i].weight_share = 1.0;
    p->block[i].offset = OFFSET_GAP;
  }
  tendons_compute(&p->tendons, model, p->kinematics, p->input->q);
  metric_share_begin(p);
  const int yields = contacts_yield_in_time(p->options);
  for (int i = 0; i < model->constraint.count; ++i) {
    constraint_compute(p->constraint + i, model, p->kinematics, &p->tendons, p->input->q, i,
                       yields);
    if (!yields) {
      p->report.capped +=
          constraint_cap(p->constraint + i, p->options->h * p->options->recovery_speed);
    }
  }
  for (int i = 0; i < p->islands.count; ++i) {
    assemble_rows(p, p->islands.island + i);
  }
}

void problem_program(const problem *p, const island *one, island_program *out) {
  qd_cone_program *program = &out->program.program;
  memset(out, 0, sizeof *out);
  program->variable_count = one->variable_count;
  program->row_count = one->row_count;
  program->cone_count = one->cone_count;
  program->b = p->program.b + one->variable;
  program->g = p->program.g + one->row;
  program->cone_kind = p->program.cone_kind + one->cone;
  program->cone_dim = p->program.cone_dim + one->cone;
  program->target_mu = p->program.target_mu + one->cone;
  program->equality_count = one->equality_count;
  program->c = p->program.c + one->equality;
  if (one->compliant > 0) {
    program->compliance = p->program.compliance + one->row;
    program->compliance_eq = p->program.compliance_eq + one->equality;
  }
  if (one->intervals > 0) {
    program->lower = p->program.lower + one->row;
    program->upper = p->program.upper + one->row;
  }
  out->Q = tile_rows_view(&one->Q);
  out->G = tile_rows_view(&one->G);
  out->C = tile_rows_view(&one->C);
  out->program.Q = &out->Q;
  out->program.G = &out->G;
  out->program.C = &out->C;
  out->program.ordered = one->in_blocks ? one->variable_count : 0;
  out->program.length = one->length;
  out->program.load = one->load;
}

double problem_row_along(const problem *p, const island *one, const tile_rows *rows, int i,
                         const double *way) {
  double sum = 0.0;
  for (int t = rows->start[i]; t < rows->start[i + 1]; ++t) {
    for (int k = 0; k < 4; ++k) {
      const double value = rows->values[4 * (size_t)t + (size_t)k];
      if (value != 0.0) {
        sum += value * way[p->dof_of_variable[one->variable + 4 * rows->tiles[t] + k]];
      }
    }
  }
  return sum;
}

int problem_contact_counts(const problem *p, int index, int exact_active_set) {
  const contact_block *block = p->block + index;
  int loaded = !exact_active_set && block->rows.count > 0;
  for (int r = 0; r < block->rows.count && !loaded; ++r) {
    loaded = p->solution.dual[block->row + r] != 0.0;
  }
  return loaded || block->held_force > 0.0;
}

void problem_forces(const problem *p, collision *c, double *limit_force) {
  for (int i = 0; i < c->count; ++i) {
    const contact_block *block = p->block + i;
    double *force = c->contact[i].force;
    memset(force, 0, MOTION_MAX * sizeof(double));
    force[0] = block->held_force;
    c->contact[i].softened = 0.0;
    for (int r = 0; r < block->rows.count; ++r) {
      friction_row_add_force(force, block->rows.row + r, p->solution.dual[block->row + r]);
    }
  }
  memset(p->solution.constraint_force, 0,
         (size_t)(p->model->constraint.count * QD_CONSTRAINT_FORCE) * sizeof(double));
  for (int i = 0; i < p->count.equalities; ++i) {
    const equality_row *row = p->equality + i;
    p->solution.constraint_force[row->constraint * QD_CONSTRAINT_FORCE + row->component] =
        p->solution.dual_eq[i];
  }
  for (int i = 0; i < p->model->constraint.count; ++i) {
    if (p->constraint[i].rows == 6) {
      double *moment = p->solution.constraint_force + i * QD_CONSTRAINT_FORCE + 3;
      vec3_copy(p->law[i].turning, moment);
      constraint_turn_moment(p->constraint + i, moment);
    }
  }
  memset(limit_force, 0, (size_t)p->model->nv * sizeof(double));
  for (int i = 0; i < p->count.limits; ++i) {
    limit_force[p->limit[i].dof] += p->limit[i].sign * p->solution.dual[p->limit[i].row];
  }
  for (int i = 0; i < p->count.ball_limits; ++i) {
    const ball_limit *limit = p->ball_limit + i;
    double turned[3];
    mat3_tmul_vec(turned, limit->inverse, p->solution.dual + limit->row + 1);
    vec3_axpy(limit_force + limit->dof, 1.0, turned);
  }
  for (int i = 0; i < p->count.turn_rows; ++i) {
    const turn_row *row = p->turn_row + i;
    if (row->is_limit) {
      vec3_axpy(limit_force + row->dof, p->solution.dual[row->row], row->axis);
    }
  }
  for (int i = 0; i < p->model->tendon.count; ++i) {
    p->solution.tendon_force[i] = 0.0;
  }
  for (int i = 0; i < p->count.tendon_rows; ++i) {
    const tendon_row *row = p->tendon_row + i;
    p->solution.tendon_force[row->tendon] += row->sign * p->solution.dual[row->row];
  }
  for (int i = 0; i < p->count.equalities; ++i) {
    const constraint_state *s = p->constraint + p->equality[i].constraint;
    for (int k = 0; k < 2; ++k) {
      if (s->tendon[k] >= 0) {
        p->solution.tendon_force[s->tendon[k]] +=
            constraint_tendon_share(s, k) * p->solution.dual_eq[i];
      }
    }
  }
}
