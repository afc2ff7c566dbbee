#include "dynamics/warm_start.h"

#include <math.h>

#include "base/bits.h"
#include "base/rounding.h"

#define SHARE_ROUNDS 4

void warm_start_lay_out(warm_start *w, int contact_capacity, arena *a) {
  w->match = arena_ints(a, (size_t)contact_capacity);
}

/* ---------------------------------------------------------------- matching */

/* Contacts [*first, *end) of the start that belong to the pair. The search begins at the last
 * result, since both lists are sorted by pair except for contacts that were added later. */
static void find_run(const qd_step_start *from, int pair, int *first, int *end) {
  const int count = from->contact_count;
  int at = *first;
  for (int looked = 0; looked < count && from->contacts[at].pair != pair; ++looked) {
    at = at + 1 < count ? at + 1 : 0;
  }
  if (from->contacts[at].pair != pair) {
    *end = *first;
    return;
  }
  while (at > 0 && from->contacts[at - 1].pair == pair) {
    --at;
  }
  *first = *end = at;
  while (*end < count && from->contacts[*end].pair == pair) {
    ++*end;
  }
}

/* The nearest contact of the run that is not matched yet. */
static int nearest(const qd_step_start *from, const qd_contact *contact, int first, int end,
                   uint64_t *taken) {
  double least = INFINITY;
  int found = -1;
  end = end - first < WORD_BITS ? end : first + WORD_BITS;
  for (int i = first; i < end; ++i) {
    double d[3];
    vec3_sub(d, from->contacts[i].pos, contact->pos);
    const double distance = vec3_dot(d, d);
    if (!(*taken >> (i - first) & 1) && distance < least) {
      least = distance;
      found = i;
    }
  }
  *taken |= found >= 0 ? (uint64_t)1 << (found - first) : 0;
  return found;
}

void warm_start_match(warm_start *w, const qd_step_start *from, const collision *c) {
  const int count = c->count < c->capacity ? c->count : c->capacity;
  int first = 0, end = 0;
  uint64_t taken = 0;
  w->from = from;
  for (int i = 0; i < count; ++i) {
    const qd_contact *contact = c->contact + i;
    if (from->contact_count == 0) {
      w->match[i] = -1;
      continue;
    }
    if (i == 0 || contact->pair != contact[-1].pair) {
      find_run(from, contact->pair, &first, &end);
      taken = 0;
    }
    w->match[i] = nearest(from, contact, first, end, &taken);
  }
  w->matched = count;
}

/* The start's contact that matches one of the list. */
static const qd_contact *earlier_contact(const warm_start *w, int contact) {
  const int match = contact < w->matched ? w->match[contact] : -1;
  return match >= 0 ? w->from->contacts + match : NULL;
}

void warm_start_go_on(warm_start *w, const problem *p, const qd_step_result *result) {
  w->goes_on = result != NULL;
  w->from = result != NULL ? &w->found : NULL;
  if (result == NULL) {
    return;
  }
  w->found =
      (qd_step_start){p->collision->count, p->collision->contact,        result->delta,
                      result->limit_force, p->solution.constraint_force, p->solution.tendon_force};
  w->matched = p->collision->count;
  for (int i = 0; i < p->collision->count; ++i) {
    w->match[i] = i;
  }
}

void warm_start_choose(const warm_start *w, const qd_model *model, working_set *set) {
  for (int i = 0; i < set->chosen; ++i) {
    const qd_contact *earlier = earlier_contact(w, i);
    if (!set->contact[i] && earlier != NULL && earlier->force[0] > 0.0) {
      set->contact[i] = 1;
      --set->left_out;
    }
  }
  for (int dof = 0; dof < model->nv; ++dof) {
    const double force = w->from->limit_force[dof];
    const int side = 2 * dof + (force < 0.0);
    if (force != 0.0 && !set->limit[side]) {
      set->limit[side] = 1;
      --set->left_out;
    }
  }
}

/* ---------------------------------------------------------------- forces as multipliers */

/* The force on B in the contact's present frame. */
static void turn_force(double force[MOTION_MAX], const qd_contact *earlier,
                       const qd_contact *contact) {
  double world[3], moment[3];
  mat3_tmul_vec(world, earlier->frame, earlier->force);
  mat3_tmul_vec(moment, earlier->frame, earlier->force + 3);
  mat3_mul_vec(force, contact->frame, world);
  mat3_mul_vec(force + 3, contact->frame, moment);
}

/* Slack of one row of an island's G at the guess, and the sum of the sizes of its terms. */
static double row_slack(const problem *p, const island *one, int row, double *size) {
  const tile_rows *G = &one->G;
  const double *x = p->solution.x + one->variable;
  double sum = p->program.g[row];
  *size = fabs(sum);
  row -= one->row;
  for (int t = G->start[row]; t < G->start[row + 1]; ++t) {
    for (int k = 0; k < 4 && 4 * G->tiles[t] + k < one->variable_count; ++k) {
      const double part = G->values[4 * t + k] * x[4 * G->tiles[t] + k];
      sum += part;
      *size += fabs(part);
    }
  }
  return sum;
}

/* x of A x = b, with A symmetric positive semidefinite; zero where A has no pivot. Overwrites A. */
static void solve_semidefinite(double A[MOTION_MAX][MOTION_MAX], const double *b, double *x) {
  double pivot[MOTION_MAX];
  for (int k = 0; k < MOTION_MAX; ++k) {
    pivot[k] = A[k][k]; /* the diagonal before elimination */
    x[k] = b[k];
  }
  for (int k = 0; k < MOTION_MAX; ++k) {
    const int any = A[k][k] > SUM_ROUNDING * pivot[k];
    for (int i = k + 1; i < MOTION_MAX; ++i) {
      const double factor = any ? A[i][k] / A[k][k] : 0.0;
      for (int j = k + 1; j < MOTION_MAX; ++j) {
        A[i][j] -= factor * A[k][j];
      }
      x[i] -= factor * x[k];
    }
    A[k][k] = any ? A[k][k] : 0.0;
  }
  for (int k = MOTION_MAX - 1; k >= 0; --k) {
    for (int j = k + 1; j < MOTION_MAX; ++j) {
      x[k] -= A[k][j] * x[j];
    }
    x[k] = A[k][k] > 0.0 ? x[k] / A[k][k] : 0.0;
  }
}

/* Weights of a contact's rays: small if a ray's slack is more than rounding. */
static void weigh_rays(const problem *p, const island *one, const contact_block *block,
                       const qd_contact *contact, double *weight) {
  const double radius =
      fmin(p->model->geom.radius[contact->geom_a], p->model->geom.radius[contact->geom_b]);
  double rest = NEGLIGIBLE * (isfinite(radius) ? radius : 1.0), size;
  for (int r = 0; r < block->rows.count; ++r) {
    weight[r] = fmax(row_slack(p, one, block->row + r, &size), 0.0);
    rest = fmax(rest, CALLERS_ROUNDING * size);
  }
  for (int r = 0; r < block->rows.count; ++r) {
    weight[r] = 1.0 / (weight[r] / rest + 1.0);
  }
}

/* Loads of the rays that give the force, with the least sum of squares over weights. Removes rays
 * that would pull, and returns their number, 0 when none is left. */
static int share_force(const friction_rows *rows, const double force[MOTION_MAX], double *weight,
                       double *load) {
  double normal[MOTION_MAX][MOTION_MAX] = {{0.0}}, solution[MOTION_MAX];
  for (int r = 0; r < rows->count; ++r) {
    double share[MOTION_MAX] = {0.0};
    friction_row_add_force(share, rows->row + r, 1.0);
    for (int i = 0; i < MOTION_MAX; ++i) {
      for (int j = 0; j < MOTION_MAX; ++j) {
        normal[i][j] += weight[r] * share[i] * share[j];
      }
    }
  }
  solve_semidefinite(normal, force, solution);
  int pull = 0;
  for (int r = 0; r < rows->count; ++r) {
    load[r] = weight[r] * friction_row_of(rows->row + r, solution);
    if (load[r] < -NEGLIGIBLE * force[0]) {
      weight[r] = 0.0;
      ++pull;
    }
    load[r] = fmax(load[r], 0.0);
  }
  return pull;
}

static void load_rays(problem *p, const island *one, const contact_block *block,
                      const qd_contact *contact, const double force[MOTION_MAX]) {
  double weight[FRICTION_ROWS_MAX];
  weigh_rays(p, one, block, contact, weight);
  for (int round = 0; round < SHARE_ROUNDS; ++round) {
    if (share_force(&block->rows, force, weight, p->solution.dual + block->row) == 0) {
      return;
    }
  }
}

/* The force in one row, or in two opposite rows along one direction. */
static void load_line(double *dual, const friction_rows *rows, const double force[MOTION_MAX]) {
  const friction_row *row = rows->row;
  dual[0] = force[0];
  if (rows->count == 2) {
    const double along = force[row->component[0]] / row->weight[0];
    dual[0] = fmax(0.5 * (force[0] + along), 0.0);
    dual[1] = fmax(0.5 * (force[0] - along), 0.0);
  }
}

/* The force in a Lorentz cone's rows. */
static void load_cone(double *dual, const friction_rows *rows, const double force[MOTION_MAX]) {
  dual[0] = force[0];
  for (int r = 1; r < rows->count; ++r) {
    dual[r] = force[rows->row[r].component[0]] / rows->row[r].weight[0];
  }
}

/* The force in a pyramid's cones: each tangent's own part, and equal parts of the rest. */
static void load_halves(double *dual, const friction_rows *rows, const double force[MOTION_MAX]) {
  const int parts = rows->halves + 2 * rows->flat;
  double rest = force[0];
  for (int i = 0; i < rows->halves; ++i) {
    const friction_row *row = rows->row + 2 * i + 1;
    dual[2 * i + 1] = 0.5 * force[row->component[0]] / row->weight[0];
    rest -= fabs(dual[2 * i + 1]);
  }
  const double share = fmax(rest, 0.0) / parts;
  for (int i = 0; i < rows->halves; ++i) {
    dual[2 * i] = fabs(dual[2 * i + 1]) + share;
  }
  if (rows->flat > 0) {
    dual[2 * rows->halves] = 2 * rows->flat * share;
  }
}

static void fill_contact(const warm_start *w, problem *p, const island *one, int index) {
  const contact_block *block = p->block + index;
  const qd_contact *earlier = earlier_contact(w, index), *contact = p->collision->contact + index;
  double force[MOTION_MAX];
  if (earlier == NULL || !(earlier->force[0] > 0.0)) {
    memset(p->solution.dual + block->row, 0, (size_t)block->rows.count * sizeof(double));
    return;
  }
  turn_force(force, earlier, contact);
  if (block->rows.halves > 0) {
    load_halves(p->solution.dual + block->row, &block->rows, force);
  } else if (block->rows.kind == QD_ORTHANT && block->rows.count <= 2) {
    load_line(p->solution.dual + block->row, &block->rows, force);
  } else if (block->rows.kind == QD_LORENTZ) {
    load_cone(p->solution.dual + block->row, &block->rows, force);
  } else {
    load_rays(p, one, block, contact, force);
  }
}

/* Springs have their force at the guess; the rest of the tendon's force is friction up to its
 * maximum, and that of a limit. */
static void fill_tendons(const warm_start *w, const problem *p, const island *one) {
  const double *force = w->from->tendon_force;
  double left = 0.0, size;
  for (int i = one->tendon_row; i < one->tendon_row + one->tendon_row_count; ++i) {
    const tendon_row *row = p->tendon_row + i;
    if (i == one->tendon_row || row[-1].tendon != row->tendon) {
      left = force != NULL ? force[row->tendon] : 0.0;
    }
    double own = row->sign * left;
    const int is_interval = row->kind >= TENDON_REST;
    const int gives =
        row->kind != TENDON_LIMIT && row->kind != TENDON_FRICTION && row->kind != TENDON_FORCE;
    if (gives) {
      own = -row_slack(p, one, row->row, &size) / p->program.compliance[row->row];
    }
    p->solution.dual[row->row] =
        is_interval ? fmin(fmax(own, p->program.lower[row->row]), p->program.upper[row->row])
                    : fmax(own, 0.0);
    left -= row->sign * p->solution.dual[row->row];
  }
}

/* Along the rotation, which the limit's force opposes. */
static void fill_ball_limit(problem *p, const ball_limit *limit, const double *limit_force) {
  const double size = vec3_norm(limit_force + limit->dof), angle = vec3_norm(limit->turn);
  p->solution.dual[limit->row] = angle > 0.0 ? size : 0.0;
  for (int i = 0; i < 3; ++i) {
    p->solution.dual[limit->row + 1 + i] = angle > 0.0 ? -size * limit->turn[i] / angle : 0.0;
  }
}

void warm_start_fill(const warm_start *w, problem *p) {
  const qd_step_start *from = w->from;
  for (int i = 0; i < p->n; ++i) {
    p->solution.x[i] = p->dof_of_variable[i] >= 0 ? from->delta[p->dof_of_variable[i]] : 0.0;
  }
  for (int i = 0; i < p->islands.count; ++i) {
    const island *one = p->islands.island + i;
    for (int k = one->contact; k < one->contact + one->contact_count; ++k) {
      fill_contact(w, p, one, p->islands.contact_order[k]);
    }
  }
  for (int i = 0; i < p->count.limits; ++i) {
    const limit_row *limit = p->limit + i;
    p->solution.dual[limit->row] = fmax(limit->sign * from->limit_force[limit->dof], 0.0);
  }
  for (int i = 0; i < p->count.ball_limits; ++i) {
    fill_ball_limit(p, p->ball_limit + i, from->limit_force);
  }
  for (int i = 0; i < p->count.turn_rows; ++i) {
    const turn_row *row = p->turn_row + i;
    const double force = row->is_limit ? vec3_dot(row->axis, from->limit_force + row->dof) : 0.0;
    p->solution.dual[row->row] = fmax(force, 0.0);
  }
  for (int i = 0; i < p->islands.count; ++i) {
    fill_tendons(w, p, p->islands.island + i);
  }
  for (int i = 0; i < p->count.force_rows; ++i) { /* the force that the guessed motion implies */
    const force_row *row = p->force_row + i;
    const double moved = p->program.g[row->row] + from->delta[row->dof];
    const double force = row->actuator < 0 ? -INFINITY * moved : -row->stiffness * moved;
    p->solution.dual[row->row] =
        moved == 0.0 ? 0.0
                     : fmin(fmax(force, p->program.lower[row->row]), p->program.upper[row->row]);
  }
  for (int i = 0; i < p->count.equalities; ++i) {
    const equality_row *row = p->equality + i;
    p->solution.dual_eq[i] =
        from->constraint_force == NULL
            ? 0.0
            : from->constraint_force[row->constraint * QD_CONSTRAINT_FORCE + row->component];
  }
}
