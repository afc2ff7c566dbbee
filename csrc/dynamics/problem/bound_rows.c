/* Bounds of the motion of softened programs (recovery.c): contradictions that only a motion far
 * away, or a large rotation, could resolve are not resolved. They are one more cone of the island,
 * which its program contains only on request. */
#include "dynamics/problem/parts.h"

#define TRAVEL_MOST 10.0 /* times the largest violation at rest; lengths times the next */
#define LEAST_VIOLATION 1e-2

/* The largest violation at rest, m. */
static double largest_violation(const problem *p, const island *one) {
  double largest = LEAST_VIOLATION * one->length;
  for (int i = one->row; i < one->row + one->row_count; ++i) {
    largest = fmax(largest, -p->program.g[i]);
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    largest = fmax(largest, fabs(p->program.c[i]));
  }
  return largest;
}

void bound_rows_assemble(problem *p, island *one) {
  const double travel = TRAVEL_MOST * largest_violation(p, one);
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    const int turns = dof >= 0 && vec3_dot(p->kinematics->dof_screw[dof].w,
                                           p->kinematics->dof_screw[dof].w) > 0.0;
    for (int side = 0; side < 2; ++side) {
      tile_rows_append_entry(&one->G, i, side ? -1.0 : 1.0);
      p->program.g[p->count.rows++] = turns ? 1.0 /* rad */ : travel;
    }
  }
  one->bound_count = 2 * one->variable_count;
  add_cone(p, one, QD_ORTHANT, one->bound_count, 0.0);
  --one->cone_count;
}
