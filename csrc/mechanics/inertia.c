#include "mechanics/inertia.h"

void inertia_lay_out(inertia *I, const qd_model *model, arena *a) {
  const size_t nb = (size_t)model->body.count;
  I->subtree = arena_take(a, nb * sizeof(spatial_inertia));
  I->body = arena_take(a, nb * sizeof(spatial_inertia));
  I->own = model->compensates ? arena_take(a, nb * sizeof(spatial_inertia)) : NULL;
  I->falls = model->compensates ? I->own : I->subtree;
  I->momentum = arena_take(a, nb * sizeof(wrench));
  I->turned = arena_take(a, (size_t)model->nv * sizeof(screw));
  I->row = arena_doubles(a, (size_t)model->nv);
}

/* tensor += m (|c|^2 1 - c c') */
static void add_point_mass(double tensor[9], double m, const double c[3]) {
  const double c2 = vec3_dot(c, c);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      tensor[3 * i + j] += m * ((i == j ? c2 : 0.0) - c[i] * c[j]);
    }
  }
}

static void body_inertia(spatial_inertia *out, const qd_model *model, const kinematics *k, int b) {
  const model_parameters *p = &model->parameters;
  const double *R = k->body_rot + 9 * b;
  double com[3], RI[9], Rt[9];
  mat3_mul_add(com, R, p->body_com + 3 * b, k->body_pos + 3 * b);
  out->mass = p->body_mass[b];
  vec3_scale(out->moment, com, out->mass);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      Rt[3 * i + j] = R[3 * j + i];
    }
  }
  mat3_mul(RI, R, p->body_inertia + 9 * b);
  mat3_mul(out->tensor, RI, Rt);
  add_point_mass(out->tensor, out->mass, com);
}

/* 1 if the step needs the inertia of a body. */
static int inertia_counts(const qd_model *model, int all, int body) {
  const int tree = model->body.tree[body];
  return all || (tree >= 0 && !model->tree.is_driven[tree]);
}

/* Mass and moment of each subtree that gravity acts on. */
static void compute_falls(const qd_model *model, inertia *I) {
  for (int b = 0; b < model->body.count; ++b) {
    I->own[b] = I->body[b];
    I->own[b].mass *= model->body.fall[b];
    vec3_scale(I->own[b].moment, I->own[b].moment, model->body.fall[b]);
  }
  for (int b = model->body.count - 1; b > 0; --b) {
    spatial_inertia *parent = I->own + model->body.parent[b];
    parent->mass += I->own[b].mass;
    vec3_axpy(parent->moment, 1.0, I->own[b].moment);
  }
}

static int has_weight(const spatial_inertia *I) {
  return I->mass != 0.0 || vec3_dot(I->moment, I->moment) != 0.0;
}

void inertia_compute(const qd_model *model, const kinematics *k, int all, inertia *I) {
  memset(I->body, 0, (size_t)model->body.count * sizeof(spatial_inertia));
  for (int b = 1; b < model->body.count; ++b) {
    if (inertia_counts(model, all, b)) {
      body_inertia(I->body + b, model, k, b);
    }
  }
  memcpy(I->subtree, I->body, (size_t)model->body.count * sizeof(spatial_inertia));
  for (int b = model->body.count - 1; b > 0; --b) {
    if (!inertia_counts(model, all, b)) {
      continue;
    }
    spatial_inertia *parent = I->subtree + model->body.parent[b];
    const spatial_inertia *child = I->subtree + b;
    parent->mass += child->mass;
    vec3_axpy(parent->moment, 1.0, child->moment);
    for (int i = 0; i < 9; ++i) {
      parent->tensor[i] += child->tensor[i];
    }
  }
  if (model->compensates) {
    compute_falls(model, I);
  }
}

/* h = I s: angular momentum about the origin I w + mc x v, linear momentum m v + w x mc */
void inertia_momentum(wrench *h, const spatial_inertia *I, const screw *s) {
  mat3_mul_vec(h->m, I->tensor, s->w);
  vec3_add_cross(h->m, 1.0, I->moment, s->v);
  vec3_cross(h->f, s->w, I->moment);
  vec3_axpy(h->f, I->mass, s->v);
}

int inertia_mass_row(double *row, const qd_model *model, const kinematics *k, const inertia *I,
                     int dof) {
  wrench h;
  int c = 0;
  const int_list chain = body_chain(model, model->dof.body[dof]);
  inertia_momentum(&h, I->subtree + model->dof.body[dof], k->dof_screw + dof);
  for (; c < chain.count && chain.at[c] <= dof; ++c) {
    row[c] = screw_dot(k->dof_screw + chain.at[c], &h);
  }
  return c;
}

void inertia_mass_matrix(double *M, const qd_model *model, const kinematics *k, const inertia *I) {
  const int nv = model->nv;
  memset(M, 0, (size_t)nv * (size_t)nv * sizeof(double));
  for (int i = 0; i < nv; ++i) {
    const int_list chain = body_chain(model, model->dof.body[i]);
    double *row = M + (size_t)i * (size_t)nv;
    const int count = inertia_mass_row(I->row, model, k, I, i);
    for (int c = 0; c < count; ++c) {
      row[chain.at[c]] = M[(size_t)chain.at[c] * (size_t)nv + (size_t)i] = I->row[c];
    }
  }
}

double inertia_diagonal(const qd_model *model, const kinematics *k, const inertia *I, int dof) {
  wrench h;
  inertia_momentum(&h, I->subtree + model->dof.body[dof], k->dof_screw + dof);
  return screw_dot(k->dof_screw + dof, &h);
}

static void gravity_wrench(wrench *W, const qd_model *model, const spatial_inertia *I) {
  vec3_scale(W->f, model->parameters.gravity, I->mass);
  vec3_cross(W->m, I->moment, model->parameters.gravity);
}

void inertia_gravity_wrench(wrench *W, const qd_model *model, const inertia *I, int body) {
  gravity_wrench(W, model, I->body + body);
  if (model->compensates) {
    vec3_scale(W->f, W->f, model->body.fall[body]);
    vec3_scale(W->m, W->m, model->body.fall[body]);
  }
}

void inertia_gravity_force(double *tau, const qd_model *model, const kinematics *k,
                           const inertia *I) {
  for (int i = 0; i < model->nv; ++i) {
    wrench W;
    tau[i] = 0.0;
    if (has_weight(I->falls + model->dof.body[i])) {
      gravity_wrench(&W, model, I->falls + model->dof.body[i]);
      tau[i] = screw_dot(k->dof_screw + i, &W);
    }
  }
}

/* P = twist of the DOFs on the path of j that j does not move, including j and its block */
static void unmoved_twist(screw *P, const qd_model *model, const kinematics *k,
                          const mass_motion *motion, int j) {
  const int body = model->dof.body[j];
  *P = motion->twist[body];
  const int_list chain = body_chain(model, body);
  for (int c = chain.count - 1; c >= 0 && chain.at[c] > model->dof.block_last[j]; --c) {
    screw_axpy(P, -motion->delta[chain.at[c]], k->dof_screw + chain.at[c]);
  }
}

/* Let H_j be the momentum and I_j the inertia of the bodies that DOF j moves, T the twists, and P_j
 * as above. These bodies move with S_j, so dh_b = S_j x* h_b - I_b (S_j x T_b) + I_b (S_j x (T_b -
 * P_j)). The sum is d(M delta)_i / dq_j = -S_i . I_i (S_j x P_j) if j moves i (then the motion of
 * S_i itself cancels S_j x* H_i), and S_i . (S_j x* H_j - I_j (S_j x P_j)) for other DOFs on the
 * path. */
void inertia_add_mass_derivative(const dof_matrix *D, const qd_model *model, const kinematics *k,
                                 const inertia *I, const double *row_scale,
                                 const mass_motion *motion) {
  wrench W, IX;
  for (int d = 0; d < D->count; ++d) {
    const int j = D->dofs[d], body = model->dof.body[j];
    if (model->tree.is_driven[model->dof.tree[j]]) {
      continue; /* no row of its tree is wanted */
    }
    screw P;
    unmoved_twist(&P, model, k, motion, j);
    screw_bracket(I->turned + j, k->dof_screw + j, &P);
    screw_cross_wrench(&W, k->dof_screw + j, motion->momentum + body);
    inertia_momentum(&IX, I->subtree + body, I->turned + j);
    wrench_axpy(&W, -1.0, &IX);
    const int_list chain = body_chain(model, body);
    for (int c = 0; c < chain.count && chain.at[c] <= model->dof.block_last[j]; ++c) {
      *dof_matrix_at(D, chain.at[c], j) +=
          row_scale[chain.at[c]] * screw_dot(k->dof_screw + chain.at[c], &W);
    }
  }
  for (int d = 0; d < D->count; ++d) {
    const int i = D->dofs[d], body = model->dof.body[i];
    const int_list chain = body_chain(model, body);
    const int moving = row_scale[i] != 0.0 ? chain.count : 0;
    for (int c = 0; c < moving && model->dof.block_last[chain.at[c]] < i; ++c) {
      inertia_momentum(&IX, I->subtree + body, I->turned + chain.at[c]);
      *dof_matrix_at(D, i, chain.at[c]) -= row_scale[i] * screw_dot(k->dof_screw + i, &IX);
    }
  }
}

/* dW if the body moves with s: the force is constant, the moment changes with the centre of
 * mass. */
static void gravity_wrench_derivative(wrench *dW, const qd_model *model, const spatial_inertia *I,
                                      const screw *s) {
  double d_moment[3];
  vec3_cross(d_moment, s->w, I->moment);
  vec3_axpy(d_moment, I->mass, s->v);
  vec3_set(dW->f, 0.0, 0.0, 0.0);
  vec3_cross(dW->m, d_moment, model->parameters.gravity);
}

void inertia_subtract_gravity_derivative(const dof_matrix *D, const qd_model *model,
                                         const kinematics *k, const inertia *I,
                                         const double *falls) {
  for (int d = 0; d < D->count; ++d) {
    const int i = D->dofs[d], body = model->dof.body[i];
    if (!has_weight(I->falls + body)) {
      continue;
    }
    const int_list chain = body_chain(model, body);
    wrench W;
    gravity_wrench(&W, model, I->falls + body);
    for (int c = 0; c < chain.count; ++c) {
      const int j = chain.at[c];
      if (j > model->dof.block_last[i]) {
        break;
      }
      wrench dW;
      screw turned;
      gravity_wrench_derivative(&dW, model, I->falls + body, k->dof_screw + j);
      const double own = screw_dot(k->dof_screw + i, &dW);
      *dof_matrix_at(D, i, j) -= falls[i] * own;
      if (dof_moves(model, j, i)) {
        screw_bracket(&turned, k->dof_screw + j, k->dof_screw + i);
        *dof_matrix_at(D, i, j) -= falls[i] * screw_dot(&turned, &W);
        /* conversely, the axis of j is fixed while i moves the bodies of the subtree */
        gravity_wrench_derivative(&dW, model, I->falls + body, k->dof_screw + i);
        *dof_matrix_at(D, j, i) -= falls[j] * screw_dot(k->dof_screw + j, &dW);
      }
    }
  }
}
