/* What the stages of the Coulomb solver share.
 *
 * Internal form: rows of a contact weighted, so that its cone is |lambda_tail| <= lambda_normal;
 * rows of weight zero are left out; a contact begins with a tile of its own (block_lu.h), padded
 * with zeros. A contact has one cone, or two that share its normal, or none (a free block: w = 0).
 * With w = W lambda + q and e the normal's unit vector, each cone's slack is
 *
 *     v = w + |w_tail| e  (of two cones: the sum of both is w + sum of |w_tail| e),
 *
 * and K contains lambda, K* v, and they are complementary: De Saxce's form of Coulomb's law. */
#ifndef QD_NUMERICS_COULOMB_WORK_H
#define QD_NUMERICS_COULOMB_WORK_H

#include <math.h>

#include "base/arena.h"
#include "numerics/coulomb/block_lu.h"
#include "qdsim/solvers.h"

#define CONE_ROWS QD_COULOMB_DIM

typedef struct coulomb_contact {
  int at;    /* its normal's place in vectors: four times its first tile */
  int dim;   /* rows that are kept */
  int cone;  /* its first cone */
  int cones; /* 0: free */
  int row;   /* the caller's first */
} coulomb_contact;

typedef enum coulomb_state { COULOMB_OPEN, COULOMB_STICK, COULOMB_SLIDE } coulomb_state;

/* A cone and its numbers along the path. Arrays: normal first. */
typedef struct coulomb_cone {
  int contact;
  int tail, tails; /* its first tail row in vectors, and how many */
  coulomb_state state;
  double slack[CONE_ROWS], force[CONE_ROWS];   /* v, lambda */
  double dslack[CONE_ROWS], dforce[CONE_ROWS]; /* their steps */
  double middle[CONE_ROWS], eta; /* Nesterov-Todd: W = eta [m_0 m_1'; m_1 I + m_1 m_1'/(1 + m_0)] */
  double point[CONE_ROWS];       /* W lambda = W^-1 v */
  double aim[CONE_ROWS];         /* right-hand side of the scaled step */
  double direction[CONE_ROWS];   /* of v_tail, a unit vector or zero, behind an unused place */
  double slip;                   /* |v_tail| */
} coulomb_cone;

typedef struct coulomb_size {
  int contacts, cones, tiles, entries, fill, rows;
} coulomb_size;

struct qd_coulomb_workspace {
  coulomb_size capacity;
  size_t bytes;
  int contact_count, cone_count, tile_count, row_count;
  coulomb_contact *contact;
  coulomb_cone *cone;
  int *contact_of; /* (tiles) */
  block_matrix W;
  block_lu lu;
  double *q;            /* over tiles, like all vectors here */
  double *weight;       /* of rows: w = weight * the caller's, lambda = the caller's / weight */
  int *place_of;        /* (rows) place of the caller's row, -1: left out */
  double *force, *w;    /* lambda and W lambda + q */
  double *step, *image; /* of lambda; W step */
  double *rhs, *residual, *correction;
  double *best_force; /* of the smallest error so far */
  double *path_force; /* where the path stopped */
  double *block;      /* (contacts, 36) what a method adds to a contact's own rows, by columns */
  double *factor;     /* (contacts, 36) what it multiplies its rows of W with; NULL: nothing */
  double *row_tiles;  /* a row of tiles */
  double best_error;
  double force_unit, speed_unit; /* that errors are measured in: the largest lambda, and of q as
                                    the caller has it, beside the powers of two below */
  int matrix_power, speed_power; /* of two, that W and q are divided by: lambda by their ratio */
  double most_weight;            /* larger ones count as this */
  int (*stop)(void *context);    /* the caller's; NULL: none */
  void *stop_context;
  int stopped;
  double proximal; /* of W's diagonal, that a method adds to it */
  int strict;      /* 1: in Newton's rows every contact is clearly open, sticks or slides: farther
                      from another state than WORKED_OUT of the unit of lengths or forces */
  int multiplies;  /* 1: rows of W count multiplied by `factor` */
};

/* ---- residual.c */

/* w = W force + q */
void coulomb_find_w(qd_coulomb_workspace *work, const double *force, double *w);
/* How far (force, w) is from Coulomb's law, in units: the largest over contacts of the normal's
 * |min(lambda_n, w_n)| and of the tails' errors (below), or |w| of free blocks. Sets the unit of
 * force. */
double coulomb_error(qd_coulomb_workspace *work, const double *force, const double *w);
/* How far a tail, `force` D^-1 lambda and `w` in the caller's units, is from the law under a normal
 * force: what |force| exceeds it by, and the least change of forces or speeds that makes them a
 * pair of the law: no speed at all, or one against a force on the boundary. The coefficients
 * `weight` (> 0) only say which directions belong together, so their size does not count. */
double coulomb_tail_error(const double *force, const double *w, const double *weight, int count,
                          double normal);
/* Keeps the force if its error is the smallest so far. */
void coulomb_keep_best(qd_coulomb_workspace *work, double error);

/* ---- cone.c */

/* |a_1 .. a_tails| */
static inline double coulomb_tail(const double *a, int tails) {
  double sum = 0.0;
  for (int k = 1; k <= tails; ++k) {
    sum += a[k] * a[k];
  }
  return sqrt(sum);
}
/* a_0^2 - |tail|^2, exact near the boundary */
static inline double coulomb_determinant(const double *a, int tails) {
  const double tail = coulomb_tail(a, tails);
  return (a[0] - tail) * (a[0] + tail);
}

/* Nesterov and Todd's scaling of slack and force, and the point; 0 if one of them is not inside. */
int coulomb_find_scaling(coulomb_cone *cone);
/* out = W in, or W^-1 in with sign = -1 */
void coulomb_scale(const coulomb_cone *cone, const double *in, double sign, double *out);
/* All cones aim at products of `target`, where asked for less those of the step at hand. */
void coulomb_aim(coulomb_cone *cone, int count, double target, int corrected);
/* Of slack and force. */
double coulomb_mean_product(const coulomb_cone *cone, int count);
/* A share of the largest step along which slacks and forces of all cones stay inside; one at most.
 * BACK_OFF 0.95: three in 4000 random problems of torsion and rolling turn back on the way, none at
 * 0.9, which takes an iteration more. */
#define BACK_OFF 0.9
/* Of a step, or of mu behind it: less is not worth the step. */
#define WORTH 0.15
/* How far an error has to fall, by plain slips or proximal steps, before Newton is tried again. */
#define AGAIN 0.1
double coulomb_reach(const coulomb_cone *cone, int count, double share);
/* Mehrotra's share of the products that is left to aim at where a step to none comes so far. */
double coulomb_centring(double ahead);

/* ---- system.c */

/* Factor of factor W + block (see above). Asks the caller whether to stop. */
void coulomb_factor(qd_coulomb_workspace *work);
/* x = (factor W + block)^-1 x, refined once. */
void coulomb_solve_system(qd_coulomb_workspace *work, double *x);
/* What W's diagonal has for the contact, on average. */
double coulomb_mobility(const qd_coulomb_workspace *work, const coulomb_contact *contact);

/* ---- path.c, newton.c, proximal.c */

typedef struct coulomb_run {
  double goal;         /* error that ends it */
  int iteration_limit; /* in all */
  int iterations, factorizations;
  int resumes;  /* 1: from where the path stopped */
  double reach; /* speeds at a cold start, beside the largest of q */
} coulomb_run;

/* Interior point path from a cold start, or where it stopped; keeps the best force on it. */
void coulomb_follow_path(qd_coulomb_workspace *work, coulomb_run *run);
/* Rows of Newton's step at the force, of the law with weight diag(W) (lambda - centre) more in w
 * (NULL: without), and whether they are strict; the size of their residual. */
double coulomb_set_newton(qd_coulomb_workspace *work, double weight, const double *centre);
/* Newton on the active set that the best force shows, which it replaces by better ones. 1 into
 * *regular if the equations of a strict set have one solution near by. */
void coulomb_polish(qd_coulomb_workspace *work, coulomb_run *run, int *regular);
/* Proximal steps from the best force, which they replace by better ones; polishes on the way. */
void coulomb_flow(qd_coulomb_workspace *work, coulomb_run *run, int *regular);

#endif
