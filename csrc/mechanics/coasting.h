/* Force-free motion of a single body on a free joint, or on a ball joint of the world: its velocity
 * after a step without forces. The angular momentum follows Euler's equation by the implicit
 * midpoint rule in the axes of the body, which conserves the energy and the length of the momentum
 * for any time step. The velocity of the centre of mass is constant. */
#ifndef QD_MECHANICS_COASTING_H
#define QD_MECHANICS_COASTING_H

#include "mechanics/inertia.h"

typedef struct coasting {
  int dof, count; /* DOFs of the tree: first, number; the last three are rotations */
  int body;       /* the body that they move */
  double axes[9]; /* of the rotations, world, one per row; `tensor`, `spin` and `next` are in these
                     axes */
  double centre[3]; /* centre of rotation (centre of mass, or the ball joint), world */
  double tensor[9]; /* inertia about the centre */
  double arm[3];    /* from the body's origin to the centre; 0 for a ball joint */
  double mass;
  double spin[3], next[3];
  int settled; /* 0: Newton's method failed, and `next` equals `spin` */
} coasting;

/* 1 if the only joint of a tree is a free or ball joint. */
int tree_coasts(const qd_model *model, int tree);
/* Sets the entries of next (nv) for the tree's DOFs: their velocity after time h. */
void coasting_compute(coasting *c, double *next, const qd_model *model, const kinematics *k,
                      const inertia *I, int tree, const double *v, double h);

/* Derivatives of that velocity; rows are the tree's DOFs. */
typedef struct coasting_derivative {
  double by_v[6][6];
  double by_turn[6][3]; /* by rotation of the body at fixed v */
  double by_h[6];
  double by_next[3][3]; /* translation: by the next angular velocity, */
  double by_arm[3][3];  /* and by the arm at a fixed angular velocity */
  double inverse[9]; /* derivative of the next angular velocity with respect to minus the residual
                        of the midpoint rule */
} coasting_derivative;

void coasting_differentiate(coasting_derivative *d, const coasting *c, double h);

#endif
