#include "dynamics/pressure_newton.h"

#include "base/lanes.h"
#include "base/rounding.h"
#include "dynamics/pressure_hold.h"
#include "dynamics/pressure_line.h"
#include "dynamics/problem/pressure_friction.h"

/* Extrapolations that are longer than the program's step, and than SHORT (lengths and rad), are cut
 * to the step's length in the first CUT_PROGRAMS programs, and then left out. Of 1920 steps of
 * bench_soft_steps 45 take over ten programs and 16 do not converge; with SHORT 0 or 1, 56 and 21.
 */
#define CUT_PROGRAMS 10
#define SHORT 0.1
/* A cut extrapolation leads back if less than half of the program's step remains. It oscillates if
 * the one before led back too, and the step is no shorter than this share of the last one. */
#define SHORTER 0.7
/* Steps shorter than this, in lengths and rad, separate no pair. */
#define NEAR 0.05

int pressure_newton_begin(qd_workspace *w, const qd_model *model, const double *bristle) {
  pressure_contact_begin(&w->problem.soft, model, &w->collision, bristle);
  return w->problem.soft.count > 0;
}

qd_status pressure_newton_evaluate(qd_workspace *w) {
  return pressure_contact_evaluate(&w->problem.soft);
}

/* ---------------------------------------------------------------- a program's prediction */

/* The program's friction on the second body, about the centre of the evaluation. */
static void sum_friction(qd_workspace *w, soft_pair *pair) {
  const problem *p = &w->problem;
  memset(pair->friction, 0, sizeof pair->friction);
  for (int e = pair->first; e < pair->first + pair->count; ++e) {
    const pressure_element *at = p->soft.element + e;
    double force[3] = {0.0, 0.0, 0.0}, arm[3], moment[3];
    if (at->row < 0) {
      continue;
    }
    vec3_axpy(force, p->solution.dual[at->row + 1], at->frame + 3);
    vec3_axpy(force, p->solution.dual[at->row + 2], at->frame + 6);
    vec3_sub(arm, at->pos, pair->centre);
    vec3_cross(moment, arm, force);
    if (at->spin > 0.0) {
      vec3_axpy(moment, at->spin * p->solution.dual[at->row + 3], at->frame);
    }
    vec3_axpy(pair->friction, 1.0, force);
    vec3_axpy(pair->friction + 3, 1.0, moment);
  }
}

/* The force on a moving body, in a load. */
static const double *force_in(const soft_pair *pair, const double load[PRESSURE_NUMBERS]) {
  return load + (pair->side[0].moves ? 0 : 6);
}

static void think(pressure_thought *out, const qd_workspace *w, const soft_pair *pair,
                  const double *step) {
  double d[PRESSURE_NUMBERS];
  memset(out, 0, sizeof *out);
  if (!pair->is_active) {
    return;
  }
  pressure_line_numbers(d, w, pair, step);
  out->pressed = pair->pressed;
  for (int i = 0; i < PRESSURE_NUMBERS; ++i) {
    out->load[i] =
        pair->load[i] - dot_product(pair->hessian + PRESSURE_NUMBERS * i, d, PRESSURE_NUMBERS);
  }
  out->presses = vec3_dot(force_in(pair, out->load), force_in(pair, pair->load)) > 0.0;
}

/* ---------------------------------------------------------------- its error */

/* Error of the predicted load of a body, N: of the force, and of the moment about the patch's
 * centre divided by a length. */
static double load_error(const soft_pair *pair, const pressure_thought *by, int side) {
  double force[3], moment[3], arm[3];
  vec3_sub(force, pair->load + 6 * side, by->load + 6 * side);
  if (!pair->is_active || by->pressed == 0.0) {
    return vec3_norm(force);
  }
  vec3_sub(moment, pair->load + 6 * side + 3, by->load + 6 * side + 3);
  vec3_sub(arm, pair->centre, pair->side[side].moved.pos);
  vec3_add_cross(moment, -1.0, arm, force);
  return vec3_norm(force) + vec3_norm(moment) / pair->length;
}

static double error_of(const soft_pair *pair, const pressure_thought *by) {
  double worst = 0.0;
  for (int b = 0; b < 2; ++b) {
    worst = pair->side[b].moves ? fmax(worst, load_error(pair, by, b)) : worst;
  }
  return worst;
}

/* Relative error of discs: by the pressure, and by the difference between the sliding and its
 * prediction. */
static double disc_error(const problem *p, const soft_pair *pair, const pressure_thought *by) {
  double worst = fabs(pair->pressed - by->pressed) / by->pressed;
  for (int e = pair->first; e < pair->first + pair->count; ++e) {
    const pressure_element *at = p->soft.element + e;
    double squares = 0.0;
    for (int r = 1; at->row >= 0 && r < pressure_element_rows(at); ++r) {
      squares += p->solution.slack[at->row + r] * p->solution.slack[at->row + r];
    }
    const double off = fabs(sqrt(squares) - at->slid) / pair->length;
    worst = fmax(worst, at->row >= 0 ? off : 0.0);
  }
  return worst;
}

/* Whether loads and discs are as predicted, up to rounding of the caller's numbers, and whether
 * guards act. */
static void judge(qd_workspace *w) {
  pressure_contact *s = &w->problem.soft;
  double most = 0.0, worst = 0.0, discs = 0.0;
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    const soft_pair *pair = s->pair + i;
    const pressure_thought *by = s->thought + i;
    if (pressure_takes_part(w, pair)) {
      worst = fmax(worst, error_of(pair, by));
      most = fmax(most, fmax(vec3_norm(pair->wrench), vec3_norm(force_in(pair, by->load))));
      if (pair->count > 0) {
        discs = fmax(discs, disc_error(&w->problem, pair, by));
      }
    }
  }
  s->converged = worst <= CALLERS_ROUNDING * most && discs <= CALLERS_ROUNDING;
  s->bounded = isinf(s->options->kappa) && pressure_line_guards(w) > NO_FORCE * most;
}

/* 1 if a pair has separated although the program predicted pressure. */
static int has_parted(const pressure_contact *s) {
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    if (s->thought[i].presses && !s->pair[i].is_active) {
      return 1;
    }
  }
  return 0;
}

/* ---------------------------------------------------------------- the next starting point */

/* The share of an extrapolation that is used. */
static double jump_share(const qd_workspace *w, double own) {
  const double more = pressure_hold_reach(w, w->problem.soft.jump).farthest;
  if (more <= fmax(own, SHORT)) {
    return 1.0;
  }
  return w->problem.soft.programs < CUT_PROGRAMS ? own / more : 0.0;
}

/* Makes the step plus this share of the extrapolation the jump. Returns 1 if it leads back to the
 * program's start for the second time. Programs whose steps lead away from their fixed point would
 * oscillate around it; without extrapolation, their steps lead to where the patch or its friction
 * differs. */
static int cut_jump(qd_workspace *w, double share, double own) {
  pressure_contact *s = &w->problem.soft;
  for (int i = 0; i < s->model->nv; ++i) {
    s->jump[i] = s->step[i] + share * s->jump[i];
  }
  const int back = share < 1.0 && pressure_hold_reach(w, s->jump).farthest < 0.5 * own;
  const int again = back && s->led_back > 0.0 && own > SHORTER * s->led_back;
  s->led_back = back ? own : 0.0;
  return again;
}

/* Moves on from the end of the step by the dependence of patches and friction that its program left
 * out, to first order, unless that separates pairs that are in contact at the end. */
static void jump(qd_workspace *w) {
  pressure_contact *s = &w->problem.soft;
  const solved_step solved = {.model = s->model, .w = w, .options = s->options};
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    s->thought[i].presses = pressure_takes_part(w, s->pair + i) && s->pair[i].is_active;
  }
  const int found = pressure_derivative_jump(&solved, s->step, s->jump);
  pressure_line_move(s, s->from, 1.0, s->step);
  if (!found) {
    return;
  }
  const double own = pressure_hold_reach(w, s->step).farthest;
  if (cut_jump(w, jump_share(w, own), own)) {
    return;
  }
  pressure_line_move(s, s->from, 1.0, s->jump);
  if (own > NEAR) {
    pressure_contact_wrenches(s);
    if (has_parted(s)) {
      pressure_line_move(s, s->from, 1.0, s->step);
    }
  }
}

/* 1 if the next program starts from the same point and holds the bodies together, because the step
 * is too long for its model. */
static int stays(qd_workspace *w, const slope *along) {
  pressure_contact *s = &w->problem.soft;
  const reach far = pressure_hold_reach(w, s->step);
  if (s->holds >= PRESSURE_HOLDS_MOST) {
    pressure_line_move(s, s->from, 1.0, s->step);
    pressure_contact_wrenches(s);
    return 0;
  }
  if (pressure_hold_far(s, &far, along)) {
    return 1;
  }
  pressure_line_move(s, s->from, 1.0, s->step);
  pressure_contact_wrenches(s);
  if (!has_parted(s)) {
    return 0;
  }
  pressure_hold_parted(s, &far, along);
  pressure_line_move(s, s->from, 0.0, s->step);
  return 1;
}

int pressure_newton_advance(qd_workspace *w, const double *delta, int refine) {
  pressure_contact *s = &w->problem.soft;
  ++s->programs;
  memcpy(s->from, s->delta, (size_t)s->model->nv * sizeof(double));
  for (int i = 0; i < s->model->nv; ++i) {
    s->step[i] = delta[i] - s->delta[i];
  }
  const slope along = pressure_line_slope(w, s->step);
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    s->thought[i].presses = 0;
    if (pressure_takes_part(w, s->pair + i)) {
      think(s->thought + i, w, s->pair + i, s->step);
      sum_friction(w, s->pair + i);
    }
  }
  if (stays(w, &along)) {
    return 0;
  }
  judge(w);
  if (s->is_full) {
    return 1; /* no room for the polygons */
  }
  if (s->converged && refine && !s->refined) {
    s->refined = 1;
    return 0;
  }
  if (s->converged || s->programs >= PRESSURE_PROGRAMS_MOST) {
    return 1;
  }
  if (!pressure_line_search(w, &along)) {
    jump(w);
  }
  pressure_hold_less(s);
  return 0;
}

void pressure_newton_settle(const qd_workspace *w, double *bristle) {
  const problem *p = &w->problem;
  for (int i = 0; bristle != NULL && i < p->model->pair.soft_count; ++i) {
    pressure_friction_settle(bristle + QD_BRISTLES * i, &p->soft, p->soft.pair + i,
                             p->solution.dual);
  }
}

int pressure_newton_report(qd_workspace *w) {
  collision *c = &w->collision;
  int count = 0;
  for (int i = 0; i < w->problem.model->pair.soft_count; ++i) {
    const soft_pair *pair = w->problem.soft.pair + i;
    if (!pressure_takes_part(w, pair) || !pair->is_active || c->count + count >= c->capacity) {
      continue;
    }
    qd_contact *out = c->contact + c->count + count++;
    double on_second[6], normal[3];
    *out = c->contact[pair->contact];
    out->dim = 6;
    vec3_copy(out->pos, pair->centre);
    vec3_add(on_second, pair->wrench, pair->friction);
    vec3_add(on_second + 3, pair->wrench + 3, pair->friction + 3);
    vec3_copy(normal, pair->wrench);
    vec3_normalize(normal);
    pressure_frame(out->frame, w->problem.model, normal);
    for (int k = 0; k < 3; ++k) {
      out->force[k] = vec3_dot(out->frame + 3 * k, on_second);
      out->force[3 + k] = vec3_dot(out->frame + 3 * k, on_second + 3);
    }
  }
  return count;
}
