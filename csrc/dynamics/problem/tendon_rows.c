/* Rows along tendons: limits, springs (compliant), dry friction and actuators (intervals). */
#include "base/rounding.h"
#include "dynamics/problem/metric_share.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"

/* Lists the tiles of a tendon's free DOFs. Returns 0 if none changes its length. */
static int list_tendon_tiles(problem *p, const island *one, int tendon) {
  double largest = 0.0;
  p->scratch.list.count = 0;
  for (int d = p->model->tendon.dof_start[tendon]; d < p->model->tendon.dof_start[tendon + 1];
       ++d) {
    const int dof = p->model->tendon.dof[d];
    if (p->model->tendon.dof_counts[d] && p->variable_of_dof[dof] >= 0) {
      tile_list_add(&p->scratch.list, column_of(p, one, dof));
      largest = fmax(largest, fabs(p->tendons.rate[d]));
    }
  }
  return largest > NEGLIGIBLE;
}

/* A row without its entries. */
typedef struct row_law {
  double gap;
  double stiffness;    /* 0: rigid */
  double lower, upper; /* of an interval; both 0: a row of an orthant */
} row_law;

/* Appends a row of this kind over the listed tiles, and its cone. */
static tendon_row *add_row(problem *p, island *one, const tendon_row *kind, const row_law *law) {
  const int tendon = kind->tendon, is_interval = kind->kind >= TENDON_REST;
  double *row = tile_rows_append(&one->G, &p->scratch.list);
  for (int k = 0; k < p->scratch.list.count; ++k) {
    p->scratch.tile_place[p->scratch.list.tiles[k]] = k;
  }
  for (int d = p->model->tendon.dof_start[tendon]; d < p->model->tendon.dof_start[tendon + 1];
       ++d) {
    const int dof = p->model->tendon.dof[d];
    if (p->model->tendon.dof_counts[d] && p->variable_of_dof[dof] >= 0) {
      const int column = column_of(p, one, dof);
      row[4 * p->scratch.tile_place[column / 4] + column % 4] = kind->sign * p->tendons.rate[d];
    }
  }
  tendon_row *added = p->tendon_row + p->count.tendon_rows++;
  *added = *kind;
  added->row = p->count.rows;
  p->program.g[p->count.rows] = law->gap;
  if (kind->kind == TENDON_LIMIT) {
    p->program.g[p->count.rows] = gap_to_undo(p, law->gap, &added->capped);
  }
  if (is_interval) {
    p->program.lower[p->count.rows] = law->lower;
    p->program.upper[p->count.rows] = law->upper;
    ++one->intervals;
  }
  if (law->stiffness > 0.0) {
    p->program.compliance[p->count.rows] = 1.0 / law->stiffness;
    ++one->compliant;
  }
  ++p->count.rows;
  ++one->row_count;
  ++one->tendon_row_count;
  add_cone(p, one, is_interval ? QD_INTERVAL : QD_ORTHANT, 1, barrier_target(p->options, 1));
  return added;
}

/* MuJoCo's law of a limit, or of dry friction. */
static mujoco_reference law_of(const qd_model *model, const tendon_row *row, double weight) {
  return row->kind == TENDON_LIMIT
             ? mujoco_reference_of(model->tendon.limit_solver + 9 * row->tendon, weight)
             : mujoco_friction_of(model->tendon.friction_solver + 8 * row->tendon, weight);
}

static void yield_at(problem *p, island *one, tendon_row *row) {
  mujoco_reference of = law_of(p->model, row, p->model->tendon.invweight[row->tendon]);
  row->shares = metric_share_weigh(&of, p, one, &one->G, one->G.count - 1);
  row->weight = of.weight;
  row->capped = 0;
  yield_row(p, one, row->row, &of, row->beyond,
            row->sign * tendon_displacement(p, row->tendon, p->state.v));
}

void problem_tendon_change(double change[3], const problem *p, const tendon_row *row) {
  if (row->weight > 0.0) {
    const mujoco_reference of = law_of(p->model, row, row->weight);
    const double speed = row->sign * tendon_displacement(p, row->tendon, p->state.v);
    mujoco_row_change(change, &of, row->beyond, p->options->h, speed, p->solution.dual[row->row]);
    change[0] = row->kind == TENDON_LIMIT ? row->sign * change[0] : 0.0;
    change[1] *= row->sign;
    return;
  }
  change[0] = tendon_row_has_length(row) && !row->capped ? row->sign : 0.0;
  change[1] = 0.0;
  change[2] = row->capped ? -p->options->recovery_speed : 0.0;
}

/* A row at a bound of the length: a spring, or rigid. */
static void add_bound(problem *p, island *one, int tendon, tendon_row_kind kind, double sign,
                      double bound) {
  const tendon_row row = {.tendon = tendon, .kind = kind, .sign = sign};
  const row_law law = {
      sign * (p->tendons.length[tendon] - bound),
      kind == TENDON_LIMIT ? 0.0 : p->model->parameters.tendon_stiffness[tendon],
      -INFINITY,
      INFINITY,
  };
  add_row(p, one, &row, &law);
}

static void add_spring(problem *p, island *one, int tendon) {
  const double *rest = p->model->tendon.rest + 2 * tendon;
  if (!(p->model->parameters.tendon_stiffness[tendon] > 0.0)) {
    return;
  }
  if (rest[0] == rest[1]) {
    add_bound(p, one, tendon, TENDON_REST, 1.0, rest[0]);
  } else {
    add_bound(p, one, tendon, TENDON_SPRING, 1.0, rest[0]);
    add_bound(p, one, tendon, TENDON_SPRING, -1.0, rest[1]);
  }
}

/* A limit by MuJoCo's law, if the tendon is beyond its margin. */
static void add_yielding_limit(problem *p, island *one, int tendon, double sign, double bound) {
  const double margin = p->model->tendon.limit_solver[9 * tendon + 8];
  const double beyond = sign * (p->tendons.length[tendon] - bound) - margin;
  const tendon_row row = {.tendon = tendon, .kind = TENDON_LIMIT, .sign = sign, .beyond = beyond};
  const row_law law = {0.0, 0.0, -INFINITY, INFINITY};
  if (beyond < 0.0) {
    yield_at(p, one, add_row(p, one, &row, &law));
  }
}

static void add_limits(problem *p, island *one, int tendon) {
  const double *range = p->model->tendon.range + 2 * tendon;
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? 1.0 : -1.0;
    if (isfinite(range[side]) && contacts_yield_in_time(p->options)) {
      add_yielding_limit(p, one, tendon, sign, range[side]);
    } else if (isfinite(range[side])) {
      add_bound(p, one, tendon, TENDON_LIMIT, sign, range[side]);
    }
  }
}

static void add_friction(problem *p, island *one, int tendon) {
  const tendon_row row = {.tendon = tendon, .kind = TENDON_FRICTION, .sign = 1.0};
  const double most = p->model->tendon.friction[tendon];
  const row_law law = {0.0, 0.0, -most, most};
  if (most > 0.0) {
    tendon_row *added = add_row(p, one, &row, &law);
    if (contacts_yield_in_time(p->options)) {
      yield_at(p, one, added);
    }
  }
}

/* rate.d + h F / damping = 0 */
static void add_damper(problem *p, island *one, int tendon) {
  const tendon_row row = {.tendon = tendon, .kind = TENDON_DAMPER, .sign = 1.0};
  const double per_way = damping_rate(p->options) * p->model->tendon.damping[tendon];
  const row_law law = {0.0, per_way, -INFINITY, INFINITY};
  if (per_way > 0.0) {
    add_row(p, one, &row, &law);
  }
}

static double early_force(const problem *p, int tendon) {
  const double *rest = p->model->tendon.rest + 2 * tendon, length = p->tendons.length[tendon];
  const double off = length < rest[0] ? length - rest[0] : fmax(0.0, length - rest[1]);
  const double speed = tendon_displacement(p, tendon, p->state.v);
  return -p->model->parameters.tendon_stiffness[tendon] * off -
         p->model->tendon.damping[tendon] * speed;
}

/* Springs and dampers with the force of the beginning of the step. */
static void add_early(problem *p, island *one, int tendon) {
  const tendon_row row = {.tendon = tendon, .kind = TENDON_FORCE, .sign = 1.0, .actuator = -1};
  const double force = early_force(p, tendon);
  const row_law law = {0.0, 0.0, force, force};
  if (p->model->parameters.tendon_stiffness[tendon] > 0.0 ||
      p->model->tendon.damping[tendon] > 0.0) {
    add_row(p, one, &row, &law);
  }
}

/* F0 - K rate.d = F between the limits: rate.d - F0 / K + F / K = 0; or F0 itself. */
static void add_actuators(problem *p, island *one, int tendon) {
  const int_list actuators = tendon_actuators(p->model, tendon);
  for (int k = 0; k < actuators.count; ++k) {
    const int i = actuators.at[k];
    const double *range = p->model->parameters.actuator_force_range + 2 * i;
    const actuator_force force = problem_actuator_force(p, i);
    const int gives = force.stiffness > 0.0;
    const int limits = p->options->force_limits && !problem_clamps_force(p->model, p->options, i);
    const double alone =
        p->options->force_limits ? actuator_clamp(p->model, i, force.at_rest) : force.at_rest;
    const row_law law = {
        gives ? -force.at_rest / force.stiffness : 0.0,
        force.stiffness,
        !gives ? alone : (limits ? range[0] : -INFINITY),
        !gives ? alone : (limits ? range[1] : (double)INFINITY),
    };
    const tendon_row row = {.tendon = tendon,
                            .kind = gives ? TENDON_ACTUATOR : TENDON_FORCE,
                            .sign = 1.0,
                            .actuator = i};
    p->row_of_actuator[i] = p->count.tendon_rows;
    add_row(p, one, &row, &law);
  }
}

void tendon_rows_assemble(problem *p, island *one) {
  one->tendon_row = p->count.tendon_rows;
  for (int i = one->tendon; i < one->tendon + one->tendon_count; ++i) {
    const int tendon = p->islands.tendon_order[i];
    if (!list_tendon_tiles(p, one, tendon)) {
      continue;
    }
    if (springs_act_early(p->model, p->options)) {
      add_early(p, one, tendon);
    } else {
      add_spring(p, one, tendon);
      add_damper(p, one, tendon);
    }
    add_friction(p, one, tendon);
    add_actuators(p, one, tendon);
    if (p->options->joint_limits) {
      add_limits(p, one, tendon);
    }
  }
}
