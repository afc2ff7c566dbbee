/* Status codes, and the solvers by themselves: cone programs, complementarity, Coulomb friction,
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
  QD_BAD_ARGUMENT,      /* sizes or values that make no sense */
  QD_OUT_OF_MEMORY,     /* heap exhausted while creating or growing a block */
  QD_OUT_OF_CAPACITY,   /* more than the workspace holds: qd_workspace_reserve, call again */
  QD_INFEASIBLE,        /* no point within reach satisfies the constraints: qd_cone_solve */
  QD_UNBOUNDED,         /* the cost falls for ever: nothing holds some motion */
  QD_ITERATION_LIMIT,   /* not converged within the iteration limit */
  QD_NUMERICAL_TROUBLE, /* factorisation or step failed; residuals are in the info */
  QD_NOT_FINITE,        /* an input holds NaN or infinity */
  QD_NOT_UNIQUE,        /* of a step: some motion costs nothing, and nothing holds it */
  QD_STOPPED,           /* the caller has asked for its end: qd_batch_set_stop, options' stop */
  QD_LAW_NOT_MET        /* of a step: no forces were found that hold Coulomb's law */
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
 * Rows may give way, by a compliance R >= 0 of their own: their slack is s = Gx + g + R dual, and
 * for s and dual all of the above holds. So dual = P_K(-(Gx + g) / R), in the norm of R, and the
 * minimum's cost has |P_K(-(Gx + g) / R)|_R^2 / 2 besides. Equalities: Cx + c + R dual_eq = 0.
 *
 * Rows of an interval have a bounded multiplier, lower <= dual <= upper, of either sign: s >= 0
 * where dual = lower, s <= 0 where dual = upper, s = 0 between; dual = P_[lower, upper](-(Gx + g) /
 * R). R = 0: a force that holds up to its limit, then slips. With a target_mu,
 * s = target_mu / (dual - lower) - target_mu / (upper - dual). Infinite ends are none: lower = 0
 * and upper infinite is a row of an orthant, both infinite an equality. */

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
  /* rows that give way; NULL: none does */
  const double *compliance;    /* (m) R >= 0 of every row, finite */
  const double *compliance_eq; /* (p) that of every equality */
  const double *lower, *upper; /* (m) limits of the multipliers of intervals' rows, lower <= upper;
                                  not read elsewhere. NULL if there is no interval */
} qd_cone_program;

typedef struct qd_cone_options {
  double tolerance;    /* relative, on primal and dual residual and complementarity; default 1e-9 */
  int iteration_limit; /* default 100 */
  int polish;     /* 1: after an exact solve, Newton on the active set to rounding; default 1 */
  int warm_start; /* 1: x, dual and dual_eq hold a guess on entry, of any quality: a good one saves
                     time, a bad one costs little, and what the answer promises is the same.
                     Multipliers that are not unique depend on it; default 0 */
  int (*stop)(void *context); /* asked by the solving thread once an iteration; where it says 1, the
                                 solve ends with QD_STOPPED. NULL (default): nobody is asked */
  void *stop_context;
  struct qd_trace *trace; /* what was tried goes there, of one solve at a time; NULL (default):
                             nobody asks */
} qd_cone_options;

/* One stage of a solve: why it was tried, and what came of it. */
typedef struct qd_trace_row {
  int level;          /* 0, or a part of the last row before it that has a lower level */
  char stage[20];     /* of a step "attempt 1", "round 2", "island 3"; or the name of a method */
  char reason[44];    /* why it was tried, or on how much */
  char verdict[20];   /* what came of it */
  int iterations;     /* interior point iterations, of its parts too */
  int factorizations; /* matrices factored, likewise */
  double residual;    /* largest of what it left; NaN: not measured */
} qd_trace_row;

/* What a solve has tried, row by row, in memory of the caller: rows and capacity are given, the
 * rest is written by the solve. */
typedef struct qd_trace {
  qd_trace_row *rows; /* (capacity) */
  int capacity;
  int count;                             /* out: rows that were written */
  int dropped;                           /* out: rows that there was no room for */
  int level, iterations, factorizations; /* scratch */
} qd_trace;

/* How a cone program was answered, the simplest way first. */
typedef enum qd_cone_method {
  QD_METHOD_NONE,          /* there was nothing to solve, or no method had an answer */
  QD_METHOD_SEPARABLE,     /* variables that do not know each other, one by one */
  QD_METHOD_FREE_MINIMUM,  /* the minimiser of the cost: no row matters */
  QD_METHOD_START,         /* the caller's guess */
  QD_METHOD_CUTS,          /* dual active set method on faces of the cones */
  QD_METHOD_REST,          /* as if all that is near came to rest */
  QD_METHOD_PATH,          /* interior point method, with the active set that it shows */
  QD_METHOD_PATH_END,      /* that set from the very end */
  QD_METHOD_MULTIPLIERS,   /* method of multipliers, from where rounding ended the path */
  QD_METHOD_CONTRADICTION, /* rows that no point satisfies whatever the others say */
  QD_METHOD_ENVELOPE,      /* Newton's method on a cost without rows, where all of them give way */
  QD_METHOD_COULOMB        /* of a step under Coulomb's law: several programs, with raised cones */
} qd_cone_method;

/* Its name in words, a constant. */
const char *qd_cone_method_name(qd_cone_method method);

typedef struct qd_cone_info {
  qd_status status;
  int iterations;         /* interior point iterations, of a step in all programs that it solved */
  int polished;           /* 1: the KKT equations of a certified active set hold to rounding */
  int factorizations;     /* matrices factored, likewise */
  double primal_residual; /* max-norm of the part of Gx + g outside K, and of Cx + c (units of g),
                             R dual added where rows give way */
  double dual_residual;   /* max-norm of Qx + b - G'dual - C'dual_eq (units of b) */
  double complementarity; /* max over cones of |dual o slack - target_mu e| (units of b x) */
  double objective;       /* 1/2 x'Qx + b'x */
  qd_cone_method method;  /* that has led to the answer or verdict (of islands: the farthest) */
  int tries;              /* methods that were tried for it, its own included, likewise */
} qd_cone_info;

typedef struct qd_cone_workspace qd_cone_workspace;

qd_cone_options qd_cone_options_default(void);
/* Heap block that serves every program up to these sizes whose rows are rigid. NULL if memory is
 * exhausted. */
qd_cone_workspace *qd_cone_workspace_create(int variable_capacity, int row_capacity,
                                            int equality_capacity);
/* The same, for programs up to this one's sizes, and with up to as many rows (equalities included)
 * that have a compliance, and up to as many rows of intervals. */
qd_cone_workspace *qd_cone_workspace_create_for(const qd_cone_program *program);
void qd_cone_workspace_destroy(qd_cone_workspace *workspace);
size_t qd_cone_workspace_bytes(const qd_cone_workspace *workspace);
/* Solves; fills x (n), slack (m), dual (m), dual_eq (p, may be NULL if p = 0) and info, always.
 *
 * What a status promises, checked in the numbers given whatever method has answered. Columns count
 * in units d_j = 1 / sqrt(Q_jj), or one over their largest entry in G and C where there is no
 * curvature; |G_i d| is the norm of a row's entries in them (the largest one in a Lorentz cone), f
 * the largest of |b_j| d_j over columns with curvature, o that of |g| and |c| over the largest row
 * norm. With s = max(1e-6, 10 tolerance), for each cone i and the columns that its rows have:
 * R_i = max(|x_j| / (1000 d_j), o / 100), where o is zero, or 1e-40 f to 1e-14 f (rounding), f /
 * 1e8 instead, of a barrier f besides; S_i = max d_j |any number that column j of Qx + b - G'dual -
 * C'dual_eq is a sum of|; S_j of a column the largest S_i of the cones that have it, and of columns
 * that Q couples it with:
 * - QD_OK: every row of Gx + g is outside its cone, and every row of Cx + c from zero, by at most
 *   s max(|g_i|, |G_i d| R_i), or rounding (1e-15) of the largest |g|; |dual_residual_j| d_j <= s
 * S_j, and dual_residual <= s |its largest term|; complementarity, of slack and of Gx + g, <= s
 * max(S_i R_i, target_mu), and of an exact program their sum, the duality gap, <= s times the terms
 * of the objective and its dual (or 1e-12 of the sum of S_i R_i); dual is in its cones but for
 * rounding or a force of s S_i. A dual_residual_j that is rounding (1e-15) of the forces in columns
 * that rows and Q connect with j, directly or through others, is none. (R is 1 at
 * least where f and o are zero, S is R at least where b is.) In the programs of a step, rows also
 * hold where they are outside by no more than the tolerance times the size (bounding sphere's
 * radius) of the smallest thing in contact, and S_i times that is no complementarity. Programs
 * whose own numbers differ by so much that a double cannot hold this end as QD_NUMERICAL_TROUBLE.
 *   Where rows give way, R_i times s is at least that share of the terms of Gx + g + R dual, which
 *   is what holds; of an exact interval either that slack or the way to the end on its side, beside
 *   S_i over the row's norm, is no more than zero; of a barrier its product with the nearer end.
 *   Q_jj has what such rows add to it, G_ij^2 / R.
 * - QD_INFEASIBLE: dual, in its cones (0 where a row has a compliance, and towards an end
 * of an interval), and dual_eq prove it: g'dual + c'dual_eq + X sum_j
 *   |(G'dual + C'dual_eq)_j| d_j < 0 with X = 1000 max(f, o, largest term of the first two sums
 *   over the largest |dual_i| |G_i d|), 1000 if that is zero, so no x up to X satisfies the
 * constraints. Of a barrier program the sum may be zero, to 1e-6 of its terms: then no x lies
 * inside all cones.
 * - QD_UNBOUNDED: x is a direction along which the cost falls for ever. */
qd_status qd_cone_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                        const qd_cone_program *program, double *x, double *slack, double *dual,
                        double *dual_eq, qd_cone_info *info);

/* What may be wrong with a matrix (n, n) as a cost. */
typedef enum qd_cost_fault {
  QD_COST_FINE = 0,
  QD_COST_NOT_SYMMETRIC, /* by more than 1e-9 of the largest entry: most at row, column */
  QD_COST_NEGATIVE,      /* the diagonal at row = column */
  QD_COST_INDEFINITE
} qd_cost_fault;

/* Doubles of scratch that the check needs. */
size_t qd_cost_scratch(int n);
/* Positive semidefinite counts up to rounding, 1e-10 n of a unit diagonal. */
qd_cost_fault qd_cost_check(int n, const double *Q, double *scratch, int *row, int *column);

/* ---------------------------------------------------------------- complementarity
 *   w = M z + q,   z >= 0,   w >= 0,   z_i w_i = 0 */

typedef struct qd_lcp_options {
  double tolerance; /* on |min(z, w)|, z beside its largest entry, w beside its terms; 1e-9 */
  int pivot_limit;  /* of one run; 0: many, by the size */
  int (*stop)(void *context); /* asked once a pivot, as in qd_cone_options; default NULL */
  void *stop_context;
} qd_lcp_options;

typedef struct qd_lcp_info {
  qd_status status;
  int pivots, refactorizations; /* of all tries */
  int tries;        /* runs with other covering vectors, or a fresh inverse each pivot */
  int ended_on_ray; /* 1: the last run did */
  double residual;  /* of z and w, as the tolerance; infinite if there is none */
} qd_lcp_info;

typedef struct qd_lcp_workspace qd_lcp_workspace;

qd_lcp_options qd_lcp_options_default(void);
/* Heap block for problems of exactly this size. NULL if memory is exhausted or n < 1. */
qd_lcp_workspace *qd_lcp_workspace_create(int n);
void qd_lcp_workspace_destroy(qd_lcp_workspace *workspace);
/* Lemke's method, lexicographic; M (n, n) any matrix, row-major. Without allocating. Fills z, w (n)
 * and info, always. QD_OK: z and w solve it to the tolerance. QD_INFEASIBLE: z is a certificate, z
 * >= 0, M'z <= 0, q'z < 0, so that nothing nonnegative has a nonnegative w. QD_NUMERICAL_TROUBLE
 * with ended_on_ray: neither was found; where M is copositive plus, there is none. */
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

/* For problems of exactly these sizes, none below 0. NULL otherwise or if memory is exhausted. */
qd_mlcp_workspace *qd_mlcp_workspace_create(int equalities, int free_count, int n);
void qd_mlcp_workspace_destroy(qd_mlcp_workspace *workspace);
/* Eliminates the free variables with the equalities and solves what is left as qd_lcp_solve does.
 * Fills u (free), v, w (n) and info, always. QD_INFEASIBLE: what is left has no point with v, w >=
 * 0, proven as there. Equalities may outnumber free variables, or depend on each other. */
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

#define QD_COULOMB_DIM 6 /* rows of a block at most */

typedef enum qd_block_kind {
  QD_BLOCK_CONTACT = 0, /* one cone over all tail rows; one row: frictionless */
  QD_BLOCK_SPLIT,       /* two: of the first two tail rows (tangents), and of the others */
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
  const double *weight;  /* (n) D >= 0 at tail rows; at other rows not looked at */
} qd_coulomb_problem;

typedef struct qd_coulomb_options {
  double tolerance;    /* on the error (below); default 1e-9 */
  int iteration_limit; /* of the path, from each of its starts; default 150 */
  int stop_after; /* > 0: exactly the best of so many iterations, whatever its error; default 0 */
  int (*stop)(void *context); /* asked before every factorisation; 1: give up, QD_STOPPED; NULL */
  void *stop_context;
} qd_coulomb_options;

typedef enum qd_coulomb_method {
  QD_COULOMB_NONE,
  QD_COULOMB_FREE,    /* no force: q_n >= 0 */
  QD_COULOMB_PATH,    /* interior point path of the law itself */
  QD_COULOMB_NEWTON,  /* Newton on the active set that the path has shown */
  QD_COULOMB_PROXIMAL /* a flow of proximal steps, where the path turns back, and Newton */
} qd_coulomb_method;

/* Its name in words, a constant. */
const char *qd_coulomb_method_name(qd_coulomb_method method);

typedef struct qd_coulomb_info {
  qd_status status;
  qd_coulomb_method method;
  int unique;     /* 1: of a strict set whose equations are regular and turn no orientation; 0:
                     the solution found may be one of several */
  int iterations; /* of the path */
  int factorizations;
  double error;       /* the largest |min(lambda_n, w_n)|, |D^-1 lambda_tail| - lambda_n, and change
                         of w_tail or D^-1 lambda_tail to the nearest pair of the law (w_tail zero,
                         or against a force on the boundary): w beside the largest of q, lambda and
                         D^-1 lambda_tail beside the largest of them */
  double penetration; /* the certificate in the caller's units: largest -w_n, */
  double cone;        /* |D^-1 lambda_tail| - lambda_n and -lambda_n, */
  double normal_power; /* |lambda_n w_n|, */
  double slip_power;   /* |lambda_tail'w_tail + lambda_n |D w_tail||, */
  double free;         /* and |w| of free blocks */
  int row, other;      /* of QD_BAD_ARGUMENT: where W is not symmetric, or -1 */
} qd_coulomb_info;

typedef struct qd_coulomb_workspace qd_coulomb_workspace;

qd_coulomb_options qd_coulomb_options_default(void);
/* Heap block for problems of this one's blocks and pattern of W. NULL if memory is exhausted or the
 * sizes make no sense. */
qd_coulomb_workspace *qd_coulomb_workspace_create(const qd_coulomb_problem *problem);
void qd_coulomb_workspace_destroy(qd_coulomb_workspace *workspace);
size_t qd_coulomb_workspace_bytes(const qd_coulomb_workspace *workspace);
/* Solves, without allocating; fills force and w (n) and info, always: the best that was found.
 * QD_OK: the error is within the tolerance (or stop_after was given). QD_NOT_FINITE: a number of
 * the problem is none, or its forces are beyond the range of doubles. QD_ITERATION_LIMIT and
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

/* Numbers beyond it are refused, QD_NOT_FINITE; bounds beyond it are none. */
#define QD_OCP_LARGEST 1e100

typedef struct qd_ocp_qp {
  int horizon;            /* T >= 1 */
  int state_count;        /* nx >= 1 */
  int input_count;        /* nu >= 1 */
  const double *A;        /* (T, nx, nx) */
  const double *B;        /* (T, nx, nu) */
  const double *c;        /* (T, nx), NULL: zero; likewise every array below but Q */
  const double *x_first;  /* (nx) x_0 */
  const double *u_before; /* (nu) u_{-1} */
  const double *Q;        /* (T, nx, nx) weights of x_1 .. x_T, symmetric, positive semidefinite */
  const double *q;        /* (T, nx) */
  const double *R;        /* (T, nu, nu) symmetric, positive semidefinite */
  const double *r;        /* (T, nu) */
  const double *S;        /* (T, nu, nu) symmetric, positive semidefinite */
  const double *s;        /* (T, nu) */
  const double *x_lower, *x_upper; /* (T, nx) of x_1 .. x_T, infinite where free; NULL: all free */
  const double *u_lower, *u_upper; /* (T, nu) */
  const double *d_lower, *d_upper; /* (T, nu) */
} qd_ocp_qp;

/* Caller's memory; every array but x and u may be NULL. */
typedef struct qd_ocp_solution {
  double *x;       /* (T + 1, nx), x_0 included */
  double *u;       /* (T, nu) */
  double *costate; /* (T, nx) derivative of the optimal cost by c_t */
  double *x_dual;  /* (T, nx) multiplier of the upper bound minus that of the lower bound */
  double *u_dual;  /* (T, nu) */
  double *d_dual;  /* (T, nu) */
  double *x_gain;  /* (T, nu, nx) feedback: u_t + x_gain (x - x_t) + u_gain (w - u_{t-1}), where */
  double *u_gain;  /* (T, nu, nu) x and w are the state and the input before that were met */
} qd_ocp_solution;

typedef struct qd_ocp_workspace qd_ocp_workspace;

/* Heap block for problems of exactly these sizes. NULL if memory is exhausted or a size is < 1. */
qd_ocp_workspace *qd_ocp_workspace_create(int horizon, int state_count, int input_count);
void qd_ocp_workspace_destroy(qd_ocp_workspace *workspace);
size_t qd_ocp_workspace_bytes(const qd_ocp_workspace *workspace);
/* Solves, without allocating; fills the solution and info, always. Of the options, tolerance and
 * iteration_limit and stop count. info: primal_residual in units of the bounds, dual_residual in
 * those of the gradient by u, complementarity the largest slack times multiplier. QD_INFEASIBLE
 * comes with a certificate: multipliers under which no input satisfies all bounds. */
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
