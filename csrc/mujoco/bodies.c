/* Derivatives of the forces that a motion requires, bias + M x, by q and v in world axes.
 *
 * DOF k moves all bodies behind it by its screw S: their twists change by S x V + S', their rates
 * by S x A + S' x V + S'', where S' = before x S and S'' = (rate before) x S + before x S'. So the
 * force on the subtree changes by S x* F + I S'' + B(S'), with B(X) = I(X x V) + X x* IV + V x* IX,
 * which depends only on the angular part of X. Source: Carpentier and Mansard, Analytical
 * Derivatives of Rigid Body Dynamics Algorithms (2018); here with blocks of rotations about body
 * axes, which all rotate each other. */
#include "mujoco/parts.h"

/* ---------------------------------------------------------------- screws and inertias */

static void read_inertia(inertia10 *out, const double *c, const double t[3]) {
  const double full[9] = {c[0], c[3], c[4], c[3], c[1], c[5], c[4], c[5], c[2]};
  memcpy(out->about, full, sizeof full);
  vec3_copy(out->moment, c + 6);
  out->mass = c[9];
  inertia_shift(out, t);
}

/* First dof of the block of rotations that contains dof j. */
static int block_of(const qd_mj *mj, int j) {
  const int joint = mj->dof_jntid[j], first = mj->jnt_dofadr[joint];
  if (mj->jnt_type[joint] == MJ_BALL) {
    return first;
  }
  return mj->jnt_type[joint] == MJ_FREE && j >= first + 3 ? first + 3 : j;
}

void mj_bodies_begin(const qd_mj *mj, qd_mj_workspace *w) {
  vec3_copy(w->origin, mj->subtree_com);
  memset(w->body, 0, (size_t)mj->nbody * sizeof *w->body);
  w->last_dof[0] = -1;
  for (int b = 1; b < mj->nbody; ++b) {
    double t[3];
    vec3_sub(t, mj->subtree_com + 3 * mj->body_rootid[b], w->origin);
    read_inertia(&w->body[b].inertia, mj->cinert + 10 * b, t);
    const int count = mj->body_dofnum[b], first = mj->body_dofadr[b];
    w->last_dof[b] = count > 0 ? first + count - 1 : w->last_dof[mj->body_parentid[b]];
    for (int j = first; j < first + count; ++j) {
      mj_dof *d = w->dof + j;
      six_copy(d->S, mj->cdof + 6 * j);
      vec3_add_cross(d->S + 3, -1.0, d->S, t);
      d->parent = mj->dof_parentid[j];
      d->block = block_of(mj, j);
    }
  }
}

/* ---------------------------------------------------------------- motion */

/* Passes the dofs from `j` to the end of its block; returns the next dof. */
static int pass_block(const qd_mj *mj, qd_mj_workspace *w, mj_body *b, int j, int end) {
  mj_dof *first = w->dof + j;
  const mj_body start = *b;
  int next = j;
  for (; next < end && w->dof[next].block == first->block; ++next) {
    mj_dof *d = w->dof + next;
    const double v = mj->qvel[next];
    double other[6];
    six_copy(d->before, start.V);
    six_copy(d->x_before, start.X);
    six_cross(d->rate, start.V, d->S);
    six_cross(d->rate_rate, start.A, d->S);
    six_cross(other, start.V, d->rate);
    six_axpy(d->rate_rate, 1.0, other);
    six_cross(d->y_rate, start.Y, d->S);
    six_axpy(b->V, v, d->S);
    six_axpy(b->A, w->x[next], d->S);
    six_axpy(b->A, v, d->rate);
    six_axpy(b->X, w->x[next], d->S);
    six_axpy(b->Y, w->y[next], d->S);
  }
  for (int i = j; i < next; ++i) {
    mj_dof *d = w->dof + i;
    double both[6];
    for (int k = 0; k < 6; ++k) {
      both[k] = d->before[k] + b->V[k];
    }
    six_cross(d->turn_rate, both, d->S);
  }
  return next;
}

/* gyration a = the moment of B(a, .): 2 w x Ja - tr(J) w x a - 2 mc x (v x a) */
static void gyration_of(double N[9], const inertia10 *inertia, const double V[6]) {
  const double *J = inertia->about, *c = inertia->moment, *v = V + 3;
  const double trace = J[0] + J[4] + J[8], cv = vec3_dot(c, v);
  for (int j = 0; j < 3; ++j) {
    const double column[3] = {J[j], J[3 + j], J[6 + j]};
    double turned[3];
    vec3_cross(turned, V, column);
    for (int i = 0; i < 3; ++i) {
      N[3 * i + j] = 2.0 * turned[i] - 2.0 * v[i] * c[j];
    }
  }
  N[0] += 2.0 * cv;
  N[4] += 2.0 * cv;
  N[8] += 2.0 * cv;
  N[1] += trace * V[2];
  N[2] -= trace * V[1];
  N[3] -= trace * V[2];
  N[5] += trace * V[0];
  N[6] += trace * V[1];
  N[7] -= trace * V[0];
}

void mj_bodies_move(const qd_mj *mj, qd_mj_workspace *w) {
  const int pulls = !(mj->disableflags & MJ_NO_GRAVITY);
  if (pulls) {
    vec3_scale(w->body[0].A + 3, mj->gravity, -1.0);
  }
  for (int i = 1; i < mj->nbody; ++i) {
    mj_body *b = w->body + i;
    const mj_body *parent = w->body + mj->body_parentid[i];
    double other[6];
    six_copy(b->V, parent->V);
    six_copy(b->A, parent->A);
    six_copy(b->X, parent->X);
    six_copy(b->Y, parent->Y);
    const int end = mj->body_dofadr[i] + mj->body_dofnum[i];
    for (int j = mj->body_dofadr[i]; j < end;) {
      j = pass_block(mj, w, b, j, end);
    }
    inertia_apply(b->momentum, &b->inertia, b->V);
    inertia_apply(b->F, &b->inertia, b->A);
    six_cross_wrench(other, b->V, b->momentum);
    six_axpy(b->F, 1.0, other);
    inertia_apply(b->G, &b->inertia, b->Y);
    gyration_of(b->gyration, &b->inertia, b->V);
  }
}

/* ---------------------------------------------------------------- derivatives */

/* r = B(a, .) of a subtree */
static void gyrate(double r[6], const mj_body *b, const double a[3]) {
  mat3_mul_vec(r, b->gyration, a);
  vec3_cross(r + 3, a, b->momentum + 3);
  vec3_scale(r + 3, r + 3, 2.0);
}

/* a . r = S . B(a, .) */
static void gyrate_transposed(double r[3], const mj_body *b, const double S[6]) {
  mat3_tmul_vec(r, b->gyration, S);
  vec3_add_cross(r, 2.0, b->momentum + 3, S + 3);
}

static void gather_subtrees(const qd_mj *mj, qd_mj_workspace *w) {
  for (int i = (int)mj->nbody - 1; i > 0; --i) {
    const mj_body *b = w->body + i;
    mj_body *parent = w->body + mj->body_parentid[i];
    inertia_add(&parent->inertia, &b->inertia);
    for (int k = 0; k < 9; ++k) {
      parent->gyration[k] += b->gyration[k];
    }
    six_axpy(parent->momentum, 1.0, b->momentum);
    six_axpy(parent->F, 1.0, b->F);
    six_axpy(parent->G, 1.0, b->G);
    six_axpy(parent->wrench, 1.0, b->wrench);
  }
}

/* Terms of one dof's own column and row. */
typedef struct dof_forces {
  double force_q[6], turned[6]; /* change of the subtree's force by q; its term S x* F */
  double force_v[6], force_y[6], turned_y[6];
  double inertia_S[6], gyration_S[3]; /* I S; B' S */
  double held[6];                     /* S x* wrench */
} dof_forces;

static void forces_of(dof_forces *f, const mj_body *b, const mj_dof *d) {
  double other[6];
  six_cross_wrench(f->turned, d->S, b->F);
  six_copy(f->force_q, f->turned);
  inertia_apply(other, &b->inertia, d->rate_rate);
  six_axpy(f->force_q, 1.0, other);
  gyrate(other, b, d->rate);
  six_axpy(f->force_q, 1.0, other);
  inertia_apply(f->force_v, &b->inertia, d->turn_rate);
  gyrate(other, b, d->S);
  six_axpy(f->force_v, 1.0, other);
  six_cross_wrench(f->turned_y, d->S, b->G);
  inertia_apply(f->force_y, &b->inertia, d->y_rate);
  six_axpy(f->force_y, 1.0, f->turned_y);
  inertia_apply(f->inertia_S, &b->inertia, d->S);
  gyrate_transposed(f->gyration_S, b, d->S);
  six_cross_wrench(f->held, d->S, b->wrench);
}

/* Entries of dof i with an earlier dof on its path to the world, or with itself. */
static void fill_pair(qd_mj_workspace *w, int nv, int i, int a, const dof_forces *f) {
  const mj_dof *deep = w->dof + i, *up = w->dof + a;
  const int mates = deep->block == up->block;
  const double *S = up->S;
  double *row_up = w->rhs + (size_t)a * (size_t)w->columns;
  double *row_deep = w->rhs + (size_t)i * (size_t)w->columns;
  double of_q = six_dot(S, f->force_q), of_y = six_dot(S, f->force_y);
  const double held = six_dot(S, f->held);
  if (mates) { /* rotating one rotates the other */
    of_q += held - six_dot(S, f->turned);
    of_y -= six_dot(S, f->turned_y);
  }
  row_up[i] -= of_q;
  row_up[nv + i] -= six_dot(S, f->force_v);
  w->by_q[a * nv + i] = of_y;
  if (a != i) {
    row_deep[a] += held - six_dot(f->inertia_S, up->rate_rate) - vec3_dot(f->gyration_S, up->rate);
    row_deep[nv + a] -= six_dot(f->inertia_S, up->turn_rate) + vec3_dot(f->gyration_S, S);
    w->by_q[i * nv + a] = six_dot(f->inertia_S, up->y_rate);
  }
}

void mj_bodies_derivative(const qd_mj *mj, qd_mj_workspace *w) {
  const int nv = (int)mj->nv;
  gather_subtrees(mj, w);
  memset(w->by_q, 0, (size_t)nv * (size_t)nv * sizeof *w->by_q);
  for (int i = 0; i < nv; ++i) {
    dof_forces f;
    forces_of(&f, w->body + mj->dof_bodyid[i], w->dof + i);
    for (int a = i; a >= 0; a = w->dof[a].parent) {
      fill_pair(w, nv, i, a, &f);
    }
  }
}
