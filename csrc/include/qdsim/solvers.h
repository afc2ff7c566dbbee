/* Status codes, and the solvers on their own: cone programs, complementarity, Coulomb friction,
 * optimal control. */
#ifndef QDSIM_SOLVERS_H
#define QDSIM_SOLVERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(QD_VISIBLE) && defined(__GNUC__) /* while the shared library is built */
#pragma GCC visibility push(default)
#endif

/* ---------------------------------------------------------------- status */

typedef enum qd_status {
  QD_OK = 0,
  QD_BAD_ARGUMENT,      /* invalid sizes or values */
  QD_OUT_OF_MEMORY,     /* heap exhausted while creating or growing a block */
  QD_OUT_OF_CAPACITY,   /* the workspace is too small: call qd_workspace_reserve, then repeat the
                           call */
  QD_INFEASIBLE,        /* no point within reach satisfies the constraints: qd_cone_solve */
  QD_UNBOUNDED,         /* the cost decreases without bound along some motion */
  QD_ITERATION_LIMIT,   /* not converged within the iteration limit */
  QD_NUMERICAL_TROUBLE, /* a factorisation or step failed; residuals are in the info */
  QD_NOT_FINITE,        /* an input contains NaN or infinity */
  QD_NOT_UNIQUE,        /* of a step: the cost and the constraints do not determine some motion */
  QD_STOPPED,           /* stopped by the caller: qd_batch_set_stop, or stop in the options */
  QD_LAW_NOT_MET        /* of a step: no forces that satisfy Coulomb's law were found */
} qd_status;

const char *qd_status_name(qd_status status);

/* ---------------------------------------------------------------- cone programs
 *   minimise    1/2 x'Qx + b'x
 *   subject to  Gx + g in K,   Cx + c = 0
 * K is a product of orthants and Lorentz cones {w : w_0 >= |w_1..|}, in row order. Multipliers
 * satisfy Qx + b = G'dual + C'dual_eq, dual in K, dual o (Gx + g) = target_mu e. A positive
 * target_mu gives the minimiser of the log-barrier problem with weight target_mu per orthant row
 * and target_mu / 2 times log(w_0^2 - |w_1..|^2) per Lorentz cone.
 *
 * A row may have a compliance R >= 0. Its slack is then s = Gx + g + R dual, and the conditions
 * above hold for s and dual. So dual = P_K(-(Gx + g) / R), projected in the norm of R, and the cost
 * contains |P_K(-(Gx + g) / R)|_R^2 / 2. A compliant equality is Cx + c + R dual_eq = 0.
 *
 * The multiplier of an interval row is bounded, lower <= dual <= upper, and may have either sign:
 * s >= 0 if dual = lower, s <= 0 if dual = upper, s = 0 in between; dual = P_[lower, upper](-(Gx +
 * g) / R). With R = 0 it is a force that holds up to its limit, then slips. With a target_mu,
 * s = target_mu / (dual - lower) - target_mu / (upper - dual). Infinite ends are no limits: lower =
 * 0 and infinite upper is a row of an orthant, both infinite an equality. */

typedef enum qd_cone_kind { QD_ORTHANT = 0, QD_LORENTZ = 1, QD_INTERVAL = 2 } qd_cone_kind;

typedef struct qd_cone_program {
  int variable_count;      /* n >= 1 */
  int row_count;           /* m = sum of cone_dim */
  int equality_count;      /* p */
  int cone_count;          /* number of cones */
  const double *Q;         /* (n, n) symmetric, positive semidefinite */
  const double *b;         /* (n) */
  const double *G;         /* (m, n) */
  const double *g;         /* (m) */
  const double *C;         /* (p, n), may be NULL if p = 0 */
  const double *c;         /* (p), may be NULL if p = 0 */
  const int *cone_kind;    /* (cone_count) a qd_cone_kind each */
  const int *cone_dim;     /* (cone_count) rows of each cone, >= 1 */
  const double *target_mu; /* (cone_count) J, or NULL for zeros (the exact solution) */
  /* compliant rows; NULL: none */
  const double *compliance;    /* (m) R >= 0 of every row, finite */
  const double *compliance_eq; /* (p) R >= 0 of every equality */
  const double *lower, *upper; /* (m) limits of the multipliers of interval rows, lower <= upper;
                                  not read for other rows. NULL if there is no interval */
} qd_cone_program;

typedef struct qd_cone_options {
  double tolerance;    /* relative, on primal and dual residual and complementarity; default 1e-9;
                          methods stop there, answers are judged by s (qd_cone_solve) */
  int iteration_limit; /* default 100 */
  int polish;     /* 1: polish exact solutions by Newton's method on the active set, to rounding;
                     default 1 */
  int warm_start; /* 1: x, dual and dual_eq contain a guess on entry, of any quality: a good guess
                     saves time, a bad one costs little, and the certificate is the same.
                     Multipliers that are not unique depend on the guess; default 0 */
  int (*stop)(void *context); /* the solving thread calls it once per iteration; if it returns 1,
                                 the solve ends with QD_STOPPED. NULL (default): never called */
  void *stop_context;
  struct qd_trace *trace; /* trace of a single solve; NULL (default): none */
} qd_cone_options;

/* One stage of a solve: its reason and its result. */
typedef struct qd_trace_row {
  int level;          /* 0, or nested in the last earlier row with a lower level */
  char stage[20];     /* in a step "attempt 1", "round 2", "island 3"; or the name of a method */
  char reason[44];    /* why it was tried, or its problem size */
  char verdict[20];   /* its result */
  int iterations;     /* interior point iterations, including nested stages */
  int factorizations; /* matrices factored, likewise */
  double residual;    /* largest residual; NaN: not measured */
} qd_trace_row;

/* Trace of a solve, in memory of the caller: the caller sets rows and capacity, the solve writes
 * the other fields. */
typedef struct qd_trace {
  qd_trace_row *rows; /* (capacity) */
  int capacity;
  int count;                             /* out: rows written */
  int dropped;                           /* out: rows left out because capacity was too small */
  int level, iterations, factorizations; /* scratch */
} qd_trace;

/* The method that solved a cone program, the simplest first. */
typedef enum qd_cone_method {
  QD_METHOD_NONE,          /* there was nothing to solve, or no method succeeded */
  QD_METHOD_SEPARABLE,     /* closed forms for variables that do not interact */
  QD_METHOD_FREE_MINIMUM,  /* the unconstrained minimiser */
  QD_METHOD_START,         /* the caller's guess */
  QD_METHOD_CUTS,          /* dual active-set method on faces of the cones */
  QD_METHOD_REST,          /* Newton's method, with the guess that every close contact sticks */
  QD_METHOD_PATH,          /* interior point method, polished on the active set that it finds */
  QD_METHOD_PATH_END,      /* the same, with the active set of its last iteration */
  QD_METHOD_MULTIPLIERS,   /* augmented Lagrangian method, from the last point of the path */
  QD_METHOD_CONTRADICTION, /* rows that are infeasible on their own */
  QD_METHOD_ENVELOPE,      /* Newton's method on the smooth cost, if all rows are compliant */
  QD_METHOD_COULOMB        /* in a step under Coulomb's law: several programs with shifted cones */
} qd_cone_method;

/* Its name in words, a constant. */
const char *qd_cone_method_name(qd_cone_method method);

typedef struct qd_cone_info {
  qd_status status;
  int iterations;         /* interior point iterations; of a step: in all its programs */
  int polished;           /* 1: the KKT equations of a certified active set hold to rounding */
  int factorizations;     /* matrices factored, likewise */
  double primal_residual; /* max-norm of the part of Gx + g outside K, and of Cx + c (units of g);
                             of compliant rows with R dual added */
  double dual_residual;   /* max-norm of Qx + b - G'dual - C'dual_eq (units of b) */
  double complementarity; /* max over cones of |dual o slack - target_mu e| (units of b x) */
  double objective;       /* 1/2 x'Qx + b'x */
  qd_cone_method method;  /* that found the solution or verdict (of several islands: the last one in
                             the order of the enum) */
  int tries;              /* number of methods tried, including this one; of a step: in all its
                             programs */
} qd_cone_info;

typedef struct qd_cone_workspace qd_cone_workspace;

qd_cone_options qd_cone_options_default(void);
/* Heap block for all programs up to these sizes with rigid rows. NULL if memory is exhausted. */
qd_cone_workspace *qd_cone_workspace_create(int variable_capacity, int row_capacity,
                                            int equality_capacity);
/* The same, for programs up to the sizes of this one, with at most as many compliant rows
 * (equalities included) and at most as many interval rows. */
qd_cone_workspace *qd_cone_workspace_create_for(const qd_cone_program *program);
void qd_cone_workspace_destroy(qd_cone_workspace *workspace);
size_t qd_cone_workspace_bytes(const qd_cone_workspace *workspace);
/* Solves the program; always fills x (n), slack (m), dual (m), dual_eq (p, may be NULL if p = 0)
 * and info.
 *
 * Every status is checked in the units of the program as given, whichever method found it.
 * Notation:
 * - d_j = 1 / sqrt(Q_jj) is the scale of column j, or one over its largest entry in G and C if
 *   Q_jj = 0. A compliant row adds G_ij^2 / R to Q_jj.
 * - |G_i d| is the norm of the scaled entries of row i (of a Lorentz cone: the largest norm).
 * - f is the largest |b_j| d_j over columns with curvature.
 * - o is the largest |g| and |c| over the largest row norm.
 * - s = max(1e-6, 10 tolerance).
 * - R_i = max(|x_j| / (1000 d_j), o / 100) over the columns j of cone i. If o is zero, or between
 *   1e-40 f and 1e-14 f (rounding), f / 1e8 replaces o / 100; a barrier program also includes f.
 *   If f and o are zero, R_i is at least 1.
 * - S_i = max d_j |term| over the columns j of cone i and all terms of Qx + b - G'dual -
 *   C'dual_eq. Without any b, S_i is at least R_i.
 * - S_j of a column is the largest S_i over the cones that contain it, and over the columns that Q
 *   couples with it.
 *
 * QD_OK:
 * - Rows: the distance of Gx + g from its cone, and of Cx + c from zero, is at most
 *   s max(|g_i|, |G_i d| R_i), or rounding (1e-15) of the largest |g|.
 * - Columns: |dual_residual_j| d_j <= s S_j, and dual_residual <= s |its largest term|. A
 *   dual_residual_j that is rounding (1e-15) of the forces in columns connected with j by rows and
 *   Q, directly or through others, counts as zero.
 * - Complementarity: |dual o slack - target_mu e|, and the same with Gx + g as slack, is at most
 *   s max(S_i R_i, target_mu). In an exact program that is not a step's, the sum of the products
 *   (the duality gap) is at most s times the terms of the objective and its dual, or 1e-12 of the
 *   sum of S_i R_i.
 * - Multipliers lie in their cones, up to rounding or a force of s S_i.
 * - In compliant rows, R_i s is at least that share of the terms of Gx + g + R dual, which is the
 *   quantity tested. In exact interval rows, that slack, or the distance to the end of the interval
 *   on its side, is zero relative to S_i over the norm of the row; in barrier programs, its product
 *   with the distance to the nearer end counts as complementarity.
 * - In the programs of a step, a row also holds if its violation is at most the tolerance times the
 *   size (radius of the bounding sphere) of the smallest object in contact, and S_i times that
 *   counts as zero complementarity.
 * Programs whose numbers differ by more than doubles can resolve end as QD_NUMERICAL_TROUBLE.
 *
 * QD_INFEASIBLE: dual (in its cones; 0 if a row has a compliance, and towards an end of an
 *   interval) and dual_eq are a proof: g'dual + c'dual_eq + X sum_j |(G'dual + C'dual_eq)_j| d_j <
 *   0 with X = 1000 max(f, o, largest term of the first two sums over the largest |dual_i| |G_i
 *   d|), or 1000 if that is zero. So no x up to X satisfies the constraints. In a barrier program
 *   the sum may be zero, to 1e-6 of its terms: then no x lies inside all cones.
 *
 * QD_UNBOUNDED: x is a direction along which the cost decreases without bound. */
qd_status qd_cone_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                        const qd_cone_program *program, double *x, double *slack, double *dual,
                        double *dual_eq, qd_cone_info *info);

/* Why a matrix (n, n) is not a valid cost. */
typedef enum qd_cost_fault {
  QD_COST_FINE = 0,
  QD_COST_NOT_SYMMETRIC, /* by more than 1e-9 of the largest entry; the largest difference is at
                            row, column */
  QD_COST_NEGATIVE,      /* the diagonal at row = column */
  QD_COST_INDEFINITE
} qd_cost_fault;

/* Doubles of scratch that the check needs. */
size_t qd_cost_scratch(int n);
/* Positive semidefinite up to rounding, 1e-10 n with a unit diagonal. */
qd_cost_fault qd_cost_check(int n, const double *Q, double *scratch, int *row, int *column);

/* ---------------------------------------------------------------- complementarity
 *   w = M z + q,   z >= 0,   w >= 0,   z_i w_i = 0 */

typedef struct qd_lcp_options {
  double tolerance; /* on |min(z, w)|, z relative to its largest entry, w relative to its terms;
                       1e-9 */
  int pivot_limit;  /* of one run; 0: a limit that depends on the size */
  int (*stop)(void *context); /* called once per pivot, as in qd_cone_options; default NULL */
  void *stop_context;
} qd_lcp_options;

typedef struct qd_lcp_info {
  qd_status status;
  int pivots, refactorizations; /* of all tries */
  int tries;        /* runs, each with another covering vector, or with a new inverse at each
                       pivot */
  int ended_on_ray; /* 1: the last run ended on a ray */
  double residual;  /* of z and w, measured like the tolerance; infinite if there is none */
} qd_lcp_info;

typedef struct qd_lcp_workspace qd_lcp_workspace;

qd_lcp_options qd_lcp_options_default(void);
/* Heap block for problems of exactly this size. NULL if memory is exhausted or n < 1. */
qd_lcp_workspace *qd_lcp_workspace_create(int n);
void qd_lcp_workspace_destroy(qd_lcp_workspace *workspace);
/* Lexicographic Lemke's method; M (n, n) is any matrix, row-major. Does not allocate. Always fills
 * z, w (n) and info. QD_OK: z and w are a solution to the tolerance. QD_INFEASIBLE: z is a
 * certificate, z >= 0, M'z <= 0, q'z < 0, so that no nonnegative z has a nonnegative w.
 * QD_NUMERICAL_TROUBLE with ended_on_ray: no solution was found; if M is copositive plus, there is
 * none. */
qd_status qd_lcp_solve(qd_lcp_workspace *workspace, const qd_lcp_options *options, const double *M,
                       const double *q, double *z, double *w, qd_lcp_info *info);

/* Mixed: A u + C v + a = 0, w = D u + B v + b, v >= 0, w >= 0, v_i w_i = 0, u free. */
typedef struct qd_mlcp_problem {
  const double *A; /* (equalities, free) row-major; any of them may have no rows or columns */
  const double *C; /* (equalities, n) */
  const double *D; /* (n, free) */
  const double *B; /* (n, n) */
  const double *a; /* (equalities) */
  const double *b; /* (n) */
} qd_mlcp_problem;

typedef struct qd_mlcp_workspace qd_mlcp_workspace;

/* For problems of exactly these sizes. NULL if a size is negative or memory is exhausted. */
qd_mlcp_workspace *qd_mlcp_workspace_create(int equalities, int free_count, int n);
void qd_mlcp_workspace_destroy(qd_mlcp_workspace *workspace);
/* Eliminates the free variables with the equalities and solves the remaining problem as
 * qd_lcp_solve does. Always fills u (free), v, w (n) and info. QD_INFEASIBLE: the remaining problem
 * has no point with v, w >= 0, proven as in qd_lcp_solve. There may be more equalities than free
 * variables, and they may be linearly dependent. */
qd_status qd_mlcp_solve(qd_mlcp_workspace *workspace, const qd_lcp_options *options,
                        const qd_mlcp_problem *problem, double *u, double *v, double *w,
                        qd_lcp_info *info);

/* ---------------------------------------------------------------- Coulomb friction
 *   w = W lambda + q,   every contact: w_n >= 0, |D^-1 lambda_tail| <= lambda_n, lambda_n w_n = 0,
 *   lambda_tail'w_tail + lambda_n |D w_tail| = 0
 * on forces lambda and speeds w of contacts whose rows are a normal and its tail (tangents,
 * torsion, rolling), D the diagonal of their friction coefficients. W (n, n) is symmetric, positive
 * semidefinite, of any rank: the Delassus matrix. Unlike its convex relaxation the law may have
 * several solutions, or none. */

#define QD_COULOMB_DIM 6 /* largest number of rows of a block */

typedef enum qd_block_kind {
  QD_BLOCK_CONTACT = 0, /* one cone over all tail rows; one row: frictionless */
  QD_BLOCK_SPLIT,       /* two cones: over the first two tail rows (tangents), and over the
                           others */
  QD_BLOCK_FREE         /* lambda free, w = 0 */
} qd_block_kind;

typedef struct qd_coulomb_problem {
  int block_count;       /* >= 1 */
  const int *block_dim;  /* (block_count) rows of each, 1 .. QD_COULOMB_DIM; n in all */
  const int *block_kind; /* (block_count) a qd_block_kind each */
  const int *row_start;  /* (n + 1) W by rows: entries row_start[i] .. row_start[i + 1] - 1, */
  const int *column;     /* their columns, in any order, and their */
  const double *value;   /* values */
  const double *q;       /* (n) */
  const double *weight;  /* (n) D >= 0 at tail rows; not read at other rows */
} qd_coulomb_problem;

typedef struct qd_coulomb_options {
  double tolerance;    /* on the error (below); default 1e-9 */
  int iteration_limit; /* of the interior point method, for each of its starts; default 150 */
  int stop_after; /* > 0: accept the best of this number of iterations, with any error; default 0 */
  int (*stop)(void *context); /* called before every factorisation; if it returns 1, the solve ends
                                 with QD_STOPPED; NULL */
  void *stop_context;
} qd_coulomb_options;

typedef enum qd_coulomb_method {
  QD_COULOMB_NONE,
  QD_COULOMB_FREE,    /* no force: q_n >= 0 */
  QD_COULOMB_PATH,    /* interior point method for the law */
  QD_COULOMB_NEWTON,  /* Newton's method on the active set of the interior point method */
  QD_COULOMB_PROXIMAL /* proximal steps, if the path turns back, and Newton's method */
} qd_coulomb_method;

/* Its name in words, a constant. */
const char *qd_coulomb_method_name(qd_coulomb_method method);

typedef struct qd_coulomb_info {
  qd_status status;
  qd_coulomb_method method;
  int unique;     /* 1: the active set is strict and the determinant of its equations is positive;
                     0: the solution may be one of several */
  int iterations; /* of the path */
  int factorizations;
  double error;       /* the largest one of |min(lambda_n, w_n)|, |D^-1 lambda_tail| - lambda_n, and
                         the change of w_tail or D^-1 lambda_tail to the nearest pair that satisfies
                         the law (w_tail zero, or opposite to a force on the boundary); w relative
                         to the largest entry of q, lambda and D^-1 lambda_tail relative to their
                         largest entry */
  double penetration; /* the certificate in the caller's units: largest -w_n, */
  double cone;        /* |D^-1 lambda_tail| - lambda_n and -lambda_n, */
  double normal_power; /* |lambda_n w_n|, */
  double slip_power;   /* |lambda_tail'w_tail + lambda_n |D w_tail||, */
  double free;         /* and |w| of free blocks */
  int row, other;      /* with QD_BAD_ARGUMENT: entry at which W is not symmetric, or -1 */
} qd_coulomb_info;

typedef struct qd_coulomb_workspace qd_coulomb_workspace;

qd_coulomb_options qd_coulomb_options_default(void);
/* Heap block for problems with the blocks and the pattern of W of this one. NULL if memory is
 * exhausted or the sizes are invalid. */
qd_coulomb_workspace *qd_coulomb_workspace_create(const qd_coulomb_problem *problem);
void qd_coulomb_workspace_destroy(qd_coulomb_workspace *workspace);
size_t qd_coulomb_workspace_bytes(const qd_coulomb_workspace *workspace);
/* Solves without allocating; always fills force and w (n) and info with the best point found.
 * QD_OK: the error is within the tolerance (or stop_after was given). QD_NOT_FINITE: the problem
 * contains NaN or infinity, or its forces are beyond the range of doubles. QD_ITERATION_LIMIT and
 * QD_NUMERICAL_TROUBLE: no solution was found. QD_INFEASIBLE: force is a certificate: it is zero at
 * tails, >= 0 at normals, W force = 0 and q'force < 0, so no force keeps every w_n >= 0. */
qd_status qd_coulomb_solve(qd_coulomb_workspace *workspace, const qd_coulomb_options *options,
                           const qd_coulomb_problem *problem, double *force, double *w,
                           qd_coulomb_info *info);

/* ---------------------------------------------------------------- optimal control
 *   minimise    sum_{t=0}^{T-1}  1/2 u_t'R_t u_t + r_t'u_t + 1/2 d_t'S_t d_t + s_t'd_t
 *                                + 1/2 x_{t+1}'Q_t x_{t+1} + q_t'x_{t+1}
 *   subject to  x_{t+1} = A_t x_t + B_t u_t + c_t,   d_t = u_t - u_{t-1}
 *               lower <= x_{t+1}, u_t, d_t <= upper
 * with x_0 and u_{-1} given. Solved in time linear in T by an interior point method whose Newton
 * systems are Riccati recursions on the state (x_t, u_{t-1}). Columns of x that no A_t reads cost
 * nothing. */

/* The square of a larger number may overflow. Larger numbers return QD_NOT_FINITE; larger bounds
 * are ignored. */
#define QD_OCP_LARGEST 1e100

typedef struct qd_ocp_qp {
  int horizon;            /* T >= 1 */
  int state_count;        /* nx >= 1 */
  int input_count;        /* nu >= 1 */
  const double *A;        /* (T, nx, nx) */
  const double *B;        /* (T, nx, nu) */
  const double *c;        /* (T, nx), NULL: zero; the same holds for every array below except Q */
  const double *x_first;  /* (nx) x_0 */
  const double *u_before; /* (nu) u_{-1} */
  const double *Q;        /* (T, nx, nx) weights of x_1 .. x_T, symmetric, positive semidefinite */
  const double *q;        /* (T, nx) */
  const double *R;        /* (T, nu, nu) symmetric, positive semidefinite */
  const double *r;        /* (T, nu) */
  const double *S;        /* (T, nu, nu) symmetric, positive semidefinite */
  const double *s;        /* (T, nu) */
  const double *x_lower, *x_upper; /* (T, nx) of x_1 .. x_T, infinite if unbounded; NULL: all
                                      unbounded */
  const double *u_lower, *u_upper; /* (T, nu) */
  const double *d_lower, *d_upper; /* (T, nu) */
} qd_ocp_qp;

/* Caller's memory; every array but x and u may be NULL. */
typedef struct qd_ocp_solution {
  double *x;       /* (T + 1, nx), x_0 included */
  double *u;       /* (T, nu) */
  double *costate; /* (T, nx) derivative of the optimal cost with respect to c_t */
  double *x_dual;  /* (T, nx) multiplier of the upper bound minus that of the lower bound */
  double *u_dual;  /* (T, nu) */
  double *d_dual;  /* (T, nu) */
  double *x_gain;  /* (T, nu, nx) feedback law u_t + x_gain (x - x_t) + u_gain (w - u_{t-1}), with
                      x */
  double *u_gain;  /* (T, nu, nu) the actual state and w the actual previous input */
} qd_ocp_solution;

typedef struct qd_ocp_workspace qd_ocp_workspace;

/* Heap block for problems of exactly these sizes. NULL if memory is exhausted or a size is < 1. */
qd_ocp_workspace *qd_ocp_workspace_create(int horizon, int state_count, int input_count);
void qd_ocp_workspace_destroy(qd_ocp_workspace *workspace);
size_t qd_ocp_workspace_bytes(const qd_ocp_workspace *workspace);
/* Solves without allocating; always fills the solution and info. Uses the options tolerance,
 * iteration_limit and stop. In info, primal_residual is in units of the bounds, dual_residual in
 * units of the gradient with respect to u, and complementarity is the largest product of slack and
 * multiplier. QD_INFEASIBLE has a certificate: multipliers that prove that no input satisfies all
 * bounds. */
qd_status qd_ocp_solve(qd_ocp_workspace *workspace, const qd_cone_options *options,
                       const qd_ocp_qp *problem, const qd_ocp_solution *solution,
                       qd_cone_info *info);

#if defined(QD_VISIBLE) && defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
