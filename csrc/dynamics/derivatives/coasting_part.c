#include "dynamics/derivatives/differential.h"

#include "dynamics/workspace.h"
#include "mechanics/applied.h"
#include "mechanics/coasting.h"

static int coasts(const solved_step *s, int tree) {
  return s->options->gyroscopic == QD_GYROSCOPIC_IMPLICIT && tree_coasts(s->model, tree);
}

int dof_coasts(const solved_step *s, int dof) { return coasts(s, s->model->dof.tree[dof]); }

int coasting_part(coasting *c, coasting_derivative *d, const solved_step *s, int tree) {
  qd_workspace *w = s->w;
  if (!coasts(s, tree)) {
    return 0;
  }
  coasting_compute(c, w->problem.state.coasting, s->model, &w->kinematics, &w->inertia, tree,
                   w->problem.state.v, s->options->h);
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

/* A velocity after coasting by masses: through the rotation after h, with this derivative, and
 * through the arm from the body's origin to the centre of mass. */
static void form_masses(linear_form *f, const solved_step *s, const coasting *c,
                        const coasting_derivative *d, const double by_next[3],
                        const double by_arm[3]) {
  const qd_model *model = s->model;
  double change[3], mean[3], z[3], crossed[3];
  screw Z[2], T[2];
  mat3_tmul_vec(z, d->inverse, by_next);
  turns_of(change, mean, c);
  vec3_cross(crossed, mean, z);
  turn_screw(Z, c, 1.0, z); /* z.((dI m) x m) = (m x z).dI m */
  turn_screw(T, c, 1.0, change);
  turn_screw(Z + 1, c, -s->options->h, crossed);
  turn_screw(T + 1, c, 1.0, mean);
  for (int b = 1; b < model->body.count; ++b) {
    double com[3], on_com[3] = {0.0}, part[3];
    if (model->body.tree[b] != model->dof.tree[c->dof]) {
      continue;
    }
    body_com(com, model, &s->w->kinematics, b);
    form_inertia(f, on_com, s, b, com, Z, T);
    form_inertia(f, on_com, s, b, com, Z + 1, T + 1);
    if (c->count == 6 && c->mass > 0.0) {
      vec3_axpy(on_com, model->parameters.body_mass[b] / c->mass, by_arm);
      vec3_sub(part, com, c->centre);
      form_add(f, QD_BY_BODY_MASS, b, vec3_dot(part, by_arm) / c->mass);
    }
    form_com(f, s, b, on_com);
  }
}

/* Velocity i of the tree. */
static void form_coasting(linear_form *f, const solved_step *s, const coasting *c,
                          const coasting_derivative *d, int i) {
  static const double none[3] = {0.0, 0.0, 0.0};
  const int at = c->count - 3;
  for (int j = 0; j < c->count; ++j) {
    form_add(f, QD_BY_V, c->dof + j, d->by_v[i][j]);
  }
  for (int j = 0; j < 3; ++j) {
    form_add(f, QD_BY_Q, c->dof + at + j, d->by_turn[i][j]);
  }
  form_add(f, QD_BY_H, 0, d->by_h[i]);
  if (form_knows_masses(f)) {
    const double own[3] = {i == at, i == at + 1, i == at + 2};
    form_masses(f, s, c, d, i < at ? d->by_next[i] : own, i < at ? d->by_arm[i] : none);
  }
}

void coasting_push(double *change, const solved_step *s,
                   const double *const tangent[QD_ARGUMENT_COUNT]) {
  coasting c;
  coasting_derivative d;
  for (int j = 0; j < s->model->nv; ++j) {
    change[j] = tangent[QD_BY_V] != NULL ? tangent[QD_BY_V][j] : 0.0;
  }
  for (int tree = 0; tree < s->model->tree.count; ++tree) {
    const int count = coasting_part(&c, &d, s, tree) ? c.count : 0;
    for (int i = 0; i < count; ++i) {
      linear_form f = {.tangent = tangent, .weight = 1.0};
      form_coasting(&f, s, &c, &d, i);
      change[c.dof + i] = f.change;
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
  for (int tree = 0; tree < s->model->tree.count; ++tree) {
    const int count = coasting_part(&c, &d, s, tree) ? c.count : 0;
    for (int i = 0; i < count; ++i) {
      linear_form f = {.gradient = gradient, .weight = cotangent[c.dof + i]};
      form_coasting(&f, s, &c, &d, i);
    }
  }
}
