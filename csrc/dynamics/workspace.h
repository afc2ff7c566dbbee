/* One thread's scratch: the results that each stage of a step leaves for the next. */
#ifndef QD_DYNAMICS_WORKSPACE_H
#define QD_DYNAMICS_WORKSPACE_H

#include "dynamics/bounces.h"
#include "dynamics/derivatives/differential.h"
#include "dynamics/derivatives/pressure_derivative.h"
#include "dynamics/integration.h"
#include "dynamics/problem/problem.h"
#include "dynamics/step.h"
#include "dynamics/warm_start.h"
#include "mechanics/motion_derivative.h"
#include "mechanics/pairs/collision.h"

/* Screws of four successive q columns; zero after the last column. */
typedef struct column_screws {
  double w[3][4], v[3][4];
} column_screws;

/* Scratch of the derivatives. Matrices belong to one island at a time: its columns are the DOFs
 * that it depends on, for q and (in the second-order step) for v, then its own actuators. */
typedef struct sensitivity {
  int *dofs;            /* (nv) q columns of the island */
  int *place;           /* (nv) column of a DOF */
  int *actuators;       /* (nu) u columns of the island */
  int q_count, v_count; /* numbers of columns; by v as many as by q, or none */
  int u_count;          /* columns */
  int columns; /* of all matrices; with unused ones at the end, if unit loads are solved for */
  column_screws *column_screws; /* (tiles of q columns) */
  column_screws *unmoved;       /* (tiles of q columns) twists under delta that they do not move */
  column_screws *unmoved_in_time; /* the same under v */
  double *on_a, *on_b;       /* (tiles, 4) 1: the column moves that body of the present contact */
  int *tiles;                /* tiles of columns that move one of them */
  dof_matrix D;              /* (q_count, q_count) d stationarity / dq */
  dof_matrix V;              /* (q_count, q_count) d stationarity / dv */
  motion_derivative motion;  /* scratch */
  double *d_stationarity;    /* (n, columns) */
  double *d_slack;           /* (row_count, columns) */
  double *d_equality;        /* (equality_count, columns) */
  double *d_x;               /* (n, columns) */
  int response_limit;        /* largest number of loads, a multiple of four */
  double *unit;              /* (n, loads) minus the identity */
  double *response;          /* (n, loads) dx to unit loads */
  double *slack_response;    /* (row_count, loads) multipliers to unit loads */
  double *equality_response; /* (equality_count, loads) likewise */
} sensitivity;

/* How accurately a round solves large islands. While contacts are left out, more accuracy than
 * needed to find the missing ones is wasted. */
typedef enum round_effort {
  ROUND_WHOLE,        /* to the solution */
  ROUND_UNTIL_MISSED, /* until their motion reaches contacts that are left out */
  ROUND_ROUGH         /* to a point near the solution */
} round_effort;

struct qd_workspace {
  char *block; /* memory of all arrays except those of the islands */
  size_t block_bytes;
  char *program_block; /* cone workspaces, matrices and rows of the present islands */
  size_t program_bytes;
  int soft_capacity;      /* polygons of soft pairs */
  size_t program_needed;  /* bytes requested by the last step */
  size_t fill_per_tile;   /* tiles of a large factor per tile of its diagonal, largest so far */
  qd_cone_workspace *one; /* at the beginning of it, for one program at a time; NULL: none */
  kinematics kinematics;
  kinematics next; /* of q_next, for missed pairs */
  inertia inertia;
  collision collision;
  working_set set;
  warm_start warm;
  int attempts;        /* number of attempts of a traced step */
  round_effort effort; /* of the present round */
  stop_callback look;
  int unfinished; /* 1: the last round stopped early, so its result is not final */
  problem problem;
  bounce_search bounces;
  integration integration;
  step_point point; /* with the next three, for derivatives */
  step_point after; /* the same at the end of the step, if integration.applies */
  sensitivity sensitivity;
  differential differential;
  pressure_derivative soft;
};

/* Says which step the workspace's problem belongs to, before its programs or its derivatives. */
static inline void workspace_begin(qd_workspace *w, const qd_model *model,
                                   const qd_step_options *options, const qd_step_input *input) {
  problem *p = &w->problem;
  p->model = p->soft.model = model;
  p->options = p->soft.options = options;
  p->input = input;
  p->kinematics = p->soft.kinematics = &w->kinematics;
  p->collision = &w->collision;
  p->set = &w->set;
}

/* Islands up to this number of variables are differentiated by their response to unit loads. */
#define RESPONSE_LIMIT 64

/* Memory for the programs of the islands: one cone workspace that serves them one after the other,
 * or (kept not NULL) one for each, which keeps its solution for derivatives with respect to this
 * number of DOFs and actuators. QD_OUT_OF_CAPACITY if it does not fit. */
qd_status workspace_place_islands(qd_workspace *w, const qd_model *model, const step_columns *kept);

/* Records that an island's factor did not fit: the next placement reserves more. */
void workspace_note_fill(qd_workspace *w, const island *one);

#endif
