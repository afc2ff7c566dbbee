/* How a body that is free to turn goes on by itself: the velocity that a step without forces takes
 * a free body, or one on a ball joint of the world, to. Its angular momentum follows Euler's
 * equation by the implicit midpoint rule in the axes of the body, which keeps energy and the length
 * of the momentum whatever the step; its centre of mass goes on as it does. */
#ifndef QD_MECHANICS_COASTING_H
#define QD_MECHANICS_COASTING_H

#include "mechanics/inertia.h"

typedef struct coasting {
  int dof, count;   /* of the tree; the last three turn */
  int body;         /* that they move */
  double axes[9];   /* of the turns, world, row by row; what follows is along them */
  double centre[3]; /* that the body turns about: of mass, or of the ball joint, world axes */
  double tensor[9]; /* of inertia about it */
  double arm[3];    /* from the body's origin to it; of a ball joint 0 */
  double mass;
  double spin[3], next[3];
  int settled; /* 0: Newton's method found no next spin, and it stays as it is */
} coasting;

/* 1 if a tree is one free or ball joint. */
int tree_coasts(const qd_model *model, int tree);
/* next (nv): entries of the tree's DOFs are its velocity after h. */
void coasting_compute(coasting *c, double *next, const qd_model *model, const kinematics *k,
                      const inertia *I, int tree, const double *v, double h);

/* The change of that velocity; rows are the tree's DOFs. */
typedef struct coasting_derivative {
  double by_v[6][6];
  double by_turn[6][3]; /* of the body at fixed v */
  double by_h[6];
  double by_next[3][3]; /* rows of translation only: by the next spin, ... */
  double by_arm[3][3];  /* ... by the arm at a fixed spin */
  double inverse[9];    /* next spin: by the residual of the midpoint rule, with the sign turned */
} coasting_derivative;

void coasting_differentiate(coasting_derivative *d, const coasting *c, double h);

#endif
