/* One thread's scratch: what each stage of a step leaves for the next. */
#ifndef QD_DYNAMICS_WORKSPACE_H
#define QD_DYNAMICS_WORKSPACE_H

#include "dynamics/problem.h"
#include "mechanics/collision.h"
#include "mechanics/inertia.h"

/* Scratch of the derivatives. */
typedef struct sensitivity {
  screw *body_twist;      /* (nb) twists under delta */
  screw *unmoved_twist;   /* (nv) part of the twist that DOF j does not move, see linearize.c */
  wrench *body_wrench;    /* (nb) contact wrenches, then of whole subtrees */
  double *D;              /* (nv, nv) d stationarity / dq */
  double *row_scale;      /* (nv) */
  double *masked_delta;   /* (nv) */
  double *d_stationarity; /* (nv, nv + nu) */
  double *d_slack;        /* (row_capacity, nv + nu) */
  double *d_equality;     /* (constraint_row_count, nv + nu) */
  double *d_x;            /* (nv, nv + nu) */
} sensitivity;

struct qd_workspace {
  char *block; /* the memory behind all arrays */
  size_t block_bytes;
  kinematics kinematics;
  kinematics next; /* of q_next, where missed pairs are looked for */
  inertia inertia;
  collision collision;
  problem problem;
  sensitivity sensitivity;
  qd_cone_workspace *cone;
};

#endif
