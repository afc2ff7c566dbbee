/* A contact as a cone: the rows of its friction law times the relative motion, and the distance. */
#include "base/lanes.h"
#include "base/rounding.h"
#include "dynamics/problem/metric_share.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"

/* rad, or m: if opening a penetration by the normal row takes more motion, no motion within the
 * linearisation opens it. */
#define FORCED_MOST 3.0

/* Relative to the radius of the smaller bounding sphere. */
#define SHALLOW 5e-2

/* Rows of G over the list's tiles: friction rows times motion. */
QD_MULTIVERSION
static void write_rows(const problem *p, tile_rows *G, const friction_rows *rows) {
  const int count = p->scratch.list.count;
  for (int r = 0; r < rows->count; ++r) {
    const friction_row *row = rows->row + r;
    const int first = row->component[0], second = row->component[1];
    const double *motion = p->scratch.motion;
    double *values = tile_rows_open(G, &p->scratch.list);
    for (int k = 0; k < count; ++k, values += 4, motion += 4 * MOTION_MAX) {
      LANES_AT(values) =
          (row->normal * LANES_OF(motion) + row->weight[0] * LANES_OF(motion + 4 * first)) +
          row->weight[1] * LANES_OF(motion + 4 * second);
    }
  }
}

static double contact_size(const qd_model *model, const qd_contact *contact) {
  return fmin(model->geom.radius[contact->geom_a], model->geom.radius[contact->geom_b]);
}

int problem_is_shallow(const qd_model *model, const qd_contact *contact) {
  return contact->dist < 0.0 && contact->dist > -SHALLOW * contact_size(model, contact);
}

void problem_contact_speed(double out[MOTION_MAX], const problem *p, const qd_contact *contact) {
  const screw *twist = p->state.velocity.body;
  screw relative;
  double velocity[3];
  screw_sub(&relative, twist + contact->body_b, twist + contact->body_a);
  screw_point_velocity(velocity, &relative, contact->pos);
  for (int axis = 0; axis < 3; ++axis) {
    out[axis] = vec3_dot(contact->frame + 3 * axis, velocity);
    out[3 + axis] = vec3_dot(contact->frame + 3 * axis, relative.w);
  }
}

/* Factor of its restitution: that of its island. */
static double bounce_share(const problem *p, const qd_contact *contact) {
  const int a = p->model->body.tree[contact->body_a], b = p->model->body.tree[contact->body_b];
  return fmin(a >= 0 ? p->loads.bounce_share[a] : 1.0, b >= 0 ? p->loads.bounce_share[b] : 1.0);
}

/* With a barrier, contacts that may not deepen get a small gap. Without it, no motion is inside the
 * rows of a body that is wedged between two others. */
static double gap_to_keep(const problem *p, const qd_contact *contact) {
  return isinf(p->options->kappa) ? 0.0 : NEAR_LENGTH * contact_size(p->model, contact);
}

/* Penetrations are undone at most at the recovery speed. In the second-order step, a contact that
 * would be reached faster than the bounce speed rebounds with restitution times its speed (Newton's
 * rule), if this is faster than the gap requires. */
static double offset_in_time(problem *p, const qd_contact *contact, contact_block *block) {
  const double own = p->model->pair.restitution[contact->pair];
  const double restitution = bounce_share(p, contact) * (own < 0.0 ? p->options->restitution : own);
  int capped;
  double offset = gap_to_undo(p, contact->dist, &capped);
  block->offset = capped ? OFFSET_CAPPED : OFFSET_GAP;
  if (capped && p->options->recovery_speed == 0.0) {
    offset = gap_to_keep(p, contact);
  }
  p->report.deep += !capped && contact->dist <= -SHALLOW * contact_size(p->model, contact);
  if (p->options->dynamic && restitution > 0.0) {
    double motion[MOTION_MAX];
    problem_contact_speed(motion, p, contact);
    const double approach = p->options->h * motion[0];
    const double slowest = p->options->bounce_speed < 0.0
                               ? 2.0 * p->options->h * vec3_norm(p->model->parameters.gravity)
                               : p->options->bounce_speed;
    if (approach < -p->options->h * slowest && contact->dist + approach < 0.0 &&
        restitution * approach < offset) {
      offset = restitution * approach;
      block->offset = OFFSET_BOUNCE;
      block->in_time[0] = restitution * p->options->h;
    }
  }
  p->report.bounces += block->offset == OFFSET_BOUNCE;
  p->report.timed += block->offset == OFFSET_BOUNCE;
  return offset;
}

/* The normal row's offset, from the squared length of that row. Compliant contacts (gives) need no
 * limit. Relaxed contacts may not deepen. */
static double contact_offset(problem *p, const qd_contact *contact, contact_block *block,
                             double normal_squared) {
  if (p->model->pair.soft[contact->pair] >= 0) {
    block->offset = contact->dist > 0.0 ? OFFSET_GAP : OFFSET_HELD;
    return pressure_guard_gap(p->model, contact);
  }
  const int gives = block->compliance > 0.0;
  const int forced = !gives && contact->dist <= 0.0 &&
                     contact->dist * contact->dist >= FORCED_MOST * FORCED_MOST * normal_squared;
  if (!forced && (gives || !((p->attempt.recovery & RECOVER_RELAX) &&
                             problem_is_shallow(p->model, contact)))) {
    return gives ? contact->dist : offset_in_time(p, contact, block);
  }
  ++p->report.relaxed;
  return gap_to_keep(p, contact);
}

/* Whether a row depends on the variables. */
static int rows_move(const friction_rows *rows, const double squared[MOTION_MAX]) {
  for (int r = 0; r < rows->count; ++r) {
    const friction_row *row = rows->row + r;
    double sum = row->normal * row->normal * squared[0];
    for (int i = 0; i < 2; ++i) {
      sum += row->weight[i] * row->weight[i] * squared[row->component[i]];
    }
    if (sum > CALLERS_ROUNDING * CALLERS_ROUNDING) {
      return 1;
    }
  }
  return 0;
}

/* The barrier's force if nothing moves: force times (offset + compliance force) = target. */
static double held_force(double target, double offset, double compliance) {
  if (compliance == 0.0) {
    return target / offset;
  }
  const double root = sqrt(offset * offset + 4.0 * compliance * target);
  return offset > 0.0 ? 2.0 * target / (offset + root) : (root - offset) / (2.0 * compliance);
}

/* The cones of a pyramid share the barrier. */
static void add_cones(problem *p, island *one, const friction_rows *rows, double target) {
  const int own = rows->count - 2 * rows->halves;
  if (rows->halves == 0) {
    add_cone(p, one, rows->kind, own, target);
    return;
  }
  const double share = target / (rows->halves + (own > 0));
  for (int i = 0; i < rows->halves; ++i) {
    add_cone(p, one, QD_LORENTZ, 2, share);
  }
  if (own > 0) {
    add_cone(p, one, QD_ORTHANT, own, share);
  }
}

/* MuJoCo's contacts have at least some friction along each component. */
static void fill_rows_in_time(friction_rows *rows, const qd_model *model, const qd_step_options *o,
                              const qd_contact *contact, const int present[MOTION_MAX]) {
  double friction[MOTION_MAX - 1];
  for (int c = 1; c < MOTION_MAX; ++c) {
    friction[c - 1] = fmax(contact->friction[c - 1], LEAST_FRICTION);
  }
  if (contact_yields_by_edges(model, o, contact)) {
    friction_rows_fill_edges(rows, friction, contact->dim);
  } else {
    friction_rows_fill_cone(rows, friction, contact->dim, present);
  }
}

/* Offsets and compliances of a contact that yields. */
static void write_yield(problem *p, island *one, const qd_contact *contact,
                        const contact_yield *yield, contact_block *block) {
  double moved[MOTION_MAX] = {0.0};
  memcpy(block->in_time, yield->in_time, sizeof block->in_time);
  if (block->in_time[0] != 0.0 || block->in_time[1] != 0.0) {
    problem_contact_speed(moved, p, contact);
    ++p->report.timed;
  }
  for (int c = 0; c < MOTION_MAX; ++c) {
    moved[c] *= block->in_time[c > 0];
  }
  for (int r = 0; r < block->rows.count; ++r) {
    double *offset = p->program.g + block->row + r;
    contact_yield_row(offset, p->program.compliance + block->row + r, yield, &block->rows, r);
    *offset += friction_row_of(block->rows.row + r, moved);
  }
  one->compliant += block->rows.count;
}

/* Logarithms of the barrier. A contact whose friction is left out repels like one with friction
 * that cannot slide. */
static int logs_of(const friction_rows *rows, const qd_model *model, const qd_step_options *o,
                   const qd_contact *contact) {
  const int dim = model->pair.dim[contact->pair];
  if (contact->dim == dim) {
    return rows->log_count;
  }
  return o->friction_model == QD_CONE ? 2 : o->ray_count + 2 * (dim > 3 ? dim - 3 : 0);
}

void contact_rows_assemble(problem *p, island *one, int index) {
  const qd_model *model = p->model;
  const qd_contact *contact = p->collision->contact + index;
  contact_block *block = p->block + index;
  double squared[MOTION_MAX] = {0.0};
  int present[MOTION_MAX];
  contact_tiles_find(p, contact);
  if (p->scratch.list.count == 0) {
    return;
  }
  contact_motions_compute(p, one, contact, squared);
  const int yields = contact_yields(model, p->options, contact->pair);
  const double size = contact_size(model, contact);
  const double still = SLIGHT * fmax(size, sqrt(squared[1] + squared[2]));
  if (!(yields && p->options->dynamic) && squared[0] <= still * still &&
      contact_never_parts(model, p->variable_of_dof, p->kinematics, p->collision, index)) {
    return;
  }
  for (int i = 0; i < MOTION_MAX; ++i) {
    present[i] = i == 0 || squared[i] > NEGLIGIBLE * NEGLIGIBLE;
  }
  one->length = fmin(one->length, size);
  block->row = p->count.rows;
  block->rows.row = p->friction_row + p->count.friction_rows;
  const int is_soft = model->pair.soft[contact->pair] >= 0;
  contact_yield yield;
  block->compliance = is_soft ? 0.0 : contact_compliance(model, p->options, contact->pair);
  if (yields) {
    if (contact_yield_is_implicit(model, p->options, contact->pair)) {
      block->weight_share = metric_share_of_contact(p, one, contact);
    }
    contact_yield_compute(&yield, NULL, model, contact, block->weight_share, p->options);
    block->offset = OFFSET_YIELD;
    block->compliance = yield.whole.normal;
  }
  if (is_soft) {
    friction_rows_fill(&block->rows, contact->friction, 1, present, QD_CONE, 0, NULL);
  } else if (yields && p->options->dynamic) {
    fill_rows_in_time(&block->rows, model, p->options, contact, present);
  } else if (contact_yields_by_edges(model, p->options, contact)) {
    friction_rows_fill_halves(&block->rows, contact->friction, contact->dim, present);
  } else if (block->compliance > 0.0) {
    friction_rows_fill_cone(&block->rows, contact->friction, contact->dim, present);
  } else {
    friction_rows_fill(&block->rows, contact->friction, contact->dim, present,
                       p->options->friction_model, p->options->ray_count, p->program.rays);
  }
  const int rows = block->rows.count;
  const double offset = yields ? yield.whole.offset : contact_offset(p, contact, block, squared[0]);
  const double target =
      barrier_target(p->options, logs_of(&block->rows, model, p->options, contact));
  if (!rows_move(&block->rows, squared)) {
    block->held_force = target > 0.0 ? held_force(rows * target, offset, block->compliance) : 0.0;
    block->rows.count = 0;
    return;
  }
  write_rows(p, &one->G, &block->rows);
  for (int r = 0; r < rows; ++r) {
    p->program.g[block->row + r] = block->rows.row[r].normal * offset;
  }
  if (yields) {
    write_yield(p, one, contact, &yield, block);
  } else if (block->compliance > 0.0) {
    p->program.compliance[block->row] = block->compliance;
    ++one->compliant;
  }
  add_cones(p, one, &block->rows, target);
  p->count.friction_rows += rows;
  p->count.rows += rows;
  one->row_count += rows;
}
