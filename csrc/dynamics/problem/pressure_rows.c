/* Soft pairs in the program: their energy to second order in the cost, and friction as one disc per
 * polygon (or patch). A disc |f| <= radius is a Lorentz cone. Its first row has no motion, but a
 * constant, the predicted sliding minus a length, and a compliance, that length over the radius. So
 * its force is the radius if the disc slides as far as predicted. */
#include "dynamics/problem/parts.h"
#include "dynamics/problem/pressure_energy.h"

/* Motion of the second body relative to the first at the centre (6), for tiles of four columns. */
static void fill_motions(problem *p, const island *one, const soft_pair *pair) {
  for (int t = 0; t < p->scratch.list.count; ++t) {
    double *out = p->scratch.motion + (size_t)(4 * MOTION_MAX * t);
    memset(out, 0, 4 * MOTION_MAX * sizeof(double));
    for (int lane = 0; lane < 4; ++lane) {
      const int column = 4 * p->scratch.list.tiles[t] + lane;
      const double sign = p->scratch.sign[4 * t + lane];
      if (sign == 0.0 || column >= one->variable_count) {
        continue;
      }
      double motion[6];
      const int dof = p->dof_of_variable[one->variable + column];
      pressure_body_motion(motion, pair->side + (sign > 0.0), pair->centre,
                           p->kinematics->dof_screw + dof);
      for (int i = 0; i < 6; ++i) {
        out[4 * i + lane] = sign * motion[i];
      }
    }
  }
}

static void motion_of(double motion[6], const problem *p, int entry) {
  for (int i = 0; i < 6; ++i) {
    motion[i] = p->scratch.motion[4 * MOTION_MAX * (entry / 4) + 4 * i + entry % 4];
  }
}

/* A column of the list, and the numbers of the body that its DOF moves; returns the index of that
 * body in the pair, -1: none. */
static int numbers_of(double numbers[6], int *column, const problem *p, const island *one,
                      const soft_pair *pair, int entry) {
  *column = 4 * p->scratch.list.tiles[entry / 4] + entry % 4;
  if (p->scratch.sign[entry] == 0.0 || *column >= one->variable_count) {
    return -1;
  }
  const int side = p->scratch.sign[entry] > 0.0;
  pressure_numbers(numbers, pair->side + side,
                   p->kinematics->dof_screw + p->dof_of_variable[one->variable + *column]);
  return side;
}

/* Q += S'HS, b -= S'(load + H numbers), with S the derivative of the bodies' numbers by the DOFs */
static void add_energy(problem *p, const island *one, const soft_pair *pair) {
  const int entries = 4 * p->scratch.list.count;
  for (int e = 0; e < entries; ++e) {
    double here[6], there[6], load[PRESSURE_NUMBERS];
    int column, other;
    const int side = numbers_of(here, &column, p, one, pair, e);
    if (side < 0) {
      continue;
    }
    double along = 0.0;
    for (int j = 0; j < PRESSURE_NUMBERS; ++j) {
      load[j] = 0.0;
      for (int i = 0; i < 6; ++i) {
        load[j] += here[i] * pair->hessian[PRESSURE_NUMBERS * (6 * side + i) + j];
      }
      along += load[j] * pair->numbers[j];
    }
    for (int i = 0; i < 6; ++i) {
      along += here[i] * pair->load[6 * side + i];
    }
    p->program.b[one->variable + column] -= along;
    for (int f = 0; f < entries; ++f) {
      const int against = numbers_of(there, &other, p, one, pair, f);
      for (int i = 0; i < 6 && against >= 0; ++i) {
        *cost_entry(one, column, other) += load[6 * against + i] * there[i];
      }
    }
  }
}

/* A row over the list's tiles: axis . velocity at x + spin . angular velocity. */
static void write_row(problem *p, island *one, const double axis[3], const double arm[3],
                      const double spin[3]) {
  double *values = tile_rows_append(&one->G, &p->scratch.list), turn[3];
  vec3_cross(turn, arm, axis); /* axis . (w x arm) = w . (arm x axis) */
  vec3_add(turn, turn, spin);
  for (int e = 0; e < 4 * p->scratch.list.count; ++e) {
    double here[6];
    motion_of(here, p, e);
    values[e] = vec3_dot(axis, here) + vec3_dot(turn, here + 3);
  }
}

/* The radius has a compliance over one length, that of the pair's smaller body. Ten: as many
 * programs, but their numbers span more decades and take a third longer; a thousand: friction is
 * off by 1e-9 of a length; a tenth: more programs, and boxes that slide far do not converge. */
static void add_disc(problem *p, island *one, const soft_pair *pair, pressure_element *at) {
  static const double none[3] = {0.0, 0.0, 0.0};
  double arm[3], spin[3];
  const double length = pair->length;
  const int rows = pressure_element_rows(at);
  vec3_sub(arm, at->pos, pair->centre);
  at->row = p->count.rows;
  p->program.g[at->row] = at->slid - length;
  memset(p->solution.dual + at->row, 0, (size_t)rows * sizeof(double));
  p->solution.dual[at->row] = at->radius; /* of a start, which knows no discs: as if they slid */
  p->program.compliance[at->row] = length / at->radius;
  for (int r = 1; r < rows; ++r) {
    p->program.g[at->row + r] = at->before[r - 1];
    p->program.compliance[at->row + r] = at->give;
  }
  one->compliant += at->give > 0.0 ? rows : 1;
  write_row(p, one, none, none, none);
  write_row(p, one, at->frame + 3, arm, none);
  write_row(p, one, at->frame + 6, arm, none);
  if (rows > 3) {
    vec3_scale(spin, at->frame, at->spin);
    write_row(p, one, none, none, spin);
  }
  add_cone(p, one, QD_LORENTZ, rows, barrier_target(p->options, 2) * at->force / pair->pressed);
  p->count.rows += rows;
  one->row_count += rows;
}

void pressure_rows_assemble(problem *p, island *one) {
  pressure_contact *s = &p->soft;
  const int index = (int)(one - p->islands.island);
  for (int i = 0; i < p->model->pair.soft_count; ++i) {
    soft_pair *pair = s->pair + i;
    if (!pair->is_active || pair->contact < 0 || p->islands.of_contact[pair->contact] != index) {
      continue;
    }
    contact_tiles_find(p, p->collision->contact + pair->contact);
    fill_motions(p, one, pair);
    add_energy(p, one, pair);
    one->load = fmax(one->load, pair->pressed);
    for (int e = pair->first; e < pair->first + pair->count && p->scratch.list.count > 0; ++e) {
      add_disc(p, one, pair, s->element + e);
    }
  }
}
