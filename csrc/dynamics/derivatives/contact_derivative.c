/* One contact along all DOFs that move it, four at a time.
 *
 * Along DOF j with screw S_j, which moves body A (on_a = 1), body B (on_b = 1) or both, the contact
 * moves as in contact_motion_compute (collision.h). With T the twists under delta and P_j the part
 * of them that j does not move, the derivative of the relative twist of A and B is
 *   S_j x (on_b (T_b - P_j) - on_a (T_a - P_j)),
 * since the bracket is linear. Columns of a tile that do not move the contact have on_a = on_b = 0,
 * which makes all terms zero. Offsets of contacts that bounce, or yield in the second-order step,
 * depend on the velocity under v, for which the same holds. */
#include "dynamics/derivatives/linearize_rows.h"

#include "dynamics/derivatives/lanes3.h"
#include "dynamics/problem/contact_dofs.h"
#include "dynamics/problem/yield.h"

/* Motion of a contact's two bodies under delta, or under v. */
typedef struct contact_twists {
  const screw *twist_a, *twist_b;
  const column_screws *unmoved; /* (tiles) */
  screw relative;               /* twist of B relative to A */
  double velocity[3];           /* of B relative to A at the contact point */
} contact_twists;

/* State of a contact that its rows and wrench need at fixed delta and forces. */
typedef struct contact_state {
  const qd_contact *contact;
  const contact_block *block;
  contact_point_derivative derivative;
  contact_twists delta, time;
  double gap;        /* derivative of the offset by the distance */
  double in_time[2]; /* of the block */
  int knows_time;    /* 1: in_time is not zero */
  int yields;        /* 1: all rows depend on the distance, with these slopes */
  double yield[YIELD_ROWS_MAX];
  double force[3];
  tangent_axis from; /* the axis from which tangent 1 is computed */
  double to_axis;    /* one over the length of its product with the normal */
} contact_state;

static void contact_twists_fill(contact_twists *t, const qd_contact *contact,
                                const twist_field *field, const column_screws *unmoved) {
  t->twist_a = field->body + contact->body_a;
  t->twist_b = field->body + contact->body_b;
  t->unmoved = unmoved;
  screw_sub(&t->relative, t->twist_b, t->twist_a);
  screw_point_velocity(t->velocity, &t->relative, contact->pos);
}

/* slope of each row by the distance */
static void yield_slopes(double out[YIELD_ROWS_MAX], const problem *p, const contact_state *cs) {
  double speed[MOTION_MAX] = {0.0};
  contact_yield now;
  contact_yield_change change;
  if (cs->knows_time) {
    problem_contact_speed(speed, p, cs->contact);
  }
  contact_yield_compute(&now, &change, p->model, cs->contact, cs->block->weight_share, p->options);
  contact_yield_rows(out, &change.by_distance, &cs->block->rows, p->solution.dual + cs->block->row,
                     speed);
}

static void contact_state_fill(contact_state *cs, const qd_workspace *w, int index) {
  const qd_contact *contact = w->collision.contact + index;
  double y[3];
  cs->contact = contact;
  cs->block = w->problem.block + index;
  contact_derivative_compute(&cs->derivative, &w->collision, index);
  contact_twists_fill(&cs->delta, contact, &w->point.delta, w->sensitivity.unmoved);
  cs->gap = cs->block->offset == OFFSET_GAP ? 1.0 : 0.0;
  memcpy(cs->in_time, cs->block->in_time, sizeof cs->in_time);
  cs->knows_time = cs->in_time[0] != 0.0 || cs->in_time[1] != 0.0;
  if (cs->knows_time) {
    contact_twists_fill(&cs->time, contact, &w->problem.state.velocity,
                        w->sensitivity.unmoved_in_time);
  }
  cs->yields = cs->block->offset == OFFSET_YIELD;
  if (cs->yields) {
    yield_slopes(cs->yield, &w->problem, cs);
  }
  vec3_set(cs->force, 0.0, 0.0, 0.0);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(cs->force, contact->force[axis], contact->frame + 3 * axis);
  }
  contact_frame_axis(&cs->from, &w->collision, w->problem.model, contact);
  vec3_cross(y, cs->from.axis, contact->frame);
  cs->to_axis = 1.0 / vec3_norm(y);
}

/* Changes along four DOFs. */
typedef struct four_motions {
  lanes pos[3], dist, frame[3][3]; /* of the contact point: position, distance, its three axes */
  lanes w[3], v[3];                /* of the relative twist */
} four_motions;

/* r += D x for rows of six numbers. */
LANES_INLINE void add_row_product(lanes *r, const double *D, const lanes x[6]) {
  *r += ((D[0] * x[0] + D[1] * x[1]) + (D[2] * x[2] + D[3] * x[3])) + (D[4] * x[4] + D[5] * x[5]);
}

/* Changes of the tangents: t1 = y / |y|, y = axis x n: d t1 = (1 - t1 t1') (d axis x n + axis x dn)
 * / |y|; t2 = n x t1. w: angular parts of the columns' screws; on: 1 if they move the body that
 * carries the axis. */
LANES_INLINE void move_tangents(lanes frame[3][3], const contact_state *cs, const lanes w[3],
                                const lanes *on) {
  const double *n = cs->contact->frame, *t1 = n + 3;
  lanes along = {0.0, 0.0, 0.0, 0.0}, dy[3];
  lanes3_clear(dy);
  lanes3_subtract_cross(dy, frame[0], cs->from.axis);
  if (cs->from.side >= 0) {
    lanes turned[3];
    lanes3_clear(turned);
    lanes3_add_cross(turned, w, cs->from.axis);
    for (int i = 0; i < 3; ++i) {
      turned[i] *= *on;
    }
    lanes3_add_cross(dy, turned, n);
  }
  lanes3_add_dot(&along, t1, dy);
  for (int i = 0; i < 3; ++i) {
    frame[1][i] = (dy[i] - t1[i] * along) * cs->to_axis;
  }
  lanes3_clear(frame[2]);
  lanes3_add_cross(frame[2], frame[0], t1);
  lanes3_subtract_cross(frame[2], frame[1], n);
}

LANES_INLINE void move_contact(four_motions *m, const contact_state *cs, const column_screws *tile,
                               const lanes *on_a, const lanes *on_b) {
  const lanes either = *on_b - *on_a, none = {0.0, 0.0, 0.0, 0.0};
  lanes w[3], with_a[3], at_contact[3], relative[6];
  for (int i = 0; i < 3; ++i) {
    w[i] = LANES_OF(tile->w[i]);
    at_contact[i] = LANES_OF(tile->v[i]);
  }
  lanes3_add_cross(at_contact, w, cs->contact->pos);
  m->dist = none;
  for (int i = 0; i < 3; ++i) {
    relative[i] = either * w[i];
    relative[3 + i] = either * at_contact[i];
    m->pos[i] = *on_a * at_contact[i]; /* moves rigidly with A; relative motion below */
    with_a[i] = w[i] * *on_a;
  }
  lanes3_clear(m->frame[0]);
  lanes3_add_cross(m->frame[0], with_a, cs->contact->frame);
  for (int i = 0; i < 3; ++i) {
    add_row_product(&m->pos[i], cs->derivative.pos + 6 * i, relative);
    add_row_product(&m->frame[0][i], cs->derivative.normal + 6 * i, relative);
  }
  add_row_product(&m->dist, cs->derivative.dist, relative);
  move_tangents(m->frame, cs, w, cs->from.side == 1 ? on_b : on_a);
}

LANES_INLINE void turn_twists(four_motions *m, const contact_twists *t, const column_screws *tile,
                              const column_screws *unmoved, const lanes *on_a, const lanes *on_b) {
  const lanes either = *on_b - *on_a;
  lanes w[3], v[3], behind_w[3], behind_v[3], part[3];
  for (int i = 0; i < 3; ++i) {
    w[i] = LANES_OF(tile->w[i]);
    v[i] = LANES_OF(tile->v[i]);
    behind_w[i] =
        (*on_b * t->twist_b->w[i] - *on_a * t->twist_a->w[i]) - either * LANES_OF(unmoved->w[i]);
    behind_v[i] =
        (*on_b * t->twist_b->v[i] - *on_a * t->twist_a->v[i]) - either * LANES_OF(unmoved->v[i]);
  }
  lanes3_cross(m->w, w, behind_w);
  lanes3_cross(m->v, w, behind_v);
  lanes3_cross(part, v, behind_w);
  lanes3_axpy(m->v, 1.0, part);
}

/* d (J delta) / dq_j for each component, in the order of friction.h */
LANES_INLINE void add_motion_change(lanes d_motion[MOTION_MAX], const contact_state *cs,
                                    const contact_twists *t, const four_motions *m) {
  lanes velocity[3];
  lanes3_clear(velocity);
  lanes3_subtract_cross(velocity, m->pos, t->relative.w);
  lanes3_add_cross(velocity, m->w, cs->contact->pos);
  lanes3_axpy(velocity, 1.0, m->v);
  for (int axis = 0; axis < 3; ++axis) {
    const double *along = cs->contact->frame + 3 * axis;
    lanes3_add_dot(d_motion + axis, t->velocity, m->frame[axis]);
    lanes3_add_dot(d_motion + axis, along, velocity);
    if (cs->contact->dim > 3) {
      lanes3_add_dot(d_motion + 3 + axis, t->relative.w, m->frame[axis]);
      lanes3_add_dot(d_motion + 3 + axis, along, m->w);
    }
  }
}

/* d (J delta + offsets) / dq_j. m is used first for the twists under v, then for those under delta,
 * which it holds at the end. */
LANES_INLINE void rows_change(lanes d_motion[MOTION_MAX], const contact_state *cs,
                              const column_screws *tile, int index, const lanes *on_a,
                              const lanes *on_b, four_motions *m) {
  const lanes none = {0.0, 0.0, 0.0, 0.0};
  for (int c = 0; c < MOTION_MAX; ++c) {
    d_motion[c] = none;
  }
  if (cs->knows_time) {
    turn_twists(m, &cs->time, tile, cs->time.unmoved + index, on_a, on_b);
    add_motion_change(d_motion, cs, &cs->time, m);
    for (int c = 0; c < MOTION_MAX; ++c) {
      d_motion[c] = cs->in_time[c > 0] * d_motion[c];
    }
  }
  turn_twists(m, &cs->delta, tile, cs->delta.unmoved + index, on_a, on_b);
  add_motion_change(d_motion, cs, &cs->delta, m);
  d_motion[0] += cs->gap * m->dist;
}

/* Derivatives of the offsets by the rates of four DOFs: relative velocity of B, along the axes of
 * the contact. */
LANES_INLINE void offset_rates(lanes out[MOTION_MAX], const contact_state *cs,
                               const column_screws *tile, const lanes *on_a, const lanes *on_b) {
  const lanes either = *on_b - *on_a;
  lanes w[3], velocity[3];
  for (int i = 0; i < 3; ++i) {
    w[i] = LANES_OF(tile->w[i]);
    velocity[i] = LANES_OF(tile->v[i]);
  }
  lanes3_add_cross(velocity, w, cs->contact->pos);
  for (int c = 0; c < MOTION_MAX; ++c) {
    const double *axis = cs->contact->frame + 3 * (c % 3);
    out[c] = (lanes){0.0, 0.0, 0.0, 0.0};
    lanes3_add_dot(out + c, axis, c < 3 ? velocity : w);
    out[c] *= either * cs->in_time[c > 0];
  }
}

/* d W / dq_j at fixed contact-frame forces: moment about the world origin, force */
LANES_INLINE void wrench_derivative(lanes moment[3], lanes force[3], const contact_state *cs,
                                    const four_motions *m) {
  lanes3_clear(moment);
  lanes3_clear(force);
  for (int axis = 0; axis < 3; ++axis) {
    lanes3_axpy(force, cs->contact->force[axis], m->frame[axis]);
    if (cs->contact->dim > 3) {
      lanes3_axpy(moment, cs->contact->force[3 + axis], m->frame[axis]);
    }
  }
  lanes3_add_cross(moment, m->pos, cs->force);
  lanes3_subtract_cross(moment, force, cs->contact->pos);
}

/* Stores the first `width` of four numbers; the row may end after them. */
LANES_INLINE void store(double *to, const lanes *values, int width) {
  if (width >= LANE_COUNT) {
    LANES_ANYWHERE(to) = *values;
    return;
  }
  for (int k = 0; k < width; ++k) {
    to[k] = (*values)[k];
  }
}

/* friction_row_of along four DOFs */
LANES_INLINE void store_row(double *to, const friction_row *row, const lanes motion[MOTION_MAX],
                            int width) {
  const lanes value = (row->normal * motion[0] + row->weight[0] * motion[row->component[0]]) +
                      row->weight[1] * motion[row->component[1]];
  store(to, &value, width);
}

LANES_INLINE void subtract(double *from, const lanes *values, int width) {
  if (width >= LANE_COUNT) {
    LANES_ANYWHERE(from) -= *values;
    return;
  }
  for (int k = 0; k < width; ++k) {
    from[k] -= (*values)[k];
  }
}

/* D[k][tile] -= sign S_k . dW for these DOFs k */
LANES_INLINE void add_wrench_rows(const dof_matrix *D, const kinematics *k, const lanes moment[3],
                                  const lanes force[3], int_list dofs, double sign, int column) {
  for (int i = 0; i < dofs.count; ++i) {
    const screw *S = k->dof_screw + dofs.at[i];
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    lanes3_add_dot(&sum, S->w, moment);
    lanes3_add_dot(&sum, S->v, force);
    sum *= sign;
    subtract(D->values + (size_t)D->place[dofs.at[i]] * (size_t)D->count + column, &sum,
             D->count - column);
  }
}

/* Adds the dependence on the distance to the rows of a contact that yields. */
static void add_yield(double *d_slack, size_t columns, const contact_state *cs, const lanes *dist,
                      int width) {
  for (int r = 0; r < cs->block->rows.count; ++r, d_slack += columns) {
    for (int k = 0; k < width && k < LANE_COUNT; ++k) {
      d_slack[k] += cs->yield[r] * (*dist)[k];
    }
  }
}

QD_MULTIVERSION
static void add_tile(const qd_workspace *w, sensitivity *s, const contact_state *cs,
                     const contact_dofs *dofs, double *d_slack, int tile) {
  const int column = LANE_COUNT * tile, width = s->q_count - column;
  const column_screws *screws = s->column_screws + tile;
  const lanes on_a = LANES_OF(s->on_a + column), on_b = LANES_OF(s->on_b + column);
  four_motions m;
  lanes d_motion[MOTION_MAX], rates[MOTION_MAX], moment[3], force[3];
  const int by_v = cs->knows_time && s->v_count > 0;
  double *rows = d_slack + column;
  move_contact(&m, cs, screws, &on_a, &on_b);
  rows_change(d_motion, cs, screws, tile, &on_a, &on_b, &m);
  if (by_v) {
    offset_rates(rates, cs, screws, &on_a, &on_b);
  }
  for (int r = 0; r < cs->block->rows.count; ++r, d_slack += s->columns) {
    store_row(d_slack + column, cs->block->rows.row + r, d_motion, width);
    if (by_v) {
      store_row(d_slack + s->q_count + column, cs->block->rows.row + r, rates, width);
    }
  }
  if (cs->yields) {
    add_yield(rows, (size_t)s->columns, cs, &m.dist, width);
  }
  wrench_derivative(moment, force, cs, &m);
  add_wrench_rows(&s->D, &w->kinematics, moment, force, dofs->on[0], -1.0, column);
  add_wrench_rows(&s->D, &w->kinematics, moment, force, dofs->on[1], 1.0, column);
}

/* Marks the columns of a body's path in on_a or on_b, and appends their tiles to `count` others;
 * returns the new number. */
static int mark_path(sensitivity *s, const qd_model *model, int body, double *on, int count) {
  const int_list chain = body_chain(model, body);
  for (int i = 0; i < chain.count; ++i) {
    const int tile = s->place[chain.at[i]] / LANE_COUNT;
    int known = 0;
    for (int k = count - 1; k >= 0 && !known; --k) {
      known = s->tiles[k] == tile;
    }
    if (!known) {
      s->tiles[count++] = tile;
    }
    on[s->place[chain.at[i]]] = 1.0;
  }
  return count;
}

void contact_derivative_add(const solved_step *solved, const island *one, int index) {
  const qd_model *model = solved->model;
  sensitivity *s = &solved->w->sensitivity;
  contact_state cs;
  contact_state_fill(&cs, solved->w, index);
  const contact_dofs dofs = contact_dofs_find(model, cs.contact->body_a, cs.contact->body_b);
  double *d_slack = s->d_slack + (size_t)(cs.block->row - one->row) * (size_t)s->columns;
  int count = mark_path(s, model, cs.contact->body_a, s->on_a, 0);
  count = mark_path(s, model, cs.contact->body_b, s->on_b, count);
  for (int i = 0; i < count; ++i) {
    const size_t at = LANE_COUNT * (size_t)s->tiles[i];
    add_tile(solved->w, s, &cs, &dofs, d_slack, s->tiles[i]);
    memset(s->on_a + at, 0, LANE_COUNT * sizeof(double));
    memset(s->on_b + at, 0, LANE_COUNT * sizeof(double));
  }
}

/* Gathers the screws of the columns' DOFs in tiles of four. */
static void gather(column_screws *out, const sensitivity *s, const screw *of_dof) {
  const size_t tiles = ((size_t)s->q_count + LANE_COUNT - 1) / LANE_COUNT;
  memset(out, 0, tiles * sizeof *out);
  for (int d = 0; d < s->q_count; ++d) {
    const screw *S = of_dof + s->dofs[d];
    column_screws *tile = out + d / LANE_COUNT;
    for (int axis = 0; axis < 3; ++axis) {
      tile->w[axis][d % LANE_COUNT] = S->w[axis];
      tile->v[axis][d % LANE_COUNT] = S->v[axis];
    }
  }
}

void contact_derivative_prepare(qd_workspace *w) {
  sensitivity *s = &w->sensitivity;
  const size_t tiles = ((size_t)s->q_count + LANE_COUNT - 1) / LANE_COUNT;
  memset(s->on_a, 0, LANE_COUNT * tiles * sizeof(double));
  memset(s->on_b, 0, LANE_COUNT * tiles * sizeof(double));
  gather(s->column_screws, s, w->kinematics.dof_screw);
  gather(s->unmoved, s, w->point.delta.unmoved);
  if (w->problem.report.timed > 0) {
    gather(s->unmoved_in_time, s, w->problem.state.velocity.unmoved);
  }
}
