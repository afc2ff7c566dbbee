/* Scales for residuals that follow from the program alone, without an answer. */
#include "numerics/conic/certificate/scales.h"

#include <math.h>

#include "base/lanes.h"

#define FAR_APART 1e-4 /* ratio of row norms that requires scaling */

/* Largest squared row norm of a cone in the caller's units, in scaled columns. */
static double squared_norm(const qd_cone_workspace *workspace, int cone) {
  const double scale = workspace->program.lane_scale[cone];
  return workspace->program.compliance[cone] / scale / scale; /* the square might overflow */
}

static double norm_of_rows(const qd_cone_workspace *workspace, int cone) {
  return sqrt(squared_norm(workspace, cone));
}

/* Largest and smallest squared norm of a group's cones. */
LANES_INLINE void note_norms(const qd_cone_workspace *workspace, const cone_group *group,
                             double *strongest, double *weakest) {
  const lanes lane = {0.0, 1.0, 2.0, 3.0}, none = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};
  for (int c = 0; c < group->padded; c += 4) {
    const lanes scale = LANES_OF(workspace->program.lane_scale + group->cone + c);
    lanes norm = LANES_OF(workspace->program.compliance + group->cone + c) / scale / scale;
    const lane_bits real = lane < (double)(group->count - c);
    for (int k = 0; k < 4; ++k) {
      *strongest = larger(norm[k], *strongest);
    }
    lanes_choose(&norm, &real, &norm, &none);
    for (int k = 0; k < 4; ++k) {
      *weakest = smaller(norm[k], *weakest);
    }
  }
}

/* Size of b, and of its entries with curvature; `with_push`: including the forces of intervals. */
static void note_cost(const qd_cone_workspace *workspace, int with_push, scales *s) {
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] < 0) {
      continue;
    }
    const double own = workspace->program.b[k];
    const double b = fabs(with_push ? own - workspace->ends.push[k] : own);
    s->b_scaled = larger(s->b_scaled, b);
    if (workspace->program.definite ||
        conic_curvature(workspace, workspace->program.column_of[k]) > 0.0) {
      s->free = larger(s->free, b);
    }
  }
}

QD_MULTIVERSION
scales measure_scales(const qd_cone_workspace *workspace, const qd_cone_program *program) {
  scales s = {.weakest_row = HUGE_VAL};
  double strongest = 0.0;
  const int with_push = workspace->ends.count > 0 && workspace->program.exact;
  note_cost(workspace, with_push, &s);
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    if (group->kind == GROUP_ENDS) {
      continue;
    }
    note_norms(workspace, group, &strongest, &s.weakest_row);
    if (workspace->program.exact || group->kind >= GROUP_EQUALITY) {
      continue;
    }
    for (int c = group->cone; c < group->cone + group->count; ++c) {
      s.target = larger(s.target, workspace->product.target[c]);
    }
  }
  const double offset = larger(max_norm(program->g, program->row_count),
                               max_norm(program->c, program->equality_count));
  s.offset = strongest > 0.0 ? offset / sqrt(strongest) : 0.0;
  s.weakest_row = strongest > 0.0 ? sqrt(s.weakest_row) : 0.0;
  s.strongest_row = sqrt(strongest);
  s.reach = reach_of(s.offset, s.free, workspace->program.exact);
  s.b = max_norm(program->b, program->variable_count);
  return s;
}

int conic_cost_is_weak(const qd_cone_workspace *workspace, const qd_cone_program *program) {
  const scales s = measure_scales(workspace, program);
  const double given = s.reach > 0.0 ? s.offset : 1.0; /* R = 1: there is no other length scale */
  return given > 0.0 && s.b_scaled > EXCLUDED * given;
}

int conic_rows_are_far_apart(const qd_cone_workspace *workspace) {
  double strongest = 0.0, weakest = HUGE_VAL;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = group->cone; c < group->cone + group->count; ++c) {
      const double norm = group->kind == GROUP_EQUALITY ? 0.0 : norm_of_rows(workspace, c);
      strongest = larger(strongest, norm);
      weakest = norm > 0.0 ? smaller(weakest, norm) : weakest;
    }
  }
  return weakest < FAR_APART * strongest;
}
