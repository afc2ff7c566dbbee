#include "dynamics/pressure_line.h"

#include "base/lanes.h"

/* The search ends where the slope of the energy is this share of the initial slope. */
#define SLOPE_LEFT 0.1
#define SEARCHES 10

void pressure_line_numbers(double numbers[PRESSURE_NUMBERS], const qd_workspace *w,
                           const soft_pair *pair, const double *change) {
  screw twist[2];
  pressure_pair_twists(twist, w->problem.model, &w->kinematics,
                       w->collision.contact + pair->contact, change);
  pressure_numbers(numbers, pair->side, twist);
  pressure_numbers(numbers + 6, pair->side + 1, twist + 1);
}

void pressure_line_move(pressure_contact *s, const double *from, double share, const double *step) {
  for (int i = 0; i < s->model->nv; ++i) {
    s->delta[i] = from[i] + share * step[i];
  }
}

/* ---------------------------------------------------------------- slopes */

/* d'Hd of a pair, *along: its load times d */
static double pair_curvature(const qd_workspace *w, const soft_pair *pair, const double *step,
                             double *along) {
  double d[PRESSURE_NUMBERS], sum = 0.0;
  *along = 0.0;
  if (!pressure_takes_part(w, pair) || !pair->is_active) {
    return 0.0;
  }
  pressure_line_numbers(d, w, pair, step);
  for (int i = 0; i < PRESSURE_NUMBERS; ++i) {
    sum += d[i] * dot_product(pair->hessian + PRESSURE_NUMBERS * i, d, PRESSURE_NUMBERS);
  }
  *along = dot_product(pair->load, d, PRESSURE_NUMBERS);
  return sum;
}

/* The block of a contact that guards a pair; NULL: no guard. */
static const contact_block *guard_at(const qd_workspace *w, int index) {
  const contact_block *block = w->problem.block + index;
  const int guards = w->problem.model->pair.soft[w->collision.contact[index].pair] >= 0;
  return guards && block->rows.count > 0 ? block : NULL;
}

static int has_soft_pairs(const qd_workspace *w, const island *one) {
  for (int c = one->contact; c < one->contact + one->contact_count; ++c) {
    const int index = w->problem.islands.contact_order[c];
    if (w->problem.model->pair.soft[w->collision.contact[index].pair] >= 0) {
      return 1;
    }
  }
  return 0;
}

static void add_island(slope *out, const qd_workspace *w, const island *one, const double *step) {
  const problem *p = &w->problem;
  for (int j = 0; j < one->variable_count; ++j) {
    const int dof = p->dof_of_variable[one->variable + j];
    out->own += dof < 0 ? 0.0 : step[dof] * problem_row_along(p, one, &one->Q, j, step);
  }
  for (int c = one->contact; c < one->contact + one->contact_count; ++c) {
    const contact_block *block = guard_at(w, p->islands.contact_order[c]);
    if (block != NULL) {
      out->bounded += p->solution.dual[block->row] *
                      problem_row_along(p, one, &one->G, block->row - one->row, step);
    }
  }
}

slope pressure_line_slope(const qd_workspace *w, const double *step) {
  const problem *p = &w->problem;
  slope out = {0.0, 0.0, 0.0, 0.0};
  for (int i = 0; i < p->islands.count; ++i) {
    if (has_soft_pairs(w, p->islands.island + i)) {
      add_island(&out, w, p->islands.island + i, step);
    }
  }
  out.bounded = fmin(out.bounded, 0.0);
  for (int i = 0; i < p->model->pair.soft_count; ++i) {
    double along;
    out.pairs += pair_curvature(w, p->soft.pair + i, step, &along);
    out.load += along;
  }
  out.own -= out.pairs;
  return out;
}

double pressure_line_guards(const qd_workspace *w) {
  const problem *p = &w->problem;
  double sum = 0.0;
  for (int i = 0; i < p->islands.count; ++i) {
    const island *one = p->islands.island + i;
    for (int c = one->contact; c < one->contact + one->contact_count; ++c) {
      const contact_block *block = guard_at(w, p->islands.contact_order[c]);
      sum += block != NULL ? p->solution.dual[block->row] : 0.0;
    }
  }
  return sum;
}

/* ---------------------------------------------------------------- the search */

/* The slope of the total cost after this share of the step, where patches have been evaluated. */
static double slope_at(const qd_workspace *w, const slope *s, double share, const double *step) {
  double there = s->bounded - (1.0 - share) * s->own - s->pairs + s->load;
  for (int i = 0; i < w->problem.model->pair.soft_count; ++i) {
    double along;
    pair_curvature(w, w->problem.soft.pair + i, step, &along);
    there -= along;
  }
  return there;
}

int pressure_line_search(qd_workspace *w, const slope *s) {
  pressure_contact *soft = &w->problem.soft;
  const double *step = soft->step, start = -(s->own + s->pairs - s->bounded);
  const double enough = -SLOPE_LEFT * start;
  double low = 0.0, at_low = start, high = 1.0;
  double at_high = slope_at(w, s, 1.0, step);
  for (int i = 0; i < SEARCHES && at_high > enough; ++i) {
    double share = (low * at_high - high * at_low) / (at_high - at_low);
    share = fmin(fmax(share, low + 0.1 * (high - low)), high - 0.1 * (high - low));
    pressure_line_move(soft, soft->from, share, step);
    pressure_contact_wrenches(soft);
    const double there = slope_at(w, s, share, step);
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
