#include "dynamics/soft_mixing.h"

#include "dynamics/problem/parts.h"

/* Of a change, what the others leave of it: less is rounding. */
#define PARALLEL 1e-6

static double *change_of_step(const soft_contact *s, const qd_model *model, int k) {
  return s->past + (size_t)(2 * k) * (size_t)model->nv;
}

static double *change_of_place(const soft_contact *s, const qd_model *model, int k) {
  return s->past + (size_t)(2 * k + 1) * (size_t)model->nv;
}

void soft_mixing_forget(soft_contact *s) {
  s->past_count = s->past_next = 0;
  s->noted = 0;
}

void soft_mixing_note(soft_contact *s, const qd_model *model, const double *from,
                      const double *step) {
  if (s->noted) {
    double *d_step = change_of_step(s, model, s->past_next);
    double *d_place = change_of_place(s, model, s->past_next);
    for (int i = 0; i < model->nv; ++i) {
      d_step[i] = step[i] - s->last_step[i];
      d_place[i] = from[i] - s->last_from[i];
    }
    s->past_next = (s->past_next + 1) % SOFT_MEMORY;
    s->past_count += s->past_count < SOFT_MEMORY;
  }
  memcpy(s->last_step, step, (size_t)model->nv * sizeof(double));
  memcpy(s->last_from, from, (size_t)model->nv * sizeof(double));
  s->noted = 1;
}

/* Over an island's DOFs, each by its own stiffness in the program. */
static double product(const problem *p, const island *one, const double *a, const double *b) {
  double sum = 0.0;
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    sum += *cost_entry(one, i, i) * a[dof] * b[dof];
  }
  return sum;
}

static void subtract(const problem *p, const island *one, double *from, double part,
                     const double *what) {
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    from[dof] -= part * what[dof];
  }
}

/* Weights that make |step - changes of it| least (Anderson 1965), the newest change first. */
static void mix_island(const problem *p, const qd_model *model, const island *one,
                       const double *step, double *next) {
  const soft_contact *s = &p->soft;
  double *own_step[SOFT_MEMORY], *own_place[SOFT_MEMORY];
  int count = 0;
  for (int k = 0; k < s->past_count; ++k) {
    const int at = (s->past_next + SOFT_MEMORY - 1 - k) % SOFT_MEMORY;
    double *d_step = s->mixed + (size_t)(2 * k) * (size_t)model->nv;
    double *d_place = d_step + model->nv;
    memcpy(d_step, change_of_step(s, model, at), (size_t)model->nv * sizeof(double));
    memcpy(d_place, change_of_place(s, model, at), (size_t)model->nv * sizeof(double));
    const double size = product(p, one, d_step, d_step);
    for (int j = 0; j < count; ++j) {
      const double part =
          product(p, one, own_step[j], d_step) / product(p, one, own_step[j], own_step[j]);
      subtract(p, one, d_step, part, own_step[j]);
      subtract(p, one, d_place, part, own_place[j]);
    }
    const double left = product(p, one, d_step, d_step);
    if (!(left > PARALLEL * PARALLEL * size)) {
      continue;
    }
    own_step[count] = d_step;
    own_place[count++] = d_place;
    const double weight = product(p, one, d_step, step) / left;
    subtract(p, one, next, weight, d_step);
    subtract(p, one, next, weight, d_place);
  }
}

void soft_mixing_apply(const problem *p, const qd_model *model, const double *step, double *next) {
  for (int i = 0; i < p->islands.count; ++i) {
    if (p->islands.island[i].soft_pairs > 0) {
      mix_island(p, model, p->islands.island + i, step, next);
    }
  }
}
