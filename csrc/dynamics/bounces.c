#include "dynamics/bounces.h"

#include <math.h>

#include "base/rounding.h"
#include "dynamics/step.h"
#include "dynamics/workspace.h"

/* Number of programs that search for the shares, after those with all bounces and without any. */
#define SHARE_TRIES 8
/* Relative to the work that bounces may add: a share that leaves less of it unused is accepted. */
#define SHARE_ENOUGH 0.1

static bounce_group *group_of(const step_call *s, const qd_contact *c) {
  const int *tree = s->model->body.tree, *of_tree = s->w->bounces.of_tree;
  for (int side = 0; side < 2; ++side) {
    const int own = tree[side ? c->body_a : c->body_b];
    if (own >= 0 && of_tree[own] >= 0) {
      return s->w->bounces.group + of_tree[own];
    }
  }
  return NULL;
}

/* Adds the work of a contact in the step: its force times the mean of the displacements at the
 * velocities before (of coasting bodies: that after the step without the force) and after. Pushing
 * out a penetration is no bounce, so its force times half of that displacement is subtracted. */
static void add_work(const step_call *s, int index, const double *way, bounce_group *group) {
  const qd_contact *c = s->w->collision.contact + index;
  const int bouncing = s->w->problem.block[index].offset == OFFSET_BOUNCE;
  screw a, b;
  double point[3];
  body_twist(&a, s->model, &s->w->kinematics, c->body_a, way);
  body_twist(&b, s->model, &s->w->kinematics, c->body_b, way);
  screw_sub(&b, &b, &a);
  screw_point_velocity(point, &b, c->pos);
  for (int k = 0; k < 3; ++k) {
    const double force = c->force[k] * vec3_dot(c->frame + 3 * k, point);
    const double moment = c->force[3 + k] * vec3_dot(c->frame + 3 * k, b.w);
    group->work += force + moment;
    group->scale += fabs(force) + fabs(moment);
  }
  if (!bouncing && c->dist < 0.0) {
    group->work -= 0.5 * c->force[0] * fmin(-c->dist, s->options->h * s->options->recovery_speed);
  }
  group->count += bouncing;
}

/* The work of every group in the present step. */
static void measure_work(const step_call *s) {
  const problem *p = &s->w->problem;
  double *way = p->scratch.variables;
  for (int i = 0; i < s->model->tree.count; ++i) {
    bounce_group *group = s->w->bounces.group + i;
    group->work = group->scale = 0.0;
    group->count = 0;
  }
  for (int dof = 0; dof < s->model->nv; ++dof) {
    way[dof] = 0.5 * (s->options->h * p->state.coasting[dof] + s->result->delta[dof]);
  }
  for (int i = 0; i < s->w->collision.count; ++i) {
    bounce_group *group = group_of(s, s->w->collision.contact + i);
    if (group != NULL) {
      add_work(s, i, way, group);
    }
  }
}

/* Solves the step with the groups' shares, and measures its work. */
static qd_status solve_shares(const step_call *s) {
  for (int i = 0; i < s->model->tree.count; ++i) {
    const int group = s->w->bounces.of_tree[i];
    s->w->problem.loads.bounce_share[i] = group >= 0 ? s->w->bounces.group[group].share : 1.0;
  }
  const qd_status status = attempts_solve(s, "less restitution");
  if (status == QD_OK) {
    measure_work(s);
  }
  return status;
}

/* Whether bounces may make the step infeasible: after leaving one wall, a body may be too fast for
 * another. */
static int may_crowd(qd_status status) {
  return status == QD_INFEASIBLE || status == QD_NUMERICAL_TROUBLE;
}

/* Makes the islands of the present step groups. */
static void form_groups(const step_call *s) {
  bounce_search *b = &s->w->bounces;
  for (int i = 0; i < s->model->tree.count; ++i) {
    b->of_tree[i] = s->w->problem.islands.parent[i];
    b->group[i] = (bounce_group){.share = 1.0};
  }
}

/* The group of the island that failed; NULL: that island, or another one, has no bounces already.
 */
static bounce_group *failed_group(const step_call *s) {
  const problem *p = &s->w->problem;
  for (int i = 0; i < s->model->tree.count && p->attempt.failed_island >= 0; ++i) {
    bounce_group *group = s->w->bounces.group + s->w->bounces.of_tree[i];
    if (p->islands.parent[i] == p->attempt.failed_island && s->w->bounces.of_tree[i] >= 0) {
      return group->open ? NULL : group;
    }
  }
  return NULL;
}

/* Removes the bounces of islands that are infeasible with them, one after the other. */
static qd_status make_room(const step_call *s, qd_status status) {
  while (may_crowd(status)) {
    bounce_group *group = failed_group(s);
    if (group == NULL) {
      return status;
    }
    group->open = 1;
    group->share = 0.0;
    group->with_all = INFINITY;
    status = solve_shares(s);
  }
  return status;
}

/* Opens the groups whose contacts do positive work; returns how many are open. */
static int open_groups(const step_call *s) {
  int count = 0;
  for (int i = 0; i < s->model->tree.count; ++i) {
    bounce_group *group = s->w->bounces.group + i;
    if (!group->open && group->count > 0 && group->work > CALLERS_ROUNDING * group->scale) {
      group->open = 1;
      group->with_all = group->work;
    }
    count += group->open;
  }
  return count;
}

/* Records the work of open groups without bounces, and the intervals of their shares. */
static void begin_search(const step_call *s) {
  for (int i = 0; i < s->model->tree.count; ++i) {
    bounce_group *group = s->w->bounces.group + i;
    if (!group->open) {
      continue;
    }
    group->without = group->work;
    group->limit = fmax(0.0, group->without);
    group->low = 0.0;
    group->high = 1.0;
    group->low_excess = group->without - group->limit;
    group->high_excess = group->with_all - group->limit;
    if (!(group->without < group->with_all)) { /* bounces are not the reason */
      group->low = 1.0;
      group->low_excess = 0.0;
    }
  }
}

/* The next shares, by bisection and by false position in turn; returns how many groups still
 * search. */
static int choose_shares(const step_call *s, int round) {
  int count = 0;
  for (int i = 0; i < s->model->tree.count; ++i) {
    bounce_group *group = s->w->bounces.group + i;
    if (!group->open) {
      continue;
    }
    group->share = group->low;
    if (group->low_excess < SHARE_ENOUGH * (group->without - group->limit)) {
      const double fall = group->low_excess - group->high_excess;
      const double part =
          round % 2 == 0 || isinf(group->high_excess) ? 0.5 : group->low_excess / fall;
      group->share += part * (group->high - group->low);
      ++count;
    }
  }
  return count;
}

/* Narrows the intervals by the result of the last shares. A failed island gives no result for the
 * others. */
static void narrow(const step_call *s, qd_status status) {
  const problem *p = &s->w->problem;
  for (int i = 0; i < s->model->tree.count; ++i) {
    const int own = s->w->bounces.of_tree[i];
    bounce_group *group = own >= 0 ? s->w->bounces.group + own : NULL;
    if (group == NULL || !group->open || group->share == group->low ||
        (status != QD_OK && p->islands.parent[i] != p->attempt.failed_island)) {
      continue;
    }
    const double excess = status == QD_OK ? group->work - group->limit : INFINITY;
    if (excess > 0.0) {
      group->high = group->share;
      group->high_excess = excess;
    } else {
      group->low = group->share;
      group->low_excess = excess;
    }
  }
}

/* Sets the shares found; returns 1 if they differ from those of the present step. */
static int settle(const step_call *s, int find) {
  int differ = 0;
  for (int i = 0; i < s->model->tree.count; ++i) {
    bounce_group *group = s->w->bounces.group + i;
    const double share = group->open && find ? group->low : 1.0;
    group->share = share;
  }
  for (int i = 0; i < s->model->tree.count; ++i) {
    const int group = s->w->bounces.of_tree[i];
    differ |= group >= 0 && s->w->problem.loads.bounce_share[i] != s->w->bounces.group[group].share;
  }
  return differ;
}

static double smallest_share(const step_call *s) {
  double least = 1.0;
  for (int i = 0; i < s->model->tree.count; ++i) {
    least = fmin(least, s->w->problem.loads.bounce_share[i]);
  }
  return least;
}

/* Searches for the shares of groups that do too much work. */
static qd_status search(const step_call *s, int crowded) {
  for (int i = 0; i < s->model->tree.count; ++i) {
    s->w->bounces.group[i].share = s->w->bounces.group[i].open ? 0.0 : 1.0;
  }
  qd_status status = solve_shares(s);
  const int find = status == QD_OK;
  if (!find && crowded) {
    return status; /* bounces are not the reason */
  }
  if (find) {
    begin_search(s);
  }
  for (int i = 0; i < SHARE_TRIES && find && choose_shares(s, i) > 0; ++i) {
    status = solve_shares(s);
    narrow(s, status);
  }
  if (settle(s, find)) {
    status = solve_shares(s);
  }
  return status;
}

qd_status bounces_solve(const step_call *s) {
  for (int i = 0; i < s->model->tree.count; ++i) {
    s->w->problem.loads.bounce_share[i] = 1.0;
  }
  qd_status status = attempts_solve(s, "as given");
  if (!s->options->dynamic || s->w->problem.report.bounces == 0 ||
      (status != QD_OK && !may_crowd(status))) {
    return status;
  }
  const int crowded = status != QD_OK;
  form_groups(s);
  if (!crowded) {
    measure_work(s);
  }
  status = make_room(s, status);
  if (status != QD_OK) {
    return status;
  }
  if (open_groups(s) > 0) {
    status = search(s, crowded);
  }
  s->result->bounce_share = smallest_share(s);
  return status;
}
