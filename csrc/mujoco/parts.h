/* Definitions shared by the files of this folder.
 *
 * MuJoCo's step is the minimiser x = qacc of |x - a|_M^2 / 2 + sum of s_i(J_i x - aref_i) with
 * smooth convex s; f = -s'. With H = s'' and k = M + J'HJ its derivative is
 *
 *   k dx = d(force) - d(bias + M x) + (dJ)' f - J'(H (dJ x - daref) + f dln R)
 *
 * R changes with penetration; aref = -B J v - K d pos. The integrator "discrete" has M + S, of
 * metric.c, in the place of M. Columns of `rhs` are dq, dv, act, ctrl. */
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
enum { MJ_EULER = 0, MJ_IMPLICITFAST = 3, MJ_DISCRETE = 4 };

struct qd_mj_meshes {
  int count;
  convex_mesh **mesh; /* (count) NULL: flat, without derivatives */
};

typedef struct mj_body {
  double V[6], A[6], X[6], Y[6]; /* twist; its rate, gravity included; sum of S x; sum of S y */
  double W[6];                   /* sum of S times the rates of mj_spread */
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
  double w_before[6];  /* likewise, of W */
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
  double *M, *P;   /* (nv, nv); with "discrete", M contains S */
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
  double *speed;       /* (nefc) J v, for "discrete"; else zero */
  double *compact;     /* (6, nv) rows of one block, only nonzero columns */
  int *column;         /* (nv) their indices */
  double *wide;        /* (6, nv) scratch */
  double *change;      /* (nv, 6) wrench on the second body by q, of one contact */
  int *moves;          /* (nv) 1: the first body, 2: the second, 3: both */
  strand_point *point; /* (2 nwrap) of one tendon, likewise the next two */
  strand_motion *motion;
  strand_wrap *arc;
  double *mass, *side; /* (nv) diagonals of the mass matrix and of S, for "discrete" */
  double *shift;       /* (nv) forces of S that depend on v */
  double *mass_by_q;   /* (nv, nv) derivative of the diagonal of the mass matrix */
  double *along;       /* (2, nv) of log_R: weights of the row's entries, and of S_jj */
  double *log_R; /* (nv + na + nu) derivative of a row's ln R through its share, by q, act, ctrl */
  int *held;     /* (nv) 1: tendons or actuators have it in S, or rows act on it */
  int *alone;    /* (nv) 1: the first rotation of a single body on a free joint, whose
                    gyroscopic forces are implicit */
  inertia10 *whole; /* (nbody) of subtrees */
  int weighs;       /* whether S has an effect on R */
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

/* laws.c: -aref = damping J v + spring pos + drift (dJ/dt) v of a row; the slopes by pos (by the
 * length of all positions, for a connect or weld); minus that of ln R. */
typedef struct mj_law {
  double damping, spring, drift;
  double damping_slope, spring_slope, drift_slope, shrinks;
} mj_law;
mj_law mj_row_law(const qd_mj *mj, int row);
/* of -aref by pos, without drift; pos is counted from the margin */
double mj_law_slope(const mj_law *law, double pos, double speed);

/* metric.c */
/* Springs and dampers along a row m: scale m m' in S, and forces -stiff (m v) m. */
typedef struct mj_bar {
  double scale, stiff, scale_by_input, stiff_by_input;
} mj_bar;
mj_bar mj_tendon_bar(const qd_mj *mj, int tendon);
/* Adds S to M, and fills shift, mass, side. */
void mj_metric_begin(const qd_mj *mj, qd_mj_workspace *w);
/* rhs by v, act and ctrl; by q only tendons change them */
void mj_metric_by_state(const qd_mj *mj, qd_mj_workspace *w);
/* The Jacobian of a tendon, dense (nv). */
void mj_tendon_row(const qd_mj *mj, double *dense, int tendon);

/* shares.c */
void mj_shares_begin(const qd_mj *mj, qd_mj_workspace *w);
/* Fills W and w_before for these rates (nv). */
void mj_spread(const qd_mj *mj, qd_mj_workspace *w, const double *rates);
/* If S changes the R of this row: fills log_R but for the change of J, and W, and returns 1. The
 * caller adds d(J rates) by q to log_R. */
int mj_share_begin(const qd_mj *mj, qd_mj_workspace *w, int row);
/* rhs, of the change of R of these rows */
void mj_share_end(const qd_mj *mj, qd_mj_workspace *w, int row, int count);

/* rows.c: J v; forces and curvature of MuJoCo's rows at w->x */
void mj_rows_begin(const qd_mj *mj, qd_mj_workspace *w);
void mj_rows_evaluate(const qd_mj *mj, qd_mj_workspace *w);
/* k = M + J'HJ */
void mj_rows_curvature(const qd_mj *mj, qd_mj_workspace *w);
/* gradient = M x - smooth - shift - J'f */
void mj_rows_gradient(const qd_mj *mj, qd_mj_workspace *w, double *gradient);
/* rhs by v, of all rows */
void mj_rows_by_velocity(const qd_mj *mj, qd_mj_workspace *w);
/* Row i's nonzero columns (w->column) and entries (w->compact, dim rows); returns their number. */
int mj_rows_compact(const qd_mj *mj, qd_mj_workspace *w, int row, int dim);

/* contacts.c: rhs by q, of contacts, and their wrenches on bodies */
void mj_contacts_by_position(const qd_mj *mj, const qd_mj_meshes *meshes, int change_count,
                             const qd_mj_change *changes, qd_mj_workspace *w, qd_mj_info *info);

/* drives.c: passive forces and actuators; P - M */
/* One actuator: force = gain input + bias, with the derivatives of its input. */
typedef struct mj_drive {
  double by_length, by_velocity, gain;
  double length_gain, velocity_gain; /* slopes of the gain */
  double by_act, by_ctrl;            /* derivatives of the input */
  int act;                           /* index, -1: none */
  double force;
} mj_drive;
/* Returns 0 if the force does not change. */
int mj_drive_read(const qd_mj *mj, int i, mj_drive *d);
mj_bar mj_drive_bar(const qd_mj *mj, const mj_drive *d);
/* The dense moment (nv) of an actuator in w->wide[0]. Returns 1 if the derivative of its length
 * differs, and stands in w->wide[nv]. */
int mj_drive_transmit(const qd_mj *mj, qd_mj_workspace *w, int i);
/* to += s J J' of a tendon */
void mj_add_tendon(const qd_mj *mj, double *to, int columns, int tendon, double s);
void mj_drives(const qd_mj *mj, qd_mj_workspace *w);
/* terms that the implicit integrators add to M */
void mj_drives_implicit(const qd_mj *mj, qd_mj_workspace *w);
/* spins.c: additional terms of implicitfast and "discrete" for single bodies on a free joint; fills
 * w->spin from w->a */
void mj_spins_implicit(const qd_mj *mj, qd_mj_workspace *w);
/* Inverts their blocks of P, which are not coupled to others, and writes M in their place; 0:
 * singular */
int mj_spins_split(const qd_mj *mj, qd_mj_workspace *w);
/* Solves their rows (nv, columns): P^-1 from */
void mj_spins_solve(const qd_mj *mj, const qd_mj_workspace *w, double *rows, const double *from,
                    int columns);
/* Fills w->alone. With "discrete", rows, tendons and actuators must not act on the body. */
void mj_spins_begin(const qd_mj *mj, qd_mj_workspace *w);
/* next activations, by act and ctrl: rows 2 nv .. of A and B */
void mj_activations(const qd_mj *mj, double *A, double *B);

/* tendons.c: rhs by q of forces and rows of spatial tendons, due to the change of their Jacobians;
 * and the wrenches on bodies */
void mj_tendons_by_position(const qd_mj *mj, qd_mj_workspace *w);
/* Sum over actuators of a tendon, with their gears. */
mj_bar mj_tendon_drives(const qd_mj *mj, int tendon);
int mj_tendon_is_spatial(const qd_mj *mj, int tendon);
/* log_R, of a row's change with the Jacobians of spatial tendons */
void mj_tendons_turn_row(const qd_mj *mj, qd_mj_workspace *w, int row);
/* out (nv) += s d(J rates) by q, with the rates of mj_spread */
void mj_tendon_turns(const qd_mj *mj, qd_mj_workspace *w, int tendon, double s, double *out);

/* limits.c: rhs by q, of all rows but contacts */
void mj_rows_by_position(const qd_mj *mj, qd_mj_workspace *w);

/* equalities.c: rhs by q, and of d(dJ/dt v) by v, of the rows of one constraint, from `row` on */
void mj_equality_by_position(const qd_mj *mj, qd_mj_workspace *w, int row);

/* log_R, of the row's change but that of tendons' Jacobians */
void mj_equality_turns_row(const qd_mj *mj, qd_mj_workspace *w, int row);

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
