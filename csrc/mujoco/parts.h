/* Definitions shared by the files of this folder.
 *
 * MuJoCo's step is the minimiser x = qacc of |x - a|_M^2 / 2 + sum of s_i(J_i x - aref_i) with
 * smooth convex s; f = -s'. With H = s'' and k = M + J'HJ its derivative is
 *
 *   k dx = d(force) - d(bias + M x) + (dJ)' f - J'(H (dJ x - daref) + f dln R)
 *
 * R changes with penetration; aref = -B J v - K d pos. Columns of `rhs` are dq, dv, act, ctrl. */
#ifndef QD_MUJOCO_PARTS_H
#define QD_MUJOCO_PARTS_H

#include "geometry/meshes/mesh.h"
#include "geometry/strand.h"
#include "mujoco/spatial.h"
#include "qdsim.h"

/* mjtJoint, mjtEq, mjtConstraint and the like; numbers that MuJoCo has kept since 2.0. */
enum { MJ_FREE = 0, MJ_BALL = 1 };
enum { MJ_EQ_CONNECT = 0, MJ_EQ_WELD = 1, MJ_EQ_JOINT = 2, MJ_EQ_TENDON = 3 };
enum {
  MJ_ROW_EQUALITY = 0,
  MJ_ROW_FRICTION_DOF,
  MJ_ROW_FRICTION_TENDON,
  MJ_ROW_LIMIT_JOINT,
  MJ_ROW_LIMIT_TENDON,
  MJ_ROW_FRICTIONLESS,
  MJ_ROW_PYRAMIDAL,
  MJ_ROW_ELLIPTIC
};
enum { MJ_NO_SPRING = 32, MJ_NO_DAMPER = 64, MJ_NO_GRAVITY = 128, MJ_NO_CLAMP = 256 };
enum { MJ_NO_ACTUATION = 2048, MJ_NO_EULERDAMP = 32768 };
enum { MJ_EULER = 0, MJ_IMPLICITFAST = 3 };

struct qd_mj_meshes {
  int count;
  convex_mesh **mesh; /* (count) NULL: flat, without derivatives */
};

typedef struct mj_body {
  double V[6], A[6], X[6], Y[6]; /* twist; its rate, gravity included; sum of S x; sum of S y */
  double wrench[6];              /* of contacts and of forces with a fixed direction */
  inertia10 inertia;
  double gyration[9], momentum[6]; /* forces by twists are B(a, .) = (gyration a, 2 a x momentum) */
  double F[6], G[6]; /* force required by its motion; by y alone. Later, these, inertia, gyration,
                        momentum and wrench are sums over the subtree */
} mj_body;

typedef struct mj_dof {
  double S[6];         /* screw */
  double before[6];    /* twist before the joint's block of rotations */
  double x_before[6];  /* sum of S x before it */
  double rate[6];      /* S' = before x S */
  double rate_rate[6]; /* S'' */
  double turn_rate[6]; /* (before + after) x S: derivative of S' and of rates by velocity */
  double y_rate[6];    /* (sum of S y before) x S */
  int parent;          /* dof, -1: none */
  int block;           /* first dof of its block */
} mj_dof;

struct qd_mj_workspace {
  void *block; /* all that follows */
  size_t bytes;
  mj_body *body;   /* (nbody) */
  mj_dof *dof;     /* (nv) */
  int *last_dof;   /* (nbody) deepest dof that moves it, -1: none */
  double *x;       /* (nv) acceleration */
  double *y;       /* (nv) x - (v_next - v) / h */
  double *a;       /* (nv) (v_next - v) / h */
  double *M, *P;   /* (nv, nv) */
  double *k;       /* (nv, nv) M + J'HJ, then its factor */
  double *scratch; /* (nv) */
  double *rhs;     /* (nv, columns) */
  double *by_q;    /* (nv, nv) d(M y) by q */
  double *spin; /* (nv, 6) for single bodies on a free joint: derivative of their gyroscopic forces
                   in P a with respect to rotations and angular velocities */
  double *spin_inverse; /* (nv, 6) of their blocks of P */
  double *implicit;    /* (nv, na + nu) derivative of the gains' part of P a with respect to act and
                          ctrl */
  double *dx;          /* (nv, columns) copy of rhs, for implicit integrators */
  double *f;           /* (nefc) forces */
  double *h;           /* (nefc) curvature of single rows */
  double *cone;        /* (nefc, 6) Hessian rows of elliptic contacts */
  double *r;           /* (nefc) J x - aref */
  double *compact;     /* (6, nv) rows of one block, only nonzero columns */
  int *column;         /* (nv) their indices */
  double *wide;        /* (6, nv) scratch */
  double *change;      /* (nv, 6) wrench on the second body by q, of one contact */
  int *moves;          /* (nv) 1: the first body, 2: the second, 3: both */
  strand_point *point; /* (2 nwrap) of one tendon, likewise the next two */
  strand_motion *motion;
  strand_wrap *arc;
  int columns;
  int spins;  /* whether there are single bodies on free joints with implicitfast: their blocks of P
                 are not symmetric */
  int damped; /* whether P differs from M */
  double origin[3];
};

/* address in contact i of a field */
static inline const double *mj_contact_doubles(const char *first, int64_t stride, int i) {
  return (const double *)(const void *)(first + stride * i);
}
static inline const int32_t *mj_contact_ints(const char *first, int64_t stride, int i) {
  return (const int32_t *)(const void *)(first + stride * i);
}

/* bodies.c: screws, twists and inertias; then the derivatives of bias + M x, of forces on bodies,
 * and of M y */
void mj_bodies_begin(const qd_mj *mj, qd_mj_workspace *w);
void mj_bodies_move(const qd_mj *mj, qd_mj_workspace *w);
void mj_bodies_derivative(const qd_mj *mj, qd_mj_workspace *w);

/* rows.c: forces and curvature of MuJoCo's rows at w->x */
void mj_rows_evaluate(const qd_mj *mj, qd_mj_workspace *w);
/* k = M + J'HJ */
void mj_rows_curvature(const qd_mj *mj, qd_mj_workspace *w);
/* gradient = M x - smooth - J'f */
void mj_rows_gradient(const qd_mj *mj, qd_mj_workspace *w, double *gradient);
/* rhs by v, of all rows */
void mj_rows_by_velocity(const qd_mj *mj, qd_mj_workspace *w);
/* Row i's nonzero columns (w->column) and entries (w->compact, dim rows); returns their number. */
int mj_rows_compact(const qd_mj *mj, qd_mj_workspace *w, int row, int dim);

/* contacts.c: rhs by q, of contacts, and their wrenches on bodies */
void mj_contacts_by_position(const qd_mj *mj, const qd_mj_meshes *meshes, int change_count,
                             const qd_mj_change *changes, qd_mj_workspace *w, qd_mj_info *info);

/* drives.c: passive forces and actuators; P - M */
void mj_drives(const qd_mj *mj, qd_mj_workspace *w);
/* terms that the implicit integrators add to M */
void mj_drives_implicit(const qd_mj *mj, qd_mj_workspace *w);
/* spins.c: implicitfast's additional terms for single bodies on a free joint; fills w->spin from
 * w->a */
void mj_spins_implicit(const qd_mj *mj, qd_mj_workspace *w);
/* Inverts their blocks of P, which are not coupled to others, and writes M in their place; 0:
 * singular */
int mj_spins_split(const qd_mj *mj, qd_mj_workspace *w);
/* Solves their rows (nv, columns): P^-1 from */
void mj_spins_solve(const qd_mj *mj, const qd_mj_workspace *w, double *rows, const double *from,
                    int columns);
/* 1: dof is the first rotation of such a body */
int mj_spins_alone(const qd_mj *mj, const qd_mj_workspace *w, int dof);
/* derivative of an actuator's force with respect to its velocity, if it depends on it */
double mj_drive_damping(const qd_mj *mj, int i);
/* next activations, by act and ctrl: rows 2 nv .. of A and B */
void mj_activations(const qd_mj *mj, double *A, double *B);

/* tendons.c: rhs by q of forces and rows of spatial tendons, due to the change of their Jacobians;
 * and the wrenches on bodies */
void mj_tendons_by_position(const qd_mj *mj, qd_mj_workspace *w);

/* limits.c: rhs by q, of all rows but contacts */
void mj_rows_by_position(const qd_mj *mj, qd_mj_workspace *w);

/* equalities.c: rhs by q, and of d(dJ/dt v) by v, of the rows of one constraint, from `row` on */
void mj_equality_by_position(const qd_mj *mj, qd_mj_workspace *w, int row);

/* The slope of the coupling polynomial of a joint or tendon. */
double mj_follower_slope(const qd_mj *mj, int eq);

/* Dofs that move either of two bodies, in w->column, and which body they move, in w->moves; returns
 * their number. */
int mj_dofs_of_two(qd_mj_workspace *w, int body_a, int body_b);

/* cholesky.c */
/* The lower factor L of k = L'L in place, row-major; 0: not positive definite */
int mj_cholesky(double *k, int n);
/* rows (n, columns) = k^-1 rows */
void mj_cholesky_solve(const double *k, int n, double *rows, int columns);

#endif
