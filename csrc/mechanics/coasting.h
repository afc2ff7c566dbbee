/* Force-free motion of a single body on a free joint, or on a ball joint of the world: its velocity
 * after a step without forces. The angular momentum follows Euler's equation by the implicit
 * midpoint rule in the axes of the body, which conserves the energy and the length of the momentum
 * for any time step. The velocity of the centre of mass is constant. */
#ifndef QD_MECHANICS_COASTING_H
#define QD_MECHANICS_COASTING_H

#include "mechanics/inertia.h"

typedef struct coasting {
  int dof, count; /* of the tree; the last three are rotations */
  int body;       /* that they move */
  double axes[9]; /* of the rotations, world, row by row; the quantities below are in these axes */
  double centre[3]; /* centre of rotation: of mass, or of the ball joint, world axes */
  double tensor[9]; /* inertia about it */
  double arm[3];    /* from the body's origin to it; 0 for a ball joint */
  double mass;
  double spin[3], next[3];
  int settled; /* 0: Newton's method failed, and the angular velocity is kept */
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
  double by_next[3][3]; /* translation: by the next angular velocity, ... */
  double by_arm[3][3];  /* ... by the arm at a fixed angular velocity */
  double inverse[9]; /* derivative of the next angular velocity with respect to minus the residual
                        of the midpoint rule */
} coasting_derivative;

void coasting_differentiate(coasting_derivative *d, const coasting *c, double h);

#endif
