/* Stiffness of each cone's directions for a given active set. */
#include <math.h>

#include "numerics/conic/workspace.h"

void conic_set_equalities(qd_cone_workspace *workspace) {
  const cone_product *product = &workspace->product;
  if (workspace->program.equality_count == 0) {
    return;
  }
  const cone_group *group = &product->groups[product->group_count - 1];
  for (int c = 0; c < group->padded; ++c) {
    const double root = conic_hard_root(workspace, group->cone + c);
    conic_set_stiffness(workspace, group->cone + c, root, root, root, 1, 1);
  }
}

/* u of a sliding cone from its multiplier, dual = beta (1, u) */
static void set_direction(qd_cone_workspace *workspace, const cone_group *group, int c,
                          const double *dual) {
  const double size = cone_tail(group, c, dual), factor = size > 0.0 ? 1.0 / size : 0.0;
  for (int i = 1; i < group->dim; ++i) {
    const int at = group->slot + i * group->padded + c;
    workspace->active.rows.u[at] = factor * dual[at];
  }
}

int conic_set_active_rows(qd_cone_workspace *workspace, const double *dual, const double *slack) {
  int any_hard = 0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->padded && group->kind != GROUP_EQUALITY; ++c) {
      const int cone = group->cone + c;
      const double root = conic_hard_root(workspace, cone);
      set_direction(workspace, group, c, dual);
      const int state = c < group->count ? workspace->active.state[cone] : CONE_OPEN;
      if (group->kind == GROUP_INTERVAL) {
        const double own = c < group->count ? conic_ends_root(workspace, c, root) : 0.0;
        conic_set_stiffness(workspace, cone, own, own, own, state == CONE_STICK,
                            state == CONE_STICK);
      } else if (state == CONE_STICK) {
        conic_set_stiffness(workspace, cone, root, root, root, 1, 1);
      } else if (state == CONE_SLIDE) {
        conic_set_stiffness(workspace, cone, root, 0.0,
                            sqrt(dual[group->slot + c] / slack[group->slot + c]), 1, 0);
      } else {
        conic_set_stiffness(workspace, cone, 0.0, 0.0, 0.0, 0, 0);
      }
      any_hard |= state == CONE_STICK || state == CONE_SLIDE;
    }
  }
  return any_hard;
}

int conic_any_weak(const qd_cone_workspace *workspace) {
  int weak = 0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group->kind != GROUP_EQUALITY; ++c) {
      weak |= workspace->active.state[group->cone + c] == CONE_WEAK;
    }
  }
  return weak;
}

int conic_any_idle(const qd_cone_workspace *workspace) {
  const double force = WEAK * workspace->units.force;
  int idle = 0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group->kind != GROUP_EQUALITY; ++c) {
      idle |= workspace->active.state[group->cone + c] == CONE_WEAK &&
              !(workspace->polished.dual[group->slot + c] > force);
    }
  }
  return idle;
}

int conic_shares_are_known(const qd_cone_workspace *workspace) {
  int rows = 0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group->kind != GROUP_EQUALITY; ++c) {
      rows += workspace->active.state[group->cone + c] != CONE_OPEN ? group->dim : 0;
    }
  }
  return rows <= workspace->program.variable_count && !conic_any_idle(workspace);
}
