#include "dynamics/derivatives/pressure_derivative.h"

#include "dynamics/friction_law.h"
#include "dynamics/problem/contact_dofs.h"
#include "dynamics/problem/pressure_energy.h"
#include "dynamics/workspace.h"
#include "numerics/dense_lu.h"

void pressure_derivative_lay_out(pressure_derivative *d, const qd_model *model,
                                 int element_capacity, arena *a) {
  const size_t nv = model->pair.soft_count > 0 ? (size_t)model->nv : 0;
  pressure_changes_lay_out(&d->changes, model, element_capacity, a);
  d->matrix = arena_doubles(a, nv * nv);
  d->pivots = arena_ints(a, nv);
  d->vector = arena_doubles(a, nv);
}

/* ---------------------------------------------------------------- pairs */

/* Bodies of a pair, and their last common ancestor, whose DOFs do not change the pair. */
typedef struct pair_bodies {
  int body[2], common;
  contact_dofs dofs;
} pair_bodies;

static void find_bodies(pair_bodies *out, const qd_model *model, int pair) {
  const int *geom = model->pair.geom + 2 * pair;
  int a = out->body[0] = model->geom.body[geom[0]], b = out->body[1] = model->geom.body[geom[1]];
  out->dofs = contact_dofs_find(model, a, b);
  while (a != b) {
    if (a > b) {
      a = model->body.parent[a];
    } else {
      b = model->body.parent[b];
    }
  }
  out->common = a;
}

/* The island of a pair in contact, -1: not in contact. */
static int island_of(const problem *p, int index) {
  const soft_pair *pair = p->soft.pair + index;
  return pair->contact >= 0 && pair->is_active ? p->islands.of_contact[pair->contact] : -1;
}

static const double *row_changes(const pressure_changes *c, int element, int row) {
  return c->rows + ((size_t)element * PRESSURE_ROWS + (size_t)row) * PRESSURE_INPUTS;
}

static void copy_screw(double out[6], const screw *S) {
  vec3_copy(out, S->w);
  vec3_copy(out + 3, S->v);
}

/* Changes of the wrenches on both bodies with these inputs. */
static void wrenches_by(wrench out[2], const pressure_change *change, const double *entries,
                        int first, int count) {
  double sum[PRESSURE_WRENCHES];
  for (int i = 0; i < PRESSURE_WRENCHES; ++i) {
    sum[i] = dot_product(change->by + i * PRESSURE_INPUTS + first, entries, count);
  }
  for (int b = 0; b < 2; ++b) {
    vec3_copy(out[b].m, sum + 6 * b);
    vec3_copy(out[b].f, sum + 6 * b + 3);
  }
}

/* Derivatives by these inputs at the last program's displacement. Returns 0 if one does not exist.
 */
static int look(const solved_step *s, int first, int end) {
  problem *p = &s->w->problem;
  int regular = 1;
  memcpy(p->soft.delta, p->soft.from, (size_t)s->model->nv * sizeof(double));
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    const int contact = p->soft.pair[i].contact;
    if (contact >= 0 && p->islands.of_contact[contact] >= 0) {
      regular &= pressure_change_compute(&s->w->soft.changes, s, i, first, end);
    }
  }
  return regular;
}

void pressure_derivative_begin(const solved_step *s) {
  const pressure_contact *soft = &s->w->problem.soft;
  s->w->soft.exact = soft->converged && !soft->bounded;
  if (soft->count > 0) {
    s->w->soft.exact &= look(s, 0, PRESSURE_INPUTS);
  }
}

void pressure_derivative_forces(wrench *forces, const solved_step *s) {
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    if (island_of(&s->w->problem, i) >= 0) {
      pair_bodies at;
      find_bodies(&at, s->model, s->w->problem.soft.pair[i].pair);
      for (int b = 0; b < 2; ++b) {
        const wrench *on = s->w->soft.changes.pair[i].on + b;
        wrench_axpy(forces + at.body[b], 1.0, on);
        wrench_axpy(forces + at.common, -1.0, on);
      }
    }
  }
}

/* ---------------------------------------------------------------- dependence outside the program
 */

/* Motion of the pair's centre, and rotation, in the program. */
static void program_motion(double motion[6], const soft_pair *pair, int side, const screw *S) {
  pressure_body_motion(motion, pair->side + side, pair->centre, S);
  for (int i = 0; i < 6; ++i) {
    motion[i] *= side ? 1.0 : -1.0;
  }
}

/* The program's row for that motion. */
static double program_row(const soft_pair *pair, const pressure_element *at, int row,
                          const double motion[6]) {
  double arm[3], velocity[3];
  if (row == 0) {
    return 0.0;
  }
  if (row == 3) {
    return at->spin * vec3_dot(at->frame, motion + 3);
  }
  vec3_sub(arm, at->pos, pair->centre);
  vec3_cross(velocity, motion + 3, arm);
  vec3_add(velocity, velocity, motion);
  return vec3_dot(at->frame + 3 * row, velocity);
}

/* r (with this stride, the problem's variables) -= the wrenches' generalised force */
static void subtract_wrenches(double *r, int stride, const solved_step *s, const pair_bodies *at,
                              const wrench on[2]) {
  const int_list *dofs = at->dofs.on;
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < dofs[b].count; ++i) {
      const int variable = s->w->problem.variable_of_dof[dofs[b].at[i]];
      if (variable >= 0) {
        r[(size_t)variable * (size_t)stride] -=
            screw_dot(s->w->kinematics.dof_screw + dofs[b].at[i], on + b);
      }
    }
  }
}

/* r -= S'H numbers, which the program contains already. numbers: change of the body's numbers. */
static void subtract_energy(double *r, int stride, const solved_step *s, const soft_pair *pair,
                            const pair_bodies *at, int side, const double numbers[6]) {
  const int_list *dofs = at->dofs.on;
  double load[PRESSURE_NUMBERS];
  for (int i = 0; i < PRESSURE_NUMBERS; ++i) {
    load[i] = dot_product(pair->hessian + PRESSURE_NUMBERS * i + 6 * side, numbers, 6);
  }
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < dofs[b].count; ++i) {
      const int variable = s->w->problem.variable_of_dof[dofs[b].at[i]];
      double here[6];
      if (variable >= 0) {
        pressure_numbers(here, pair->side + b, s->w->kinematics.dof_screw + dofs[b].at[i]);
        r[(size_t)variable * (size_t)stride] -= dot_product(load + 6 * b, here, 6);
      }
    }
  }
}

/* One pair's part of a column of E, by DOF j: r (variables), w (rows), both with this stride. */
static void add_column(const solved_step *s, int index, int j, double *r, double *w, int stride) {
  const pressure_contact *soft = &s->w->problem.soft;
  const soft_pair *pair = soft->pair + index;
  const pressure_changes *changes = &s->w->soft.changes;
  const screw *S = s->w->kinematics.dof_screw + j;
  pair_bodies at;
  wrench on[2];
  double entries[6], motion[6], numbers[6];
  find_bodies(&at, s->model, pair->pair);
  const int on_b = list_has(at.dofs.on[1], j);
  if (!on_b && !list_has(at.dofs.on[0], j)) {
    return;
  }
  const int first = PRESSURE_BY_TWIST + 6 * on_b;
  copy_screw(entries, S);
  program_motion(motion, pair, on_b, S);
  wrenches_by(on, changes->pair + index, entries, first, 6);
  subtract_wrenches(r, stride, s, &at, on);
  pressure_numbers(numbers, pair->side + on_b, S);
  subtract_energy(r, stride, s, pair, &at, on_b, numbers);
  for (int e = pair->first; e < pair->first + pair->count; ++e) {
    const pressure_element *element = soft->element + e;
    for (int k = 0; element->row >= 0 && k < pressure_element_rows(element); ++k) {
      w[(size_t)(element->row + k) * (size_t)stride] +=
          dot_product(row_changes(changes, e, k) + first, entries, 6) -
          program_row(pair, element, k, motion);
    }
  }
}

static double *matrix_of(const pressure_derivative *d, const qd_model *model, const island *one) {
  return d->matrix + (size_t)one->variable * (size_t)model->nv;
}

/* Columns of S E, beginning at `first`. */
static void answer_columns(const solved_step *s, island *one, int first, int width) {
  problem *p = &s->w->problem;
  const differential *d = &s->w->differential;
  const size_t n = (size_t)one->variable_count * (size_t)width;
  double *r = d->four_r + one->variable * width, *w = p->scratch.four_w + one->row * width;
  memset(r, 0, n * sizeof(double));
  memset(w, 0, (size_t)one->row_count * (size_t)width * sizeof(double));
  for (int k = 0; k < width; ++k) {
    const int dof = p->dof_of_variable[one->variable + first + k];
    for (int i = 0; i < s->model->pair.soft_count; ++i) {
      if (island_of(p, i) == (int)(one - p->islands.island)) {
        add_column(s, i, dof, d->four_r + k, p->scratch.four_w + k, width);
      }
    }
  }
  const conic_change change = {
      .count = width, .d_stationarity = r, .d_slack = w, .dx = d->four_x + one->variable * width};
  law_sensitivity_solve(p, one, 0, &change);
}

static int has_pairs(const solved_step *s, const island *one) {
  const problem *p = &s->w->problem;
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    if (island_of(p, i) == (int)(one - p->islands.island)) {
      return 1;
    }
  }
  return 0;
}

/* 1 - S E, factored; 0 if it is singular. */
static int fill_matrix(const solved_step *s, island *one) {
  pressure_derivative *d = &s->w->soft;
  const differential *scratch = &s->w->differential;
  const int n = one->variable_count;
  double *C = matrix_of(d, s->model, one);
  for (int first = 0; first < n; first += DIRECTIONS) {
    const int width = n - first < DIRECTIONS ? n - first : DIRECTIONS;
    answer_columns(s, one, first, width);
    for (int k = 0; k < width; ++k) {
      double *column = C + (size_t)(first + k) * (size_t)n;
      for (int i = 0; i < n; ++i) {
        column[i] = (i == first + k) - scratch->four_x[(one->variable + i) * width + k];
      }
    }
  }
  return dense_lu_factor(C, n, d->pivots + one->variable);
}

int pressure_derivative_prepare(const solved_step *s, island *one) {
  return !has_pairs(s, one) || (fill_matrix(s, one) && s->w->soft.exact);
}

void pressure_derivative_correct(const solved_step *s, const island *one, double *dx, int columns) {
  const pressure_derivative *d = &s->w->soft;
  const int n = one->variable_count;
  if (!has_pairs(s, one)) {
    return;
  }
  for (int c = 0; c < columns; ++c) {
    for (int i = 0; i < n; ++i) {
      d->vector[i] = dx[(size_t)i * (size_t)columns + (size_t)c];
    }
    dense_lu_solve(matrix_of(d, s->model, one), n, d->pivots + one->variable, 0, d->vector);
    for (int i = 0; i < n; ++i) {
      dx[(size_t)i * (size_t)columns + (size_t)c] = d->vector[i];
    }
  }
}

/* The same for numbers by DOF. */
static void correct_dofs(const solved_step *s, const island *one, double *numbers, int transposed) {
  const pressure_derivative *d = &s->w->soft;
  const int *dofs = s->w->problem.dof_of_variable + one->variable;
  for (int k = 0; k < one->variable_count; ++k) {
    d->vector[k] = numbers[dofs[k]];
  }
  dense_lu_solve(matrix_of(d, s->model, one), one->variable_count, d->pivots + one->variable,
                 transposed, d->vector);
  for (int k = 0; k < one->variable_count; ++k) {
    numbers[dofs[k]] = d->vector[k];
  }
}

void pressure_derivative_correct_back(const solved_step *s, double *by_delta) {
  const problem *p = &s->w->problem;
  for (int i = 0; i < p->islands.count; ++i) {
    if (has_pairs(s, p->islands.island + i)) {
      correct_dofs(s, p->islands.island + i, by_delta, 1);
    }
  }
}

int pressure_derivative_jump(const solved_step *s, const double *step, double *jump) {
  problem *p = &s->w->problem;
  look(s, PRESSURE_BY_TWIST, PRESSURE_BY_MODULUS);
  memcpy(jump, step, (size_t)s->model->nv * sizeof(double));
  for (int i = 0; i < p->islands.count; ++i) {
    island *one = p->islands.island + i;
    int exact;
    if (has_pairs(s, one)) {
      if (law_sensitivity_prepare(p, one, &exact) != QD_OK || !fill_matrix(s, one)) {
        return 0;
      }
      correct_dofs(s, one, jump, 0);
    }
  }
  for (int i = 0; i < s->model->nv; ++i) {
    jump[i] -= step[i];
  }
  return all_finite(jump, s->model->nv);
}

/* ---------------------------------------------------------------- columns by q */

/* Inputs for DOF j: motions of the bodies, and changes of their twists. Returns 0 if it moves
 * neither. */
static int take_dof(double entries[24], const solved_step *s, const pair_bodies *at, int j) {
  const twist_field *field = &s->w->point.delta;
  const screw *S = s->w->kinematics.dof_screw + j;
  const int on[2] = {body_is_behind(s->model, at->body[0], j),
                     body_is_behind(s->model, at->body[1], j)};
  memset(entries, 0, 24 * sizeof(double));
  for (int b = 0; b < 2; ++b) {
    screw behind, turned;
    if (on[b]) {
      const screw *before = on[0] && on[1] ? field->body + at->common : field->unmoved + j;
      screw_sub(&behind, field->body + at->body[b], before);
      screw_bracket(&turned, S, &behind);
      copy_screw(entries + 6 * b, S);
      copy_screw(entries + PRESSURE_BY_TWIST + 6 * b, &turned);
    }
  }
  return on[0] || on[1];
}

static void pair_columns(const solved_step *s, const island *one, const dof_matrix *D,
                         double *d_slack, int columns, int index) {
  const pressure_contact *soft = &s->w->problem.soft;
  const soft_pair *pair = soft->pair + index;
  const pressure_changes *changes = &s->w->soft.changes;
  pair_bodies at;
  find_bodies(&at, s->model, pair->pair);
  const int_list *dofs = at.dofs.on;
  for (int c = 0; c < D->count; ++c) {
    double entries[24];
    wrench on[2];
    if (!take_dof(entries, s, &at, D->dofs[c])) {
      continue;
    }
    wrenches_by(on, changes->pair + index, entries, 0, 24);
    for (int b = 0; b < 2; ++b) {
      for (int i = 0; i < dofs[b].count; ++i) {
        *dof_matrix_at(D, dofs[b].at[i], D->dofs[c]) -=
            screw_dot(s->w->kinematics.dof_screw + dofs[b].at[i], on + b);
      }
    }
    for (int e = pair->first; e < pair->first + pair->count; ++e) {
      const pressure_element *element = soft->element + e;
      for (int k = 0; element->row >= 0 && k < pressure_element_rows(element); ++k) {
        d_slack[(size_t)(element->row + k - one->row) * (size_t)columns + (size_t)c] =
            dot_product(row_changes(changes, e, k), entries, 24);
      }
    }
  }
}

void pressure_derivative_columns(const solved_step *s, const island *one, const dof_matrix *D,
                                 double *d_slack, int columns) {
  const problem *p = &s->w->problem;
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    if (island_of(p, i) == (int)(one - p->islands.island)) {
      pair_columns(s, one, D, d_slack, columns, i);
    }
  }
}

/* ---------------------------------------------------------------- directions */

/* Inputs after the twists: parameters. */
static void take_parameters(double entries[PRESSURE_INPUTS], const solved_step *s, int pair,
                            const double *const tangent[QD_ARGUMENT_COUNT]) {
  const int *geom = s->model->pair.geom + 2 * pair;
  for (int b = 0; b < 2; ++b) {
    const double E = s->model->parameters.geom_modulus[geom[b]];
    const double *by = tangent[QD_BY_GEOM_MODULUS];
    entries[PRESSURE_BY_MODULUS + b] = by != NULL && E > 0.0 ? by[geom[b]] / E : 0.0;
  }
  entries[PRESSURE_BY_FRICTION] =
      tangent[QD_BY_PAIR_FRICTION] != NULL ? tangent[QD_BY_PAIR_FRICTION][5 * pair] : 0.0;
  entries[PRESSURE_BY_LENGTH] = tangent[QD_BY_H] != NULL ? tangent[QD_BY_H][0] : 0.0;
}

static void push_pair(const solved_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                      int index, double *rows, int stride) {
  const pressure_contact *soft = &s->w->problem.soft;
  const soft_pair *pair = soft->pair + index;
  const pressure_changes *changes = &s->w->soft.changes;
  differential *d = &s->w->differential;
  double entries[PRESSURE_INPUTS];
  pair_bodies at;
  wrench on[2];
  find_bodies(&at, s->model, pair->pair);
  for (int b = 0; b < 2; ++b) {
    screw turned;
    screw_sub(&turned, d->d_delta + at.body[b], d->d_delta + at.common);
    copy_screw(entries + 6 * b, d->body_motion + at.body[b]);
    copy_screw(entries + PRESSURE_BY_TWIST + 6 * b, &turned);
  }
  take_parameters(entries, s, pair->pair, tangent);
  wrenches_by(on, changes->pair + index, entries, 0, PRESSURE_INPUTS);
  for (int b = 0; b < 2; ++b) {
    wrench_axpy(d->pose + at.body[b], 1.0, on + b);
    wrench_axpy(d->pose + at.common, -1.0, on + b);
  }
  for (int e = pair->first; e < pair->first + pair->count; ++e) {
    const pressure_element *element = soft->element + e;
    for (int k = 0; element->row >= 0 && k < pressure_element_rows(element); ++k) {
      rows[(size_t)(element->row + k) * (size_t)stride] =
          dot_product(row_changes(changes, e, k), entries, PRESSURE_INPUTS);
    }
  }
}

void pressure_derivative_push(const solved_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                              double *rows, int stride) {
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    if (island_of(&s->w->problem, i) >= 0) {
      push_pair(s, tangent, i, rows, stride);
    }
  }
}

/* ---------------------------------------------------------------- backwards */

static void add_scaled(double *sum, double scale, const double *row) {
  for (int i = 0; i < PRESSURE_INPUTS && scale != 0.0; ++i) {
    sum[i] += scale * row[i];
  }
}

static void take_wrench(wrench *out, const double entries[6]) {
  vec3_copy(out->m, entries);
  vec3_copy(out->f, entries + 3);
}

/* W is the cotangent of a body's twist in the field, relative to the pair's common ancestor. */
static void pull_own_twist(wrench *pose, const twist_field *field, const pair_bodies *at, int b,
                           const wrench *W) {
  wrench turned;
  screw_cross_wrench(&turned, field->body + at->body[b], W);
  wrench_axpy(pose + at->body[b], 1.0, &turned);
  screw_cross_wrench(&turned, field->body + at->common, W);
  wrench_axpy(pose + at->common, -1.0, &turned);
}

static void pull_parameters(const solved_step *s, int pair, const double by[PRESSURE_INPUTS],
                            double *const gradient[QD_ARGUMENT_COUNT]) {
  const int *geom = s->model->pair.geom + 2 * pair;
  for (int b = 0; b < 2 && gradient[QD_BY_GEOM_MODULUS] != NULL; ++b) {
    const double E = s->model->parameters.geom_modulus[geom[b]];
    gradient[QD_BY_GEOM_MODULUS][geom[b]] += E > 0.0 ? by[PRESSURE_BY_MODULUS + b] / E : 0.0;
  }
  if (gradient[QD_BY_PAIR_FRICTION] != NULL) {
    gradient[QD_BY_PAIR_FRICTION][5 * pair] += by[PRESSURE_BY_FRICTION];
  }
  if (gradient[QD_BY_H] != NULL) {
    gradient[QD_BY_H][0] += by[PRESSURE_BY_LENGTH];
  }
}

static void pull_pair(const solved_step *s, const double *mu, int stride, int index,
                      double *const gradient[QD_ARGUMENT_COUNT]) {
  const pressure_contact *soft = &s->w->problem.soft;
  const soft_pair *pair = soft->pair + index;
  const pressure_changes *changes = &s->w->soft.changes;
  const pressure_change *change = changes->pair + index;
  differential *d = &s->w->differential;
  double by[PRESSURE_INPUTS] = {0.0};
  pair_bodies at;
  find_bodies(&at, s->model, pair->pair);
  for (int b = 0; b < 2; ++b) {
    double own[6];
    screw z;
    screw_sub(&z, d->by_z.body + at.body[b], d->by_z.body + at.common);
    copy_screw(own, &z);
    for (int i = 0; i < 6; ++i) {
      add_scaled(by, own[i], change->by + (6 * b + i) * PRESSURE_INPUTS);
    }
  }
  for (int e = pair->first; e < pair->first + pair->count; ++e) {
    const pressure_element *element = soft->element + e;
    for (int k = 0; element->row >= 0 && k < pressure_element_rows(element); ++k) {
      add_scaled(by, mu[(size_t)(element->row + k) * (size_t)stride], row_changes(changes, e, k));
    }
  }
  pull_parameters(s, pair->pair, by, gradient);
  for (int b = 0; b < 2; ++b) {
    wrench W;
    take_wrench(&W, by + 6 * b);
    wrench_axpy(d->pose + at.body[b], 1.0, &W);
    take_wrench(&W, by + PRESSURE_BY_TWIST + 6 * b);
    wrench_axpy(d->twist + at.body[b], 1.0, &W);
    wrench_axpy(d->twist + at.common, -1.0, &W);
    pull_own_twist(d->pose, &s->w->point.delta, &at, b, &W);
    pull_own_twist(d->pose, &d->by_z, &at, b, change->on + b);
  }
}

void pressure_derivative_pull(const solved_step *s, const double *mu, int stride,
                              double *const gradient[QD_ARGUMENT_COUNT]) {
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    if (island_of(&s->w->problem, i) >= 0) {
      pull_pair(s, mu, stride, i, gradient);
    }
  }
}
