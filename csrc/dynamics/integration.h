/* The last stage of a step whose springs and dampers act early (qd_integration). Its program gives
 * forces, and the displacement d with the mass matrix M alone. With N = h times the dampers that
 * also act at the end of the step, within the pattern of M, the displacement of the step is
 *   d' = h v + (M + N)^-1 M (d - h v).
 * Source: MuJoCo, Computation, "Numerical integration". */
#ifndef QD_DYNAMICS_INTEGRATION_H
#define QD_DYNAMICS_INTEGRATION_H

#include "base/arena.h"
#include "dynamics/derivatives/step_point.h"
#include "dynamics/step.h"

typedef struct integration {
  int applies;    /* 1: dampers act at the end, and `first` is filled */
  double *first;  /* (nv) d */
  int *damped;    /* (tree_count) 1: N of the tree is not zero */
  double *mass;   /* M of tree after tree, dense; identity for held DOFs */
  double *whole;  /* the factor of M + N, likewise */
  double *vector; /* (nv) scratch */
} integration;

void integration_lay_out(integration *n, const qd_model *model, arena *a);

/* Fills first, and the result's delta, q_next and v_next. */
qd_status integration_finish(const step_call *s);

/* A damped tree and its blocks. */
typedef struct damped_tree {
  int tree, count;
  const int *dofs; /* (count) ascending */
  const double *mass, *whole;
  size_t at; /* of the blocks */
} damped_tree;

/* The next one; begin with tree = -1. Returns 0 after the last. */
int integration_next_tree(damped_tree *t, const integration *n, const qd_model *model);

/* x (nv) <- M x, or (M + N)^-1 x, in the DOFs of the tree */
void damped_tree_weigh(const damped_tree *t, double *x, double *scratch);
void damped_tree_solve(const damped_tree *t, double *x, double *scratch);

/* Ns/m: dampers at the end of the step along a DOF, and along a tendon. */
double integration_dof_drag(const solved_step *s, int dof);
double integration_tendon_drag(const solved_step *s, int tendon);
/* The same of one actuator, 0 if its force is at its own limit. */
double integration_actuator_drag(const solved_step *s, int actuator);

/* 1 if N has an entry for two DOFs of a tendon: one moves the axis of the other. */
int integration_couples(const qd_model *model, int i, int j);

#endif
