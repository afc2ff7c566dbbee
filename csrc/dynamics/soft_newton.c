#include "dynamics/soft_newton.h"

#include "dynamics/soft_mixing.h"
#include "mechanics/pairs/soft_pairs.h"

/* A program's wrenches are true if they are off by no more than this share of the largest. */
#define WRENCH_TOLERANCE 1e-9
/* And friction's discs, of the forces that they are made of. */
#define DISC_TOLERANCE 1e-7
/* A displacement along which the energy's slope comes back to this share of what it was. */
#define SLOPE_LEFT 0.1
#define SEARCHES 10
/* Errors that grow by more than this say that what was learned before is of no use. */
#define GROWN 4.0

int soft_newton_begin(qd_workspace *w, const qd_model *model) {
  soft_contact_begin(&w->problem.soft, model, &w->collision);
  return w->problem.soft.count > 0;
}

qd_status soft_newton_evaluate(qd_workspace *w, const qd_model *model, const qd_step_options *o) {
  return soft_contact_evaluate(&w->problem.soft, model, &w->kinematics, o);
}

static double dot6(const double a[6], const double b[6]) {
  double sum = 0.0;
  for (int i = 0; i < 6; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/* Motion of a pair by a change of the displacement, of its centre. */
static void motion_by(double motion[6], const qd_workspace *w, const qd_model *model,
                      const soft_pair *pair, const double *delta) {
  screw twist[2];
  soft_pair_twists(twist, model, &w->kinematics, w->collision.contact + pair->contact, delta);
  soft_relative_motion(motion, pair, pair->centre, twist);
}

static int takes_part(const qd_workspace *w, const soft_pair *pair) {
  return pair->contact >= 0 && w->problem.islands.of_contact[pair->contact] >= 0;
}

/* The program's friction on the second body, about the centre where it was evaluated. */
static void sum_friction(qd_workspace *w, soft_pair *pair) {
  const problem *p = &w->problem;
  memset(pair->friction, 0, sizeof pair->friction);
  for (int e = pair->first; e < pair->first + pair->count; ++e) {
    const soft_element *at = p->soft.element + e;
    double force[3] = {0.0, 0.0, 0.0}, arm[3], moment[3];
    if (at->row < 0) {
      continue;
    }
    vec3_axpy(force, p->dual[at->row + 1], at->frame + 3);
    vec3_axpy(force, p->dual[at->row + 2], at->frame + 6);
    vec3_sub(arm, at->pos, pair->centre);
    vec3_cross(moment, arm, force);
    if (at->spin > 0.0) {
      vec3_axpy(moment, at->spin * p->dual[at->row + 3], at->frame);
    }
    vec3_axpy(pair->friction, 1.0, force);
    vec3_axpy(pair->friction + 3, 1.0, moment);
  }
}

/* (H d)'d of a pair, *along: its wrench times d */
static double pair_curvature(const qd_workspace *w, const qd_model *model, const soft_pair *pair,
                             const double *step, double *along) {
  double d[6], sum = 0.0;
  motion_by(d, w, model, pair, step);
  for (int i = 0; i < 6; ++i) {
    sum += d[i] * dot6(pair->hessian + 6 * i, d);
  }
  *along = pair->is_active ? dot6(pair->wrench, d) : 0.0;
  return pair->is_active ? sum : 0.0;
}

/* A program's slope along its step: how it begins, and what its multipliers of contacts that keep
 * pairs from going deeper leave of it at the end. */
typedef struct slope {
  double own;     /* step'Q step, without the pairs */
  double pairs;   /* the same of the pairs */
  double wrench;  /* of the pairs where the step begins, times the step */
  double bounded; /* <= 0 */
} slope;

static double row_times_step(const problem *p, const island *one, const tile_rows *rows, int row,
                             const double *step) {
  double sum = 0.0;
  for (int t = rows->start[row]; t < rows->start[row + 1]; ++t) {
    for (int lane = 0; lane < 4; ++lane) {
      const int column = 4 * rows->tiles[t] + lane;
      if (column < one->variable_count) {
        sum += rows->values[4 * (size_t)t + (size_t)lane] *
               step[p->dof_of_variable[one->variable + column]];
      }
    }
  }
  return sum;
}

static slope slope_of(qd_workspace *w, const qd_model *model, const double *step) {
  const problem *p = &w->problem;
  slope out = {0};
  for (int i = 0; i < p->islands.count; ++i) {
    const island *one = p->islands.island + i;
    for (int j = 0; j < one->variable_count; ++j) {
      out.own +=
          step[p->dof_of_variable[one->variable + j]] * row_times_step(p, one, &one->Q, j, step);
    }
    for (int c = one->contact; c < one->contact + one->contact_count; ++c) {
      const int index = p->islands.contact_order[c];
      const contact_block *block = p->block + index;
      if (model->pair_soft[w->collision.contact[index].pair] >= 0 && block->rows.count > 0) {
        out.bounded +=
            p->dual[block->row] * row_times_step(p, one, &one->G, block->row - one->row, step);
      }
    }
  }
  out.bounded = fmin(out.bounded, 0.0);
  for (int i = 0; i < model->soft_pair_count; ++i) {
    const soft_pair *pair = p->soft.pair + i;
    double along = 0.0;
    if (takes_part(w, pair)) {
      out.pairs += pair_curvature(w, model, pair, step, &along);
      out.wrench += along;
    }
  }
  out.own -= out.pairs;
  return out;
}

/* The slope of the whole after this share of the step, where patches have been evaluated. */
static double slope_at(const qd_workspace *w, const qd_model *model, const slope *s, double share,
                       const double *step) {
  double there = s->bounded - (1.0 - share) * s->own - s->pairs + s->wrench;
  for (int i = 0; i < model->soft_pair_count; ++i) {
    double along = 0.0;
    if (takes_part(w, w->problem.soft.pair + i)) {
      pair_curvature(w, model, w->problem.soft.pair + i, step, &along);
      there -= along;
    }
  }
  return there;
}

static void move_to(soft_contact *s, const qd_model *model, const double *from, double share,
                    const double *step) {
  for (int i = 0; i < model->nv; ++i) {
    s->delta[i] = from[i] + share * step[i];
  }
}

/* Goes back along the step to where the slope is nearly gone, by regula falsi. Returns 0 if it is
 * so at the end. */
static int search_line(qd_workspace *w, const qd_model *model, const qd_step_options *o,
                       const slope *s, double *from, const double *step) {
  soft_contact *soft = &w->problem.soft;
  const double enough = SLOPE_LEFT * (s->own + s->pairs - s->bounded);
  double low = 0.0, at_low = -(s->own + s->pairs - s->bounded), high = 1.0;
  double at_high = slope_at(w, model, s, 1.0, step);
  for (int i = 0; i < SEARCHES && at_high > enough; ++i) {
    double share = (low * at_high - high * at_low) / (at_high - at_low);
    share = fmin(fmax(share, low + 0.1 * (high - low)), high - 0.1 * (high - low));
    move_to(soft, model, from, share, step);
    soft_contact_wrenches(soft, model, &w->kinematics, o);
    const double there = slope_at(w, model, s, share, step);
    if (fabs(there) <= enough) {
      return 1;
    }
    if (there > 0.0) {
      high = share;
      at_high = there;
    } else {
      low = share;
      at_low = there;
    }
  }
  return high < 1.0;
}

static void think(soft_thought *out, const qd_workspace *w, const qd_model *model,
                  const soft_pair *pair, const double *step) {
  double d[6];
  memset(out, 0, sizeof *out);
  if (!pair->is_active) {
    return;
  }
  motion_by(d, w, model, pair, step);
  vec3_copy(out->centre, pair->centre);
  out->pressed = pair->pressed;
  for (int i = 0; i < 6; ++i) {
    out->wrench[i] = pair->wrench[i] - dot6(pair->hessian + 6 * i, d);
  }
}

/* How far a pair's wrench is from what the program thought, N. */
static double error_of(const soft_pair *pair, const soft_thought *by) {
  double force[3], moment[3], arm[3], part[3];
  vec3_sub(force, pair->wrench, by->wrench);
  vec3_sub(arm, pair->centre, by->centre);
  vec3_cross(part, arm, pair->wrench);
  vec3_add(moment, pair->wrench + 3, part);
  vec3_sub(moment, moment, by->wrench + 3);
  const double lever =
      by->pressed > 0.0 && pair->is_active ? vec3_norm(moment) / pair->length : 0.0;
  return vec3_norm(force) + lever;
}

int soft_newton_advance(qd_workspace *w, const qd_model *model, const qd_step_options *o,
                        const double *delta, int refine) {
  soft_contact *s = &w->problem.soft;
  double *step = s->step, *from = s->from, most = 0.0, worst = 0.0, discs = 0.0;
  soft_thought *thoughts = s->thought;
  ++s->programs;
  memcpy(from, s->delta, (size_t)model->nv * sizeof(double));
  for (int i = 0; i < model->nv; ++i) {
    step[i] = delta[i] - s->delta[i];
  }
  const slope along = slope_of(w, model, step);
  for (int i = 0; i < model->soft_pair_count; ++i) {
    if (takes_part(w, s->pair + i)) {
      think(thoughts + i, w, model, s->pair + i, step);
      sum_friction(w, s->pair + i);
    }
  }
  memcpy(s->delta, delta, (size_t)model->nv * sizeof(double));
  soft_contact_wrenches(s, model, &w->kinematics, o);
  for (int i = 0; i < model->soft_pair_count; ++i) {
    if (takes_part(w, s->pair + i)) {
      worst = fmax(worst, error_of(s->pair + i, thoughts + i));
      most = fmax(most, fmax(vec3_norm(s->pair[i].wrench), vec3_norm(thoughts[i].wrench)));
      discs = fmax(discs, s->pair[i].count > 0
                              ? fabs(s->pair[i].pressed - thoughts[i].pressed) / thoughts[i].pressed
                              : 0.0);
    }
  }
  if (s->is_full) {
    return 1; /* there is no room for what it has met */
  }
  s->bounded = along.bounded < 0.0 && isinf(o->kappa);
  s->converged = worst <= WRENCH_TOLERANCE * most && discs <= DISC_TOLERANCE;
  if (s->converged && refine && !s->refined) {
    s->refined = 1;
    return 0;
  }
  if (s->converged || s->programs >= SOFT_PROGRAMS_MOST) {
    return 1;
  }
  soft_mixing_note(s, model, from, step);
  if (search_line(w, model, o, &along, from, step) || worst > GROWN * s->worst) {
    soft_mixing_forget(s);
  } else {
    soft_mixing_apply(&w->problem, model, step, s->delta);
  }
  s->worst = worst;
  return 0;
}

int soft_newton_report(qd_workspace *w, const qd_model *model) {
  collision *c = &w->collision;
  int count = 0;
  for (int i = 0; i < model->soft_pair_count; ++i) {
    const soft_pair *pair = w->problem.soft.pair + i;
    if (!takes_part(w, pair) || !pair->is_active || c->count + count >= c->capacity) {
      continue;
    }
    qd_contact *out = c->contact + c->count + count++;
    double on_second[6];
    *out = c->contact[pair->contact];
    out->dim = 6;
    vec3_copy(out->pos, pair->centre);
    vec3_add(on_second, pair->wrench, pair->friction);
    vec3_add(on_second + 3, pair->wrench + 3, pair->friction + 3);
    vec3_copy(out->frame, pair->wrench);
    vec3_normalize(out->frame);
    double axis[3];
    contact_tangent_axis(axis, model, out->frame);
    vec3_cross(out->frame + 3, axis, out->frame);
    vec3_normalize(out->frame + 3);
    vec3_cross(out->frame + 6, out->frame, out->frame + 3);
    for (int k = 0; k < 3; ++k) {
      out->force[k] = vec3_dot(out->frame + 3 * k, on_second);
      out->force[3 + k] = vec3_dot(out->frame + 3 * k, on_second + 3);
    }
  }
  return count;
}
