/* Soft pairs in the program: their energy up to second order in the cost, and friction as a disc a
 * polygon (or patch). A disc |f| <= radius is a Lorentz cone whose first row is no motion but a
 * number that gives way so little that its force is the radius. */
#include "dynamics/problem/parts.h"

/* Six numbers of four columns each: motion of the second body against the first, of the centre. */
static void fill_motions(problem *p, const kinematics *k, const island *one,
                         const soft_pair *pair) {
  for (int t = 0; t < p->list.count; ++t) {
    double *out = p->motion + (size_t)(4 * MOTION_MAX * t);
    memset(out, 0, 4 * MOTION_MAX * sizeof(double));
    for (int lane = 0; lane < 4; ++lane) {
      const int column = 4 * p->list.tiles[t] + lane;
      const double sign = p->sign[4 * t + lane];
      if (sign == 0.0 || column >= one->variable_count) {
        continue;
      }
      double motion[6];
      const int dof = p->dof_of_variable[one->variable + column];
      soft_body_motion(motion, pair->side + (sign > 0.0), pair->centre, k->dof_screw + dof);
      for (int i = 0; i < 6; ++i) {
        out[4 * i + lane] = sign * motion[i];
      }
    }
  }
}

static void motion_of(double motion[6], const problem *p, int entry) {
  for (int i = 0; i < 6; ++i) {
    motion[i] = p->motion[4 * MOTION_MAX * (entry / 4) + 4 * i + entry % 4];
  }
}

static double dot6(const double a[6], const double b[6]) {
  double sum = 0.0;
  for (int i = 0; i < 6; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

/* Q += M'HM, b -= M'(wrench + H moved) */
static void add_energy(problem *p, const island *one, const soft_pair *pair) {
  const int entries = 4 * p->list.count;
  for (int e = 0; e < entries; ++e) {
    const int column = 4 * p->list.tiles[e / 4] + e % 4;
    double here[6], load[6];
    if (p->sign[e] == 0.0 || column >= one->variable_count) {
      continue;
    }
    motion_of(here, p, e);
    for (int i = 0; i < 6; ++i) {
      load[i] = 0.0;
      for (int j = 0; j < 6; ++j) {
        load[i] += pair->hessian[6 * i + j] * here[j];
      }
    }
    p->b[one->variable + column] -= dot6(here, pair->wrench) + dot6(load, pair->moved);
    for (int f = 0; f < entries; ++f) {
      const int other = 4 * p->list.tiles[f / 4] + f % 4;
      double there[6];
      if (p->sign[f] != 0.0 && other < one->variable_count) {
        motion_of(there, p, f);
        *cost_entry(one, column, other) += dot6(load, there);
      }
    }
  }
}

/* A row over the list's tiles: axis . velocity of x + spin . turning. */
static void write_row(problem *p, island *one, const double axis[3], const double arm[3],
                      const double spin[3]) {
  double *values = tile_rows_append(&one->G, &p->list), turn[3];
  vec3_cross(turn, arm, axis); /* axis . (w x arm) = w . (arm x axis) */
  vec3_add(turn, turn, spin);
  for (int e = 0; e < 4 * p->list.count; ++e) {
    double here[6];
    motion_of(here, p, e);
    values[e] = vec3_dot(axis, here) + vec3_dot(turn, here + 3);
  }
}

static void add_disc(problem *p, const qd_step_options *o, island *one, const soft_pair *pair,
                     soft_element *at) {
  static const double none[3] = {0.0, 0.0, 0.0};
  double arm[3], spin[3];
  const double length = SOFT_DISC_LENGTHS * pair->length;
  const int rows = soft_element_rows(at);
  vec3_sub(arm, at->pos, pair->centre);
  at->row = p->row_count;
  for (int r = 0; r < rows; ++r) {
    p->g[p->row_count + r] = 0.0;
  }
  p->g[at->row] = at->slid - length;
  p->compliance[at->row] = length / at->radius;
  ++one->compliant;
  write_row(p, one, none, none, none);
  write_row(p, one, at->frame + 3, arm, none);
  write_row(p, one, at->frame + 6, arm, none);
  if (rows > 3) {
    vec3_scale(spin, at->frame, at->spin);
    write_row(p, one, none, none, spin);
  }
  add_cone(p, one, QD_LORENTZ, rows, barrier_target(o, 2) * at->force / pair->pressed);
  p->row_count += rows;
  one->row_count += rows;
}

void soft_rows_assemble(problem *p, const qd_model *model, const qd_step_options *o,
                        const kinematics *k, const collision *c, island *one) {
  soft_contact *s = &p->soft;
  const int index = (int)(one - p->islands.island);
  for (int i = 0; i < model->soft_pair_count; ++i) {
    soft_pair *pair = s->pair + i;
    if (!pair->is_active || pair->contact < 0 || p->islands.of_contact[pair->contact] != index) {
      continue;
    }
    contact_tiles_find(p, c->contact + pair->contact);
    fill_motions(p, k, one, pair);
    add_energy(p, one, pair);
    one->load = fmax(one->load, pair->pressed);
    for (int e = pair->first; e < pair->first + pair->count && p->list.count > 0; ++e) {
      add_disc(p, o, one, pair, s->element + e);
    }
  }
}
