#include "dynamics/derivatives/step_point.h"

#include "dynamics/workspace.h"
#include "mechanics/applied.h"
#include "mechanics/coasting.h"

static int coasts(const solved_step *s, int tree) {
  return s->options->gyroscopic == QD_GYROSCOPIC_IMPLICIT && tree_coasts(s->model, tree);
}

int dof_coasts(const solved_step *s, int dof) { return coasts(s, s->model->dof_tree[dof]); }

/* Returns 1 if a tree coasts in this step, with its motion and derivatives. */
static int tree_part(coasting *c, coasting_derivative *d, const solved_step *s, int tree) {
  qd_workspace *w = s->w;
  if (!coasts(s, tree)) {
    return 0;
  }
  coasting_compute(c, w->problem.coasting, s->model, &w->kinematics, &w->inertia, tree,
                   w->problem.v, s->options->h);
  coasting_differentiate(d, c, s->options->h);
  return 1;
}

/* A rotation, along the axes of the coasting body, as a screw. */
static void turn_screw(screw *out, const coasting *c, double scale, const double turn[3]) {
  mat3_tmul_vec(out->w, c->axes, turn);
  vec3_scale(out->w, out->w, scale);
  vec3_cross(out->v, c->centre, out->w);
}

/* The two rotations that the inertia multiplies in T change - h (T m) x m. */
static void turns_of(double change[3], double mean[3], const coasting *c) {
  for (int i = 0; i < 3; ++i) {
    change[i] = c->next[i] - c->spin[i];
    mean[i] = 0.5 * (c->next[i] + c->spin[i]);
  }
}

static int masses_wanted(const double *const of[QD_ARGUMENT_COUNT]) {
  return of[QD_BY_BODY_MASS] != NULL || of[QD_BY_BODY_COM] != NULL ||
         of[QD_BY_BODY_INERTIA] != NULL;
}

/* ---------------------------------------------------------------- forwards */

/* Changes of the residual by dI, and of the arm. */
static void push_masses(double residual[3], double arm[3], const solved_step *s, const coasting *c,
                        const double *const tangent[QD_ARGUMENT_COUNT]) {
  const qd_model *model = s->model;
  double change[3], mean[3], com[3], d_com[3], part[3], own[3];
  screw of_change, of_mean;
  wrench by_change = {{0.0}, {0.0}}, by_mean = {{0.0}, {0.0}};
  turns_of(change, mean, c);
  turn_screw(&of_change, c, 1.0, change);
  turn_screw(&of_mean, c, 1.0, mean);
  for (int b = 1; b < model->body_count; ++b) {
    if (model->body_tree[b] != model->dof_tree[c->dof]) {
      continue;
    }
    body_com(com, model, &s->w->kinematics, b);
    vec3_set(d_com, 0.0, 0.0, 0.0);
    if (tangent[QD_BY_BODY_COM] != NULL) {
      mat3_mul_vec(d_com, s->w->kinematics.body_rot + 9 * b, tangent[QD_BY_BODY_COM] + 3 * b);
    }
    inertia_form_push(&by_change, s, tangent, b, com, d_com, &of_change);
    inertia_form_push(&by_mean, s, tangent, b, com, d_com, &of_mean);
    if (c->count == 6 && c->mass > 0.0) {
      const double d_mass = tangent[QD_BY_BODY_MASS] != NULL ? tangent[QD_BY_BODY_MASS][b] : 0.0;
      vec3_axpy(arm, model->parameters.body_mass[b] / c->mass, d_com);
      vec3_sub(part, com, c->centre);
      vec3_axpy(arm, d_mass / c->mass, part);
    }
  }
  vec3_cross(part, c->centre, by_change.f); /* moments about the centre, along the axes */
  vec3_sub(part, by_change.m, part);
  mat3_mul_vec(residual, c->axes, part);
  vec3_cross(part, c->centre, by_mean.f);
  vec3_sub(part, by_mean.m, part);
  mat3_mul_vec(own, c->axes, part);
  vec3_add_cross(residual, -s->options->h, own, mean);
}

static void push_tree(double *change, const solved_step *s, const coasting *c,
                      const coasting_derivative *d,
                      const double *const tangent[QD_ARGUMENT_COUNT]) {
  const int turn = c->dof + c->count - 3, at = c->count - 3;
  const double dh = tangent[QD_BY_H] != NULL ? tangent[QD_BY_H][0] : 0.0;
  double by_next[3] = {0.0}, arm[3] = {0.0}, residual[3] = {0.0};
  if (masses_wanted(tangent)) {
    push_masses(residual, arm, s, c, tangent);
    mat3_mul_vec(by_next, d->inverse, residual);
    vec3_scale(by_next, by_next, -1.0);
  }
  for (int i = 0; i < c->count; ++i) {
    double sum = d->by_h[i] * dh;
    for (int j = 0; j < c->count && tangent[QD_BY_V] != NULL; ++j) {
      sum += d->by_v[i][j] * tangent[QD_BY_V][c->dof + j];
    }
    for (int j = 0; j < 3 && tangent[QD_BY_Q] != NULL; ++j) {
      sum += d->by_turn[i][j] * tangent[QD_BY_Q][turn + j];
    }
    sum +=
        i >= at ? by_next[i - at] : vec3_dot(d->by_next[i], by_next) + vec3_dot(d->by_arm[i], arm);
    change[c->dof + i] = sum;
  }
}

void coasting_push(double *change, const solved_step *s,
                   const double *const tangent[QD_ARGUMENT_COUNT]) {
  coasting c;
  coasting_derivative d;
  for (int j = 0; j < s->model->nv; ++j) {
    change[j] = tangent[QD_BY_V] != NULL ? tangent[QD_BY_V][j] : 0.0;
  }
  for (int tree = 0; tree < s->model->tree_count; ++tree) {
    if (tree_part(&c, &d, s, tree)) {
      push_tree(change, s, &c, &d, tangent);
    }
  }
}

/* ---------------------------------------------------------------- backwards */

static void pull_masses(double *const gradient[QD_ARGUMENT_COUNT], const solved_step *s,
                        const coasting *c, const coasting_derivative *d, const double *cotangent) {
  const qd_model *model = s->model;
  const int at = c->count - 3;
  double change[3], mean[3], on_next[3], on_arm[3] = {0.0}, z[3], crossed[3];
  screw Z[2], T[2];
  vec3_copy(on_next, cotangent + at);
  for (int i = 0; i < at; ++i) {
    vec3_axpy(on_next, cotangent[i], d->by_next[i]);
    vec3_axpy(on_arm, cotangent[i], d->by_arm[i]);
  }
  mat3_tmul_vec(z, d->inverse, on_next);
  turns_of(change, mean, c);
  vec3_cross(crossed, mean, z);
  turn_screw(Z, c, 1.0, z); /* z.((dI m) x m) = (m x z).dI m */
  turn_screw(T, c, 1.0, change);
  turn_screw(Z + 1, c, -s->options->h, crossed);
  turn_screw(T + 1, c, 1.0, mean);
  for (int b = 1; b < model->body_count; ++b) {
    double com[3], on_com[3] = {0.0}, part[3];
    if (model->body_tree[b] != model->dof_tree[c->dof]) {
      continue;
    }
    body_com(com, model, &s->w->kinematics, b);
    inertia_form_pull(gradient, on_com, s, b, com, Z, T);
    inertia_form_pull(gradient, on_com, s, b, com, Z + 1, T + 1);
    if (at > 0 && c->mass > 0.0) {
      vec3_axpy(on_com, model->parameters.body_mass[b] / c->mass, on_arm);
      vec3_sub(part, com, c->centre);
      if (gradient[QD_BY_BODY_MASS] != NULL) {
        gradient[QD_BY_BODY_MASS][b] += vec3_dot(part, on_arm) / c->mass;
      }
    }
    if (gradient[QD_BY_BODY_COM] != NULL) {
      mat3_tmul_vec(part, s->w->kinematics.body_rot + 9 * b, on_com);
      vec3_axpy(gradient[QD_BY_BODY_COM] + 3 * b, 1.0, part);
    }
  }
}

void coasting_pull(double *const gradient[QD_ARGUMENT_COUNT], const solved_step *s,
                   const double *cotangent) {
  coasting c;
  coasting_derivative d;
  for (int j = 0; j < s->model->nv && gradient[QD_BY_V] != NULL; ++j) {
    gradient[QD_BY_V][j] += dof_coasts(s, j) ? 0.0 : cotangent[j];
  }
  for (int tree = 0; tree < s->model->tree_count; ++tree) {
    if (!tree_part(&c, &d, s, tree)) {
      continue;
    }
    const double *y = cotangent + c.dof;
    for (int i = 0; i < c.count; ++i) {
      for (int j = 0; j < c.count && gradient[QD_BY_V] != NULL; ++j) {
        gradient[QD_BY_V][c.dof + j] += y[i] * d.by_v[i][j];
      }
      for (int j = 0; j < 3 && gradient[QD_BY_Q] != NULL; ++j) {
        gradient[QD_BY_Q][c.dof + c.count - 3 + j] += y[i] * d.by_turn[i][j];
      }
      if (gradient[QD_BY_H] != NULL) {
        gradient[QD_BY_H][0] += y[i] * d.by_h[i];
      }
    }
    if (masses_wanted((const double *const *)gradient)) {
      pull_masses(gradient, s, &c, &d, y);
    }
  }
}
