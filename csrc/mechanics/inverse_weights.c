/* The mean of J M^-1 J' over the three directions of a force at a body's centre of mass. M is the
 * mass matrix of the body's kinematic tree, including armature (MuJoCo's body_invweight0, the
 * inertia in its contact law). */
#include "mechanics/inverse_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mechanics/inertia.h"
#include "mechanics/kinematics.h"
#include "mechanics/tendon.h"

typedef struct tree_factor {
  int *place;  /* (nv) index of a DOF in its tree */
  double *L;   /* (largest tree, squared) Cholesky factor of its mass matrix */
  double *row; /* (largest tree) */
} tree_factor;

static int largest_tree(const qd_model *m) {
  int largest = 0;
  for (int tree = 0; tree < m->tree.count; ++tree) {
    const int count = m->tree.dof_start[tree + 1] - m->tree.dof_start[tree];
    largest = count > largest ? count : largest;
  }
  return largest;
}

/* The lower triangle of the tree's mass matrix. */
static void fill_mass(tree_factor *f, const qd_model *m, const kinematics *k, const inertia *I,
                      const int *dofs, int n) {
  memset(f->L, 0, (size_t)(n * n) * sizeof(double));
  for (int i = 0; i < n; ++i) {
    f->place[dofs[i]] = i;
  }
  for (int i = 0; i < n; ++i) {
    const int_list chain = body_chain(m, m->dof.body[dofs[i]]);
    const int count = inertia_mass_row(I->row, m, k, I, dofs[i]);
    for (int c = 0; c < count; ++c) {
      f->L[i * n + f->place[chain.at[c]]] = I->row[c];
    }
    f->L[i * n + i] += m->parameters.joint_armature[m->dof.joint[dofs[i]]];
  }
}

/* Cholesky factor in place; DOFs without mass get no response. */
static void factor(double *L, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = L[i * n + j];
      for (int c = 0; c < j; ++c) {
        sum -= L[i * n + c] * L[j * n + c];
      }
      L[i * n + j] = i == j ? (sum > 0.0 ? sqrt(sum) : INFINITY) : sum / L[j * n + j];
    }
  }
}

/* |L^-1 row|^2 of f->row. */
static double squared_response(tree_factor *f, int n) {
  double squared = 0.0;
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < i; ++c) {
      f->row[i] -= f->L[i * n + c] * f->row[c];
    }
    f->row[i] /= f->L[i * n + i];
    squared += f->row[i] * f->row[i];
  }
  return squared;
}

/* Squared response of a body's velocity along an axis at the point `centre`, or of its angular
 * velocity if centre is NULL. */
static double response(tree_factor *f, const qd_model *m, const kinematics *k, int body, int n,
                       const double *centre, int axis) {
  const int_list chain = body_chain(m, body);
  memset(f->row, 0, (size_t)n * sizeof(double));
  for (int c = 0; c < chain.count; ++c) {
    double velocity[3];
    vec3_copy(velocity, k->dof_screw[chain.at[c]].w);
    if (centre != NULL) {
      screw_point_velocity(velocity, k->dof_screw + chain.at[c], centre);
    }
    f->row[f->place[chain.at[c]]] = velocity[axis];
  }
  return squared_response(f, n);
}

static double turn_weight(tree_factor *f, const qd_model *m, const kinematics *k, int body, int n) {
  double sum = 0.0;
  for (int axis = 0; axis < 3; ++axis) {
    sum += response(f, m, k, body, n, NULL, axis);
  }
  return sum / 3.0;
}

static double body_weight(tree_factor *f, const qd_model *m, const kinematics *k, int body, int n) {
  double centre[3], sum = 0.0;
  mat3_mul_add(centre, k->body_rot + 9 * body, m->parameters.body_com + 3 * body,
               k->body_pos + 3 * body);
  for (int axis = 0; axis < 3; ++axis) {
    sum += response(f, m, k, body, n, centre, axis);
  }
  return sum / 3.0;
}

/* -1: not given, compute it. */
static double given_weight(const double *weights, int i) {
  return weights != NULL && weights[i] >= 0.0 ? weights[i] : -1.0;
}

/* Diagonal of M^-1, averaged over the rotations of a ball joint, and over the translations and over
 * the rotations of a free joint. */
static void fill_dof_weights(qd_model *m, const qd_model_spec *spec, const int *dofs, int n,
                             tree_factor *f) {
  for (int i = 0; i < n; ++i) {
    memset(f->row, 0, (size_t)n * sizeof(double));
    f->row[i] = 1.0;
    m->dof.invweight[dofs[i]] = squared_response(f, n);
  }
  for (int i = 0; i < n; ++i) {
    const int joint = m->dof.joint[dofs[i]], type = m->joint.type[joint];
    if ((type == QD_BALL || type == QD_FREE) && (dofs[i] - m->joint.v[joint]) % 3 == 0) {
      double *three = m->dof.invweight + dofs[i];
      three[0] = three[1] = three[2] = (three[0] + three[1] + three[2]) / 3.0;
    }
  }
  for (int i = 0; i < n; ++i) {
    const int joint = m->dof.joint[dofs[i]];
    const int turns = m->joint.type[joint] == QD_FREE && dofs[i] - m->joint.v[joint] >= 3;
    const double *of = turns ? spec->joint_turn_invweight : spec->joint_invweight;
    const double given = given_weight(of, joint);
    m->dof.invweight[dofs[i]] = given >= 0.0 ? given : m->dof.invweight[dofs[i]];
  }
}

/* J M^-1 J' of tendons: the contribution of this tree. */
static void add_tendon_weights(qd_model *m, const tendons *t, int tree, int n, tree_factor *f) {
  for (int tendon = 0; tendon < m->tendon.count; ++tendon) {
    int any = 0;
    memset(f->row, 0, (size_t)n * sizeof(double));
    for (int d = m->tendon.dof_start[tendon]; d < m->tendon.dof_start[tendon + 1]; ++d) {
      const int dof = m->tendon.dof[d];
      if (m->tendon.dof_counts[d] && m->dof.tree[dof] == tree) {
        f->row[f->place[dof]] = t->rate[d];
        any = 1;
      }
    }
    if (any) {
      m->tendon.invweight[tendon] += squared_response(f, n);
    }
  }
}

static void use_given_tendon_weights(qd_model *m, const qd_model_spec *spec) {
  for (int i = 0; i < m->tendon.count && spec->tendon_invweight != NULL; ++i) {
    if (spec->tendon_invweight[i] >= 0.0) {
      m->tendon.invweight[i] = spec->tendon_invweight[i];
    }
  }
}

/* A force at the centre of mass does not move a body that only rotates about it, and a torque does
 * not move a body that only translates. Rows with such zero weights would be practically rigid
 * (MuJoCo bounds their R by 1e-15) and might contradict others. So a weight is at least this share
 * of the other one at the radius of gyration. */
#define LEAST_WEIGHT_SHARE 1e-7

static void fill_least_weights(qd_model *m, int body) {
  const double *I = m->parameters.body_inertia + 9 * body, mass = m->parameters.body_mass[body];
  const double squared = mass > 0.0 ? (I[0] + I[4] + I[8]) / 3.0 / mass : 0.0;
  double *least = m->body.least_weight + 2 * body;
  least[0] = LEAST_WEIGHT_SHARE * squared * m->body.turn_invweight[body];
  least[1] = squared > 0.0 ? LEAST_WEIGHT_SHARE / squared * m->body.invweight[body] : 0.0;
}

double model_weight_between(const qd_model *m, int a, int b, int turns) {
  const double *of = turns ? m->body.turn_invweight : m->body.invweight;
  const double *least = m->body.least_weight + turns;
  return fmax(of[a] + of[b], least[2 * a] + least[2 * b]);
}

/* Bodies of a tree are mostly consecutive, so each tree is usually factorised once. */
static void fill_weights(qd_model *m, const qd_model_spec *spec, const kinematics *k,
                         const inertia *I, const tendons *t, tree_factor *f) {
  int factored = -1, n = 0;
  for (int tree = 0; tree < m->tree.count; ++tree) {
    const int *dofs = m->tree.dofs + m->tree.dof_start[tree];
    n = m->tree.dof_start[tree + 1] - m->tree.dof_start[tree];
    fill_mass(f, m, k, I, dofs, n);
    factor(f->L, n);
    fill_dof_weights(m, spec, dofs, n, f);
    add_tendon_weights(m, t, tree, n, f);
  }
  use_given_tendon_weights(m, spec);
  for (int body = 0; body < m->body.count; ++body) {
    const int tree = m->body.tree[body];
    const double given = given_weight(spec->body_invweight, body);
    const double turn_given = given_weight(spec->body_turn_invweight, body);
    m->body.invweight[body] = fmax(given, 0.0);
    m->body.turn_invweight[body] = fmax(turn_given, 0.0);
    if (tree < 0 || (given >= 0.0 && turn_given >= 0.0)) {
      continue;
    }
    if (tree != factored) {
      n = m->tree.dof_start[tree + 1] - m->tree.dof_start[tree];
      fill_mass(f, m, k, I, m->tree.dofs + m->tree.dof_start[tree], n);
      factor(f->L, n);
      factored = tree;
    }
    if (given < 0.0) {
      m->body.invweight[body] = body_weight(f, m, k, body, n);
    }
    if (turn_given < 0.0) {
      m->body.turn_invweight[body] = turn_weight(f, m, k, body, n);
    }
  }
  for (int body = 0; body < m->body.count; ++body) {
    fill_least_weights(m, body);
  }
  for (int i = 0; i < m->pair.count; ++i) {
    const int *geom = m->pair.geom + 2 * i;
    m->pair.weight[i] = model_weight_between(m, m->geom.body[geom[0]], m->geom.body[geom[1]], 0);
  }
}

int model_inverse_weights_fill(qd_model *m, const qd_model_spec *spec) {
  kinematics k;
  inertia I;
  tendons t;
  tree_factor f;
  double *q = NULL;
  const size_t n = (size_t)largest_tree(m);
  arena a = {NULL, 0};
  char *block = NULL;
  for (int pass = 0; pass < 2; ++pass) {
    kinematics_lay_out(&k, m, &a);
    inertia_lay_out(&I, m, &a);
    tendons_lay_out(&t, m, &a);
    f.place = arena_ints(&a, (size_t)m->nv);
    f.L = arena_doubles(&a, n * n);
    f.row = arena_doubles(&a, n);
    q = arena_doubles(&a, (size_t)m->nq);
    if (pass == 0) {
      block = malloc(a.offset);
      if (block == NULL) {
        return 0;
      }
      a = (arena){block, 0};
    }
  }
  int joint;
  if (spec->reference_q == NULL || qd_normalize(m, spec->reference_q, q, &joint) != QD_OK) {
    memcpy(q, m->default_q, (size_t)m->nq * sizeof(double));
  }
  kinematics_compute(m, q, NULL, &k);
  inertia_compute(m, &k, 1, &I);
  tendons_compute(&t, m, &k, q);
  fill_weights(m, spec, &k, &I, &t, &f);
  free(block);
  return 1;
}
