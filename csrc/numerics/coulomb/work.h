/* Workspace of the Coulomb solver, shared by its stages.
 *
 * Internal form: rows of a contact are weighted so that its cone is |lambda_tail| <= lambda_normal;
 * rows of weight zero are omitted; a contact begins with a tile of its own (block_lu.h), padded
 * with zeros. A contact has one cone, two that share its normal, or none (a free block: w = 0).
 * With w = W lambda + q and the normal's unit vector e, each cone's slack is
 *
 *     v = w + |w_tail| e  (of two cones: the sum of both is w + sum of |w_tail| e),
 *
 * and lambda in K, v in K* are complementary: De Saxce's form of Coulomb's law. */
#ifndef QD_NUMERICS_COULOMB_WORK_H
#define QD_NUMERICS_COULOMB_WORK_H

#include <math.h>

#include "base/arena.h"
#include "numerics/coulomb/block_lu.h"
#include "qdsim/solvers.h"

#define CONE_ROWS QD_COULOMB_DIM

typedef struct coulomb_contact {
  int at;    /* position of its normal in vectors: four times its first tile */
  int dim;   /* number of rows kept */
  int cone;  /* its first cone */
  int cones; /* number of cones; 0: free */
  int row;   /* the caller's first row */
} coulomb_contact;

typedef enum coulomb_state { COULOMB_OPEN, COULOMB_STICK, COULOMB_SLIDE } coulomb_state;

/* A cone and its values along the path. In arrays, the normal comes first. */
typedef struct coulomb_cone {
  int contact;
  int tail, tails; /* position of its first tail row in vectors; number of tail rows */
  coulomb_state state;
  double slack[CONE_ROWS], force[CONE_ROWS];   /* v, lambda */
  double dslack[CONE_ROWS], dforce[CONE_ROWS]; /* their steps */
  double middle[CONE_ROWS], eta; /* Nesterov-Todd: W = eta [m_0 m_1'; m_1 I + m_1 m_1'/(1 + m_0)] */
  double point[CONE_ROWS];       /* W lambda = W^-1 v */
  double aim[CONE_ROWS];         /* right-hand side of the scaled step */
  double direction[CONE_ROWS];   /* unit vector along v_tail, or zero; entry 0 is unused */
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
  double *q;         /* over tiles, like all vectors here */
  double *weight;    /* over rows: w = weight * the caller's, lambda = the caller's / weight */
  int *place_of;     /* (rows) position of the caller's row, -1: omitted */
  double *force, *w; /* lambda and W lambda + q */
  double *step;      /* of lambda */
  double *rhs, *residual, *correction;
  double *best_force; /* with the smallest error so far */
  double *path_force; /* where the path stopped */
  double *block;  /* (contacts, 36) matrix that a method adds to a contact's own rows, by columns */
  double *factor; /* (contacts, 36) matrix that multiplies a contact's rows of W, by columns; see
                     `multiplies` */
  double *row_tiles; /* scratch: one row of tiles */
  double best_error;
  double force_unit, speed_unit; /* units of errors: the largest lambda, and the largest |q| in the
                                    caller's units, both divided by the powers of two below */
  int matrix_power, speed_power; /* exponents of the powers of two that divide W and q; lambda is
                                    divided by their ratio */
  double most_weight;            /* larger friction coefficients are replaced by this */
  int (*stop)(void *context);    /* the caller's callback; NULL: none */
  void *stop_context;
  int stopped;
  double proximal; /* share of W's diagonal that a method adds to it */
  int strict;      /* 1: in Newton's rows every contact is clearly open, sticking or sliding: its
                      distance from another state is more than WORKED_OUT of the unit of forces */
  int multiplies;  /* 1: rows of W are multiplied by `factor` */
};

/* ---- residual.c */

/* w = W force + q */
void coulomb_find_w(qd_coulomb_workspace *work, const double *force, double *w);
/* Distance of (force, w) from Coulomb's law, in units: the largest over contacts of |min(lambda_n,
 * w_n)| and the tails' errors (below), or |w| of free blocks. Sets the unit of force. */
double coulomb_error(qd_coulomb_workspace *work, const double *force, const double *w);
/* Distance of a tail from the law under a normal force, with `force` D^-1 lambda and `w` in the
 * caller's units: the excess of |force| over the normal force, and the least change of force or
 * speed that gives a pair of the law: no speed, or a speed against a force on the boundary. The
 * coefficients `weight` (> 0) only determine directions, so their size does not matter. */
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

/* Nesterov-Todd scaling of slack and force, and the scaled point; 0 if slack or force is not
 * inside. */
int coulomb_find_scaling(coulomb_cone *cone);
/* out = W in, or W^-1 in with sign = -1 */
void coulomb_scale(const coulomb_cone *cone, const double *in, double sign, double *out);
/* Sets the aims of all cones to products of `target`, if `corrected` less the products of the
 * current step. */
void coulomb_aim(coulomb_cone *cone, int count, double target, int corrected);
/* Mean product of slack and force. */
double coulomb_mean_product(const coulomb_cone *cone, int count);
/* `share` of the largest step that keeps slacks and forces of all cones inside; at most one.
 * BACK_OFF 0.95: three of 4000 random problems of torsion and rolling turn back on the path, none
 * with 0.9, which takes an iteration more. */
#define BACK_OFF 0.9
/* Smallest useful step, or reduction of mu by a step. */
#define WORTH 0.15
/* Factor by which plain slips or proximal steps must reduce the error before Newton's method is
 * tried again. */
#define AGAIN 0.1
double coulomb_reach(const coulomb_cone *cone, int count, double share);
/* Mehrotra's centring parameter for a predictor step of this length. */
double coulomb_centring(double ahead);

/* ---- system.c */

/* Factors `factor` W + block (see above). Asks the caller whether to stop. */
void coulomb_factor(qd_coulomb_workspace *work);
/* x = (factor W + block)^-1 x, with one refinement */
void coulomb_solve_system(qd_coulomb_workspace *work, double *x);
/* Mean diagonal entry of W over the contact's rows. */
double coulomb_mobility(const qd_coulomb_workspace *work, const coulomb_contact *contact);

/* ---- path.c, newton.c, proximal.c */

typedef struct coulomb_run {
  double goal;         /* error at which to end */
  int iteration_limit; /* on `iterations` */
  int iterations, factorizations;
  int resumes;  /* 1: continue from the end of the last path */
  double reach; /* speed at a cold start, relative to the largest of q */
} coulomb_run;

/* Interior point path from a cold start, or from its last end; keeps the best force on it. */
void coulomb_follow_path(qd_coulomb_workspace *work, coulomb_run *run);
/* Rows of Newton's step at the force, for the law with weight diag(W) (lambda - centre) added to w
 * (centre NULL: not added). Sets `strict`; returns the norm of the residual. */
double coulomb_set_newton(qd_coulomb_workspace *work, double weight, const double *centre);
/* Newton's method on the active set of the best force, which it replaces by better ones. *regular:
 * 1 if the equations of a strict set have a locally unique solution. */
void coulomb_polish(qd_coulomb_workspace *work, coulomb_run *run, int *regular);
/* Proximal steps from the best force, which they replace by better ones; polishes in between. */
void coulomb_flow(qd_coulomb_workspace *work, coulomb_run *run, int *regular);

#endif
