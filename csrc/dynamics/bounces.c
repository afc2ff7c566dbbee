#include "dynamics/bounces.h"

#include <math.h>

#include "dynamics/workspace.h"

/* Of the sum of what each contact takes and gives: work below it is rounding. */
#define WORK_ROUNDING 1e-9
/* Programs to find the share with, after those with all of the bounces and with none. */
#define SHARE_TRIES 8
/* Of the work that bounces may add: a share that leaves no more of it unused is good. */
#define SHARE_ENOUGH 0.1

/* J: what the contacts do in the step, their forces times half of the ways at the velocities before
 * (what spins freely: that it would have after it without them) and after it; *scale: the same with
 * the signs of all terms alike. */
static double contact_work(const qd_model *model, qd_workspace *w, const qd_step_options *o,
                           const qd_step_result *result, double *scale) {
  double *way = w->problem.mass_row, work = 0.0;
  for (int dof = 0; dof < model->nv; ++dof) {
    way[dof] = 0.5 * (o->h * w->problem.coasting[dof] + result->delta[dof]);
  }
  *scale = 0.0;
  for (int i = 0; i < w->collision.count; ++i) {
    const qd_contact *c = w->collision.contact + i;
    screw a, b;
    double point[3];
    body_twist(&a, model, &w->kinematics, c->body_a, way);
    body_twist(&b, model, &w->kinematics, c->body_b, way);
    screw_sub(&b, &b, &a);
    screw_point_velocity(point, &b, c->pos);
    for (int k = 0; k < 3; ++k) {
      const double force = c->force[k] * vec3_dot(c->frame + 3 * k, point);
      const double moment = c->force[3 + k] * vec3_dot(c->frame + 3 * k, b.w);
      work += force + moment;
      *scale += fabs(force) + fabs(moment);
    }
  }
  return work;
}

/* The step with a share of the bounces; *excess: by how much its contacts do more than `limit`. */
static qd_status solve_share(const qd_model *model, qd_workspace *w, const qd_step_options *o,
                             const qd_step_input *input, const step_columns *kept, int near_only,
                             double share, double limit, double *excess, qd_step_result *result) {
  double scale;
  w->problem.bounce_share = share;
  const qd_status status = step_solve(model, w, o, input, kept, &near_only, result);
  *excess = status == QD_OK ? contact_work(model, w, o, result, &scale) - limit : INFINITY;
  return status;
}

/* The largest share of the bounces that is found by halving and by false position to do no more
 * than `limit`, the excess without them and with all of them known. */
static double find_share(const qd_model *model, qd_workspace *w, const qd_step_options *o,
                         const qd_step_input *input, const step_columns *kept, int near_only,
                         double limit, double without, double with_all, qd_step_result *result) {
  double low = 0.0, high = 1.0, f_low = without, f_high = with_all;
  for (int i = 0; i < SHARE_TRIES && f_low < SHARE_ENOUGH * without; ++i) {
    const double part = i % 2 == 0 || isinf(f_high) ? 0.5 : f_low / (f_low - f_high);
    const double share = low + part * (high - low);
    double excess;
    solve_share(model, w, o, input, kept, near_only, share, limit, &excess, result);
    if (excess > 0.0) {
      high = share;
      f_high = excess;
    } else {
      low = share;
      f_low = excess;
    }
  }
  return low;
}

/* Whether there may be no room for the bounces: what leaves one wall faster than it may come to
 * another. */
static int may_crowd(qd_status status) {
  return status == QD_INFEASIBLE || status == QD_NUMERICAL_TROUBLE;
}

/* How much more than nothing the contacts do with all bounces: 0 is none, or rounding; infinite
 * where there is no such step, and bounces may be why. */
static double excess_of(const qd_model *model, qd_workspace *w, const qd_step_options *o,
                        const qd_step_result *result, qd_status status) {
  double scale;
  if (w->problem.bounce_count == 0) {
    return 0.0;
  }
  if (status != QD_OK) {
    return may_crowd(status) ? INFINITY : 0.0;
  }
  const double work = contact_work(model, w, o, result, &scale);
  return work > WORK_ROUNDING * scale ? work : 0.0;
}

qd_status bounces_solve(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                        const qd_step_input *input, const step_columns *kept, int *near_only,
                        qd_step_result *result) {
  double without, share = 1.0;
  w->problem.bounce_share = 1.0;
  qd_status status = step_solve(model, w, options, input, kept, near_only, result);
  const int near = *near_only;
  const double work = options->dynamic ? excess_of(model, w, options, result, status) : 0.0;
  if (work == 0.0) {
    return status;
  }
  status = solve_share(model, w, options, input, kept, near, 0.0, 0.0, &without, result);
  if (status != QD_OK && isinf(work)) {
    return status; /* bounces are not why */
  }
  if (status == QD_OK && without < work) {
    const double limit = fmax(0.0, without);
    share = find_share(model, w, options, input, kept, near, limit, without - limit, work - limit,
                       result);
  }
  if (share != w->problem.bounce_share) {
    status = solve_share(model, w, options, input, kept, near, share, 0.0, &without, result);
  }
  result->bounce_share = share;
  return status;
}
