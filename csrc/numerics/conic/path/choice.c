/* Chooses between the path and cuts for an exact program.
 *
 * Cuts and the polish add one active row after the other. They are faster where few cones are
 * active, or where the active ones come to rest at once: a body that is pressed straight down needs
 * one cut per contact. Contacts that touch and are dragged along (a grasp, squeezed by joints that
 * have not converged) need a new cut for every change of their friction direction. If the dragged
 * rows are nearly as many as the unknowns, most of them share the load in the end, and the path
 * handles all of them at once. The path is then faster, if the program has few other rows. */
#include <math.h>

#include "numerics/conic/workspace.h"

/* 1 if the free motion's slack w lies outside the cone and its negative, with at least two tangents
 * to slide along. */
static int is_dragged(const qd_cone_workspace *workspace, const cone_group *group, int c) {
  const int n = group->padded, at = group->slot + c;
  const double *w = workspace->work.rhs + at, *g = workspace->program.g + at;
  double across = 0.0, offset = g[0] * g[0];
  int directions = 0;
  for (int i = 1; i < group->dim; ++i) {
    across += w[i * n] * w[i * n];
    offset += g[i * n] * g[i * n];
    directions += w[i * n] != 0.0;
  }
  const double size = sqrt(across), out = size - w[0];
  return directions > 1 && out > 0.0 && -w[0] < size && offset < ROUGHLY * ROUGHLY * out * out;
}

int conic_wants_path(const qd_cone_workspace *workspace) {
  int dragged = 0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group->kind == GROUP_LORENTZ; ++c) {
      if (is_dragged(workspace, group, c)) {
        dragged += group->dim;
      }
    }
  }
  return dragged >= MANY_DRAGGED * workspace->program.variable_count &&
         workspace->program.row_count < IDLE_SHARE * (double)dragged;
}

int conic_is_crowded(const qd_cone_workspace *workspace) {
  const double *w = workspace->work.rhs;
  const double many = CROWD * workspace->program.variable_count;
  int rows = 0;
  if (!(workspace->program.row_count > many)) {
    return 0;
  }
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group_is_cone(group); ++c) {
      rows += w[group->slot + c] < cone_tail(group, c, w) ? group->dim : 0;
    }
  }
  return rows > many;
}
