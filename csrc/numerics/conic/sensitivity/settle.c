/* Settles the active set of a solution for derivatives: the set of the solve, or a better one if
 * that set is not strict. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"

/* Weakly active cones: multipliers of redundant rows are a choice, and the path's end, which
 * spreads the load, may have a strict set where a vertex has not. If not, the path's scaling is
 * needed. Returns 1 if the new polish succeeds. */
static int settle_weak_cones(qd_cone_workspace *workspace) {
  qd_cone_info effort = {0};
  const path_start from = workspace->origin == ORIGIN_PATH ? PATH_RESUMED : PATH_COLD;
  if (from == PATH_COLD) {
    conic_free_minimum(workspace, &effort);
  }
  workspace->polish.split_width = 0;
  const path_request path = {.goal = DEFAULT_TOLERANCE,
                             .iteration_limit = DEFAULT_ITERATIONS - KEPT_ITERATIONS,
                             .from = from};
  const polish_guess seen = {ORIGIN_PATH, 0, 0, 0.0, 0.0};
  return conic_follow_path(workspace, &path, &effort) == PATH_ARRIVED &&
         conic_polish(workspace, &seen, &effort);
}

/* Reads the states from the end of a path that has reached the boundary. */
static void read_path_end(qd_cone_workspace *workspace) {
  conic_copy_slots(workspace, workspace->polished.slack, workspace->iterate.slack);
  conic_copy_slots(workspace, workspace->polished.dual, workspace->iterate.dual);
  conic_read_states(workspace);
}

/* State of knowledge of the solution's active set. */
typedef struct known_set {
  int active;  /* 1: `polished` shows the states */
  int settled; /* 1: certified by a polish */
  int weak;    /* 1: some cone is near two states, or the set is one of several */
  int by_path; /* 1: the iterate comes from a path */
} known_set;

/* The set of the solve, or a better one if that set is not strict. */
static known_set find_set(qd_cone_workspace *workspace, int polished) {
  known_set set = {.settled = polished, .by_path = workspace->origin != ORIGIN_MULTIPLIERS};
  set.active = !set.by_path || polished;
  set.weak = set.active && conic_any_weak(workspace);
  if (set.weak && set.by_path) {
    set.active = set.settled = settle_weak_cones(workspace);
    set.weak = !set.active || conic_any_weak(workspace);
  }
  if (workspace->program.exact && workspace->ends.count == 0 && set.by_path &&
      !set.active) { /* rounding ended the path, or no polish was wanted */
    qd_cone_info effort = {0};
    workspace->path.error = HUGE_VAL;
    set.active = augmented_lagrangian(workspace, DEFAULT_TOLERANCE, KEPT_ITERATIONS, 1,
                                      &set.settled, &effort);
    set.by_path = !set.active;
    set.weak = 1; /* one of several equally good sets: an estimate */
  }
  return set;
}

/* Scaling of cones with an uncertain state; 1 if it is known. */
static int scale_at_end(qd_cone_workspace *workspace, int by_path) {
  const int scaled =
      cones_scale(&workspace->product, by_path ? workspace->iterate.slack : workspace->best.slack,
                  by_path ? workspace->iterate.dual : workspace->best.dual);
  if (workspace->ends.count > 0) {
    conic_ends_scale(workspace);
  }
  return scaled;
}

void conic_settle(qd_cone_workspace *workspace, const qd_cone_info *info) {
  settled_set *set = &workspace->settled;
  if (set->is_known) {
    return;
  }
  known_set known = find_set(workspace, info->polished);
  set->is_known = 1;
  set->exact = workspace->program.exact ? known.settled && !known.weak : 1;
  set->scaled = (known.weak || !known.active) && scale_at_end(workspace, known.by_path);
  set->active = known.active;
  if (!set->active && !set->scaled) { /* the point is on the boundary already */
    read_path_end(workspace);
    set->active = 1;
  }
}
