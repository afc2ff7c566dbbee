/* Derivatives of a step along directions and back from cotangents: one solve with the factor that
 * qd_differentiate keeps for four of them, and no matrix A or B. */
#include <math.h>
#include <string.h>

#include "dynamics/derivatives/differential.h"
#include "dynamics/step.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"
#include "mechanics/retraction.h"
#include "numerics/conic/conic.h"

/* ---------------------------------------------------------------- the step and its factor */

/* A contact without force on a certified active set stays without force: its rows do not count. */
static void choose_contacts(const solved_step *s, const island *one, int exact_active_set) {
  const problem *p = &s->w->problem;
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const int index = p->islands.contact_order[i];
    s->w->differential.counts[index] = problem_contact_counts(p, index, exact_active_set);
  }
}

qd_status qd_differentiate(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                           const qd_step_input *input, qd_step_result *result) {
  const step_columns kept = {0, 0};
  qd_status status = step_compute(model, w, options, input, &kept, result);
  if (status != QD_OK) {
    return status;
  }
  const solved_step s = {model, w, options, input, result->delta};
  const problem *p = &w->problem;
  result->derivative_exact =
      result->relaxed_contacts == 0 && result->softened == 0; /* offsets that do not move */
  memset(w->differential.counts, 0, (size_t)w->collision.count * sizeof(int));
  for (int i = 0; i < p->islands.count; ++i) {
    const island *one = p->islands.island + i;
    int exact = 1;
    status = conic_sensitivity_prepare(one->cone_workspace, &one->info, &exact);
    if (status != QD_OK) {
      result->info.status = status;
      return status;
    }
    result->derivative_exact &= exact;
    choose_contacts(&s, one, isinf(options->kappa) && exact);
  }
  step_point_compute(&w->point, &s);
  w->differential.poses_known = w->differential.sizes_known = 0;
  return QD_OK;
}

/* ---------------------------------------------------------------- directions */

static void solve_forward(const qd_workspace *w, int count) {
  const problem *p = &w->problem;
  const differential *d = &w->differential;
  for (int i = 0; i < p->islands.count; ++i) {
    const island *one = p->islands.island + i;
    conic_sensitivity_solve(one->cone_workspace, count, d->four_r + one->variable * count,
                            p->four_w + one->row * count, d->four_e + one->equality * count,
                            d->four_x + one->variable * count, NULL, NULL);
  }
}

void qd_jvp(const qd_model *model, qd_workspace *w, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *const tangent[QD_ARGUMENT_COUNT], double *out) {
  const solved_step s = {model, w, options, input, result->delta};
  const problem *p = &w->problem;
  differential *d = &w->differential;
  for (int first = 0; first < count; first += DIRECTIONS) {
    const int width = count - first < DIRECTIONS ? count - first : DIRECTIONS;
    const double *one[QD_ARGUMENT_COUNT];
    for (int k = 0; k < width; ++k) {
      for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
        const size_t size = (size_t)qd_argument_size(model, i);
        one[i] = tangent[i] != NULL ? tangent[i] + (size_t)(first + k) * size : NULL;
      }
      pushforward_compute(&s, one, d->four_r + k, p->four_w + k, d->four_e + k, width);
    }
    solve_forward(w, width);
    for (int k = 0; k < width; ++k) {
      const size_t at = (size_t)(first + k) * (size_t)model->nv;
      for (int j = 0; j < model->nv; ++j) {
        const int variable = p->variable_of_dof[j];
        d->by_delta[j] = variable >= 0 ? d->four_x[variable * width + k] : 0.0;
        d->masked[j] = tangent[QD_BY_Q] != NULL ? tangent[QD_BY_Q][at + (size_t)j] : 0.0;
      }
      retraction_push(out + at, model, s.delta, d->masked, d->by_delta);
    }
  }
}

/* ---------------------------------------------------------------- cotangents */

/* Cotangent `index` of q_next: a row, or a unit vector. */
static void cotangent_take(double *y, const double *cotangent, int index, int nv) {
  if (cotangent != NULL) {
    memcpy(y, cotangent + (size_t)index * (size_t)nv, (size_t)nv * sizeof(double));
  } else {
    memset(y, 0, (size_t)nv * sizeof(double));
    y[index] = 1.0;
  }
}

/* four_r = -J_l' y of the free DOFs, then four_x = z, four_w = mu, four_e = nu */
static void solve_backward(const solved_step *s, const double *cotangent, int first, int width) {
  const problem *p = &s->w->problem;
  differential *d = &s->w->differential;
  for (int k = 0; k < width; ++k) {
    cotangent_take(d->z, cotangent, first + k, s->model->nv);
    retraction_pull(d->masked, d->by_delta, s->model, s->delta, d->z);
    for (int i = 0; i < p->n; ++i) {
      d->four_r[i * width + k] = -d->by_delta[p->dof_of_variable[i]];
    }
  }
  for (int i = 0; i < p->islands.count; ++i) {
    const island *one = p->islands.island + i;
    conic_sensitivity_solve(one->cone_workspace, width, d->four_r + one->variable * width, NULL,
                            NULL, d->four_x + one->variable * width, p->four_w + one->row * width,
                            d->four_e + one->equality * width);
  }
}

void qd_vjp(const qd_model *model, qd_workspace *w, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *cotangent, double *const gradient[QD_ARGUMENT_COUNT]) {
  const solved_step s = {model, w, options, input, result->delta};
  const problem *p = &w->problem;
  differential *d = &w->differential;
  for (int first = 0; first < count; first += DIRECTIONS) {
    const int width = count - first < DIRECTIONS ? count - first : DIRECTIONS;
    solve_backward(&s, cotangent, first, width);
    for (int k = 0; k < width; ++k) {
      double *one[QD_ARGUMENT_COUNT];
      for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
        const size_t size = (size_t)qd_argument_size(model, i);
        one[i] = gradient[i] != NULL ? gradient[i] + (size_t)(first + k) * size : NULL;
      }
      for (int j = 0; j < model->nv; ++j) {
        const int variable = p->variable_of_dof[j];
        d->z[j] = variable >= 0 ? d->four_x[variable * width + k] : 0.0;
      }
      pullback_compute(&s, p->four_w + k, d->four_e + k, width, one);
      if (one[QD_BY_Q] != NULL) {
        cotangent_take(d->z, cotangent, first + k, model->nv);
        retraction_pull(d->masked, d->by_delta, model, s.delta, d->z);
        for (int j = 0; j < model->nv; ++j) {
          one[QD_BY_Q][j] += d->masked[j];
        }
      }
    }
  }
}
