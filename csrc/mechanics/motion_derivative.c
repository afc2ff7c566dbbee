/* Let S_j be the screw of DOF j, T and A a body's twist and acceleration, and T_j and A_j the parts
 * of them that j does not move. With q_j, all bodies that j moves change by
 *
 *   dT = S_j x (T - T_j),   dA = S_j x (A - A_j) - (S_j x T_j) x (T - T_j),
 *
 * and the wrench F = I A + T x* I T changes by S_j x* F - I (Y - X x T_j) - C X, where X = S_j x
 * T_j and Y = S_j x A_j. C X is the change of F for dT = X, dA = X x T. This adds 2 X.w x u to the
 * acceleration of a point with velocity u, so C X has the moment 2 sum m x x (X.w x u) and the
 * force 2 sum m X.w x u. With v_j, dT = S_j and dA = before_j x S_j + S_j x (T - T_j), which
 * changes F by I (before_j x S_j - S_j x T_j) + C S_j. I and C of a subtree are sums over its
 * bodies, so each pair of DOFs needs only a few products of screws. */
#include "mechanics/motion_derivative.h"

void motion_derivative_lay_out(motion_derivative *d, const qd_model *model, arena *a) {
  const size_t nv = (size_t)model->nv;
  d->subtree = arena_take(a, (size_t)model->body.count * sizeof(turning));
  d->by_q = arena_take(a, nv * sizeof(screw));
  d->turned = arena_take(a, nv * sizeof(screw));
  d->by_v = arena_take(a, nv * sizeof(screw));
}

/* -2 sum m [x][u] of a rigid body: u = v + w x x, and sum m [x][w x x] = [w] sum m x x'. */
static void turning_of(turning *out, const spatial_inertia *I, const screw *T) {
  const double trace = I->tensor[0] + I->tensor[4] + I->tensor[8];
  for (int column = 0; column < 3; ++column) {
    double second[3], turned[3], unit[3] = {0.0, 0.0, 0.0}, part[3];
    unit[column] = 1.0;
    for (int row = 0; row < 3; ++row) {
      second[row] = 2.0 * I->tensor[3 * row + column] - unit[row] * trace;
    }
    vec3_cross(turned, T->w, second);
    vec3_cross(part, T->v, unit);
    vec3_cross(second, I->moment, part);
    for (int row = 0; row < 3; ++row) {
      out->moment[3 * row + column] = turned[row] - 2.0 * second[row];
    }
  }
  vec3_cross(out->momentum, T->w, I->moment);
  vec3_axpy(out->momentum, I->mass, T->v);
}

static void sum_turning(turning *subtree, const qd_model *model, const inertia *I,
                        const twist_field *velocity) {
  memset(subtree, 0, sizeof *subtree);
  for (int b = 1; b < model->body.count; ++b) {
    turning_of(subtree + b, I->body + b, velocity->body + b);
  }
  for (int b = model->body.count - 1; b > 0; --b) {
    turning *parent = subtree + model->body.parent[b];
    for (int i = 0; i < 9; ++i) {
      parent->moment[i] += subtree[b].moment[i];
    }
    vec3_axpy(parent->momentum, 1.0, subtree[b].momentum);
  }
}

/* W += sign C X */
static void add_turned(wrench *W, double sign, const turning *c, const screw *X) {
  double part[3];
  mat3_mul_vec(part, c->moment, X->w);
  vec3_axpy(W->m, sign, part);
  vec3_add_cross(W->f, 2.0 * sign, X->w, c->momentum);
}

/* g such that S . C X = g . X.w */
static void pull_turned(double g[3], const turning *c, const screw *S) {
  mat3_tmul_vec(g, c->moment, S->w);
  vec3_add_cross(g, 2.0, c->momentum, S->v);
}

/* Screws of DOF j: by_q = Y - X x T_j, turned = X, and by_v. */
static void turn_dof(motion_derivative *d, const kinematics *k, const body_motion *m, int j,
                     double h) {
  const screw *S = k->dof_screw + j;
  screw part;
  screw_bracket(d->turned + j, S, m->velocity.unmoved + j);
  screw_bracket(d->by_q + j, S, m->acceleration.unmoved + j);
  screw_bracket(&part, d->turned + j, m->velocity.unmoved + j);
  screw_axpy(d->by_q + j, -1.0, &part);
  screw_bracket(d->by_v + j, m->before + j, S);
  screw_axpy(d->by_v + j, -1.0, d->turned + j);
  screw_axpy(d->by_v + j, -1.0 / h, S);
}

/* Entries of column j for the DOFs on the path of j, including the whole block of j. */
static void add_above(const motion_derivative *d, const dof_matrix *by_q, const dof_matrix *by_v,
                      const qd_model *model, const kinematics *k, const inertia *I,
                      const wrench *forces, int j) {
  const int body = model->dof.body[j];
  const screw *S = k->dof_screw + j;
  wrench W, V, part;
  const int_list chain = body_chain(model, body);
  screw_cross_wrench(&W, S, forces + body);
  inertia_momentum(&part, I->subtree + body, d->by_q + j);
  wrench_axpy(&W, -1.0, &part);
  add_turned(&W, -1.0, d->subtree + body, d->turned + j);
  inertia_momentum(&V, I->subtree + body, d->by_v + j);
  add_turned(&V, 1.0, d->subtree + body, S);
  for (int c = 0; c < chain.count && chain.at[c] <= model->dof.block_last[j]; ++c) {
    *dof_matrix_at(by_q, chain.at[c], j) += screw_dot(k->dof_screw + chain.at[c], &W);
    if (by_v != NULL) {
      *dof_matrix_at(by_v, chain.at[c], j) += screw_dot(k->dof_screw + chain.at[c], &V);
    }
  }
}

/* Entries of row i for the DOFs that move its axis: the motion of the axis cancels S_j x* F. */
static void add_below(const motion_derivative *d, const dof_matrix *by_q, const dof_matrix *by_v,
                      const qd_model *model, const kinematics *k, const inertia *I, int i) {
  const int body = model->dof.body[i];
  wrench H;
  double g[3];
  const int_list chain = body_chain(model, body);
  if (chain.count == 0 || model->dof.block_last[chain.at[0]] >= i) {
    return;
  }
  inertia_momentum(&H, I->subtree + body, k->dof_screw + i);
  pull_turned(g, d->subtree + body, k->dof_screw + i);
  for (int c = 0; c < chain.count && model->dof.block_last[chain.at[c]] < i; ++c) {
    const int j = chain.at[c];
    *dof_matrix_at(by_q, i, j) -= screw_dot(d->by_q + j, &H) + vec3_dot(g, d->turned[j].w);
    if (by_v != NULL) {
      *dof_matrix_at(by_v, i, j) += screw_dot(d->by_v + j, &H) + vec3_dot(g, k->dof_screw[j].w);
    }
  }
}

void motion_derivative_add(motion_derivative *d, const dof_matrix *by_q, const dof_matrix *by_v,
                           const qd_model *model, const kinematics *k, const inertia *I,
                           const body_motion *m, const wrench *forces, double h) {
  sum_turning(d->subtree, model, I, &m->velocity);
  for (int c = 0; c < by_q->count; ++c) { /* DOFs ascend, so those above on a path are known */
    turn_dof(d, k, m, by_q->dofs[c], h);
    add_above(d, by_q, by_v, model, k, I, forces, by_q->dofs[c]);
    add_below(d, by_q, by_v, model, k, I, by_q->dofs[c]);
  }
}
