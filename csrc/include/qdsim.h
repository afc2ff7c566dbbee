/* qdsim: convex quasi-dynamic contact. The only public header of the C core.
 *
 * Units are SI (m, kg, s, rad, N). Matrices are row-major. Quaternions are unit, order w x y z.
 * A configuration q has nq numbers; a displacement v (or delta) has nv numbers in the tangent
 * space: hinge and slide one each; ball three (rotation vector in the axes of the frame before the
 * joint); free six (translation of the body origin, then the rotation vector in world axes). A
 * quasi-dynamic step is a pure map q_next = f(q, u): a qd_model never changes after its creation, a
 * qd_workspace is one thread's scratch memory and carries no state from call to call.
 */
#ifndef QDSIM_H
#define QDSIM_H

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
  /* of steps under Coulomb's law: several programs, */
  QD_METHOD_COULOMB_NEWTON, /* by Newton's method on what their cones are raised by, */
  QD_METHOD_COULOMB_MIXING  /* or by mixing of iterations too */
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

/* ---------------------------------------------------------------- model */

typedef enum qd_joint_type { QD_HINGE = 0, QD_SLIDE = 1, QD_BALL = 2, QD_FREE = 3 } qd_joint_type;

typedef enum qd_shape_type {
  QD_PLANE = 0, /* half space z <= 0 of the geometry frame; size unused */
  QD_SPHERE,    /* size: radius */
  QD_CAPSULE,   /* size: radius, half length; along z of the geometry frame */
  QD_BOX,       /* size: half lengths */
  QD_CYLINDER,  /* size: radius, half length; along z of the geometry frame */
  QD_ELLIPSOID, /* size: half axes */
  QD_MESH,      /* convex: see mesh_vertex_count; size unused */
  QD_CLOUD,     /* size: radius of the points, may be zero; see cloud_point */
  QD_SHAPE_TYPE_COUNT
} qd_shape_type;

/* 1 if contacts between the two shapes can be computed, in either order. */
int qd_shape_pair_supported(int type_a, int type_b);

typedef enum qd_constraint_type {
  QD_CONNECT = 0,    /* two points of two bodies coincide */
  QD_WELD,           /* two frames of two bodies coincide */
  QD_COUPLING,       /* a scalar joint follows another one by a polynomial */
  QD_TENDON_COUPLING /* a tendon's length follows another one's likewise */
} qd_constraint_type;

typedef enum qd_tendon_type {
  QD_TENDON_FIXED = 0, /* its length is a sum over hinge and slide joints */
  QD_TENDON_SPATIAL,   /* straight lines from point to point of bodies */
  QD_TENDON_THRUST,    /* no length: a force on a body that moves with it */
  QD_TENDON_REACH      /* how far a point lies from one of another body, along its direction; with
                          five points, and by how much it is turned against that, about its axis */
} qd_tendon_type;

#define QD_CONSTRAINT_FORCE 6 /* numbers per bilateral constraint in its force */

/* Input of qd_model_create: flat arrays, copied. Body 0 is the world; parents come before children.
 * Joints are listed in q order: sorted by body, and in their order on the body. */
typedef struct qd_model_spec {
  int body_count;
  const int32_t *body_parent; /* (body_count), body_parent[0] = 0 */
  const double *body_pos;     /* (body_count, 3) body frame in the parent's, all joints at zero */
  const double *body_quat;    /* (body_count, 4) */
  const double *body_mass;    /* (body_count) kg */
  const double *body_com;     /* (body_count, 3) centre of mass, body frame */
  const double *body_inertia; /* (body_count, 3, 3) about the centre of mass, body axes, kg m^2 */

  const double *body_gravcomp;  /* (body_count) share of the gravity on it that something else
                                   carries; NULL: none */
  const double *body_invweight; /* (body_count) 1/kg, inverse weight with which MuJoCo's contacts
                                   count it (body_invweight0 of translations), a constant whatever
                                   body_mass is; negative: computed at reference_q; NULL: all are */

  int mocap_count;           /* bodies whose pose is an input of a step */
  const int32_t *mocap_body; /* (mocap_count) children of the world without joints, each once;
                                body_pos and body_quat: where they are by default */

  int joint_count;
  const int32_t *joint_type;     /* (joint_count) a qd_joint_type */
  const int32_t *joint_body;     /* (joint_count) */
  const double *joint_pos;       /* (joint_count, 3) anchor, body frame */
  const double *joint_axis;      /* (joint_count, 3) unit, body frame; hinge and slide */
  const double *joint_ref;       /* (joint_count) q at which body_pos/quat hold; hinge and slide */
  const double *joint_range;     /* (joint_count, 2) lower, upper; -inf, inf where unlimited. Ball
                                    joints: the angle of their rotation, lower 0 or -inf */
  const double *joint_stiffness; /* (joint_count) spring, N/m or Nm/rad; 0 = none */
  const double *joint_springref; /* (joint_count) q at which the spring of a hinge or slide rests;
                                    those of ball and free joints at body_pos, body_quat */
  const double *joint_damping; /* (joint_count) Ns/m or Nms/rad, along each of its DOFs: counts with
                                  qd_step_options.damping; NULL: none */
  const double *joint_armature; /* (joint_count) kg or kg m^2, added to the mass of each DOF of the
                                   joint, for the second-order step only; NULL: none */
  const double *joint_friction; /* (joint_count) N or Nm of dry friction along each of its DOFs:
                                   holds up to that, then slips; NULL: none */
  const double *default_q;      /* (nq) configuration at which mass_ratio is evaluated */

  /* An actuator pulls its joint with k (u / gear - q) + (gain + slope . (q, qdot)) u + bias -
   * damping qdot, N or Nm. Joints that some actuator holds with k > 0 have no mass in the program;
   * all others move like objects. */
  int actuator_count; /* nu */
  const int32_t
      *actuator_joint; /* (nu) a hinge or slide joint; several may have the same. -1: a tendon */
  const int32_t *actuator_tendon; /* (nu) the tendon that it pulls along, with its length for q; -1:
                                   * none; NULL: none of all */
  const double *actuator_stiffness;  /* (nu) k >= 0 in joint units */
  const double *actuator_gear;       /* (nu) != 0; infinite: the command does not move the spring */
  const double *actuator_gain;       /* (nu) N or Nm per unit of u, beside the spring; NULL: none,
                                        likewise the following */
  const double *actuator_gain_slope; /* (nu, 2) of the gain by q and by its rate */
  const double *actuator_bias;       /* (nu) N or Nm */
  const double *actuator_damping;    /* (nu) >= 0, Ns/m or Nms/rad: counts with damping */
  const double *actuator_force_range; /* (nu, 2) N or Nm on the joint, lower <= upper, infinite
                                         where unlimited; NULL: none is limited */

  int geom_count;
  const int32_t *geom_type; /* (geom_count) a qd_shape_type */
  const int32_t *geom_body; /* (geom_count) */
  const double *geom_pos;   /* (geom_count, 3) body frame */
  const double *geom_quat;  /* (geom_count, 4) */
  const double *geom_size;  /* (geom_count, 3) */
  const int32_t
      *geom_mesh; /* (geom_count) its mesh, or -1; QD_MESH in a pair needs one; NULL: none */

  int mesh_count;                   /* convex hulls, each shared by any number of geometries */
  const int32_t *mesh_vertex_count; /* (mesh_count) vertices of each mesh */
  const int32_t *mesh_face_count;   /* (mesh_count) triangles of each mesh */
  int mesh_vertex_total;
  const double *mesh_vertex; /* (mesh_vertex_total, 3) mesh after mesh, geometry frame */
  int mesh_face_total;
  const int32_t *mesh_face; /* (mesh_face_total, 3) mesh after mesh; vertices counted from the first
                               of the mesh, counterclockwise seen from outside */

  const int32_t *geom_cloud; /* (geom_count) its cloud, or -1; QD_CLOUD needs one; NULL: none */
  int cloud_count;           /* rigid point clouds, each shared by any number of geometries */
  const int32_t *cloud_point_count;   /* (cloud_count) points of each, at least one */
  const int32_t *cloud_contact_count; /* (cloud_count) contacts with one other geometry: of the
                                         nearest points, 1 to 8 */
  int cloud_point_total;
  const double *cloud_point; /* (cloud_point_total, 3) cloud after cloud, geometry frame */

  const int32_t *geom_field;  /* (geom_count) its pressure field or rigid surface, or -1: pairs with
                                 a soft geometry need both; NULL: none has one */
  const double *geom_modulus; /* (geom_count) Pa, the pressure where the field has 1; 0 where it
                                 has none or is rigid. NULL: all are */
  const double *geom_dissipation;     /* (geom_count) s/m of soft ones, >= 0; NULL: none */
  int field_count;                    /* each shared by any number of geometries */
  const int32_t *field_kind;          /* (field_count) a qd_field_kind */
  const double *field_slope;          /* (field_count) 1/m, of soft half spaces */
  const int32_t *field_vertex_count;  /* (field_count) vertices of each */
  const int32_t *field_element_count; /* (field_count) tetrahedra or triangles of each */
  int field_vertex_total;
  const double *field_vertex;   /* (field_vertex_total, 3) field after field, geometry frame */
  const double *field_pressure; /* (field_vertex_total) share of the modulus; not read elsewhere */
  int field_index_total;
  const int32_t *field_index; /* (field_index_total) vertices of the elements, 4 of a tetrahedron, 3
                                 of a triangle, counted from the first of the field */

  int pair_count;              /* candidate pairs, filtered by the caller */
  const int32_t *pair_geom;    /* (pair_count, 2) */
  const int32_t *pair_dim;     /* (pair_count) contact dimension 1, 3, 4 or 6 */
  const double *pair_friction; /* (pair_count, 5) two tangential, torsional (m), two rolling (m) */
  const double *pair_margin;   /* (pair_count) m; the larger of this and the option counts */
  const double *pair_compliance;  /* (pair_count) m/N, along the normal; 0: rigid. NULL: all are */
  const double *pair_restitution; /* (pair_count) of the second-order step, 0 to 1; negative: the
                                     option's; NULL: all */
  /* MuJoCo's contacts (QD_CONTACTS_MUJOCO); NULL: its defaults. They act from
   * pair_margin on. */
  const double *pair_reference; /* (pair_count, 3) stiffness K 1/s^2, damping B 1/s, and damping
                                   across the normal, as solref and solimp give them, >= 0 */
  const double *pair_impedance; /* (pair_count, 5) solimp */
  const double *pair_impratio;  /* (pair_count) > 0 */
  const int32_t *pair_edges;    /* (pair_count) of a pyramid that stands for the cone, 2 (dim - 1);
                                   0: the cone is elliptic */
  const double *reference_q;    /* (nq) MuJoCo's qpos0; NULL: default_q */

  int constraint_count;             /* bilateral constraints */
  const int32_t *constraint_type;   /* (constraint_count) a qd_constraint_type */
  const int32_t *constraint_object; /* (constraint_count, 2) bodies; coupling: the joint that
                                       follows and the one it follows, -1: none; tendon coupling:
                                       likewise two tendons */
  const double *constraint_data;    /* (constraint_count, 10) connect and weld: anchor in the first
                                       body's frame (3), in the second's (3), weld: rotation of the
                                       second body in the first's frame (4). Coupling: a0..a4 of
                                       q1 - ref1 = sum a_i (q2 - ref2)^i; of tendons with their
                                       lengths, ref1 and ref2 in the next two numbers */
  const double *constraint_compliance; /* (constraint_count, 2) of forces, m/N (coupling: rad/Nm for
                                          hinges), and of a weld's moments, rad/Nm; counts with
                                          qd_step_options.soft_constraints. NULL: all are rigid */

  int tendon_count;
  const int32_t *tendon_type;        /* (tendon_count) a qd_tendon_type */
  const int32_t *tendon_point_count; /* (tendon_count) joints or points of each; spatial: 2 at least
                                      */
  const double *tendon_range;        /* (tendon_count, 2) of the length, infinite where unlimited */
  const double *tendon_stiffness;    /* (tendon_count) spring, N/m, 0 = none; NULL: none, like the
                                        following */
  const double *tendon_springrange;  /* (tendon_count, 2) lengths between which it rests */
  const double *tendon_frictionloss; /* (tendon_count) N, dry friction along it */
  const double *tendon_damping;      /* (tendon_count) Ns/m along it: counts with damping */
  int tendon_point_total;
  const int32_t *tendon_object; /* (tendon_point_total) tendon after tendon: joint, or body */
  const double *tendon_data;    /* (tendon_point_total, 3) coefficient of the joint's q, then zeros;
                                   or the point, body frame; thrust: point, force and moment of a
                                   unit force along it, all of one body, in its frame; reach: a
                                   point, the other body's point and its direction */

  double gravity[3]; /* m/s^2, world */
} qd_model_spec;

typedef struct qd_model qd_model;

/* Copies and checks the spec. On failure *model is NULL and message (of message_size bytes) names
 * the array, index and reason. */
qd_status qd_model_create(const qd_model_spec *spec, qd_model **model, char *message,
                          size_t message_size);
void qd_model_destroy(qd_model *model);
int qd_model_nq(const qd_model *model);
int qd_model_nv(const qd_model *model);
int qd_model_nu(const qd_model *model);
int qd_model_constraint_count(const qd_model *model);
int qd_model_tendon_count(const qd_model *model);
int qd_model_mocap_count(const qd_model *model);
/* 1 if contacts of some pair have no damping in pair_reference, which QD_CONTACTS_MUJOCO asks for,
 * since they would creep without end; geom: the first such pair. */
int qd_model_undamped_pair(const qd_model *model, int geom[2]);
/* (body_count) body_invweight as given or computed. */
const double *qd_model_body_invweights(const qd_model *model);
int qd_model_body_count(const qd_model *model);
/* Pairs that press by pressure fields: those with a soft geometry, of the candidate pairs. */
int qd_model_soft_pair_count(const qd_model *model);
/* 1 if every joint moves in one plane; then normal (3) holds the unit normal of that plane. */
int qd_model_planar_normal(const qd_model *model, double *normal);

/* ---------------------------------------------------------------- parameters
 * What may vary between two models of one topology: arrays of qd_model_spec, by number. */

typedef enum qd_parameter {
  QD_PARAMETER_BODY_MASS = 0,
  QD_PARAMETER_BODY_COM,
  QD_PARAMETER_BODY_INERTIA,
  QD_PARAMETER_JOINT_STIFFNESS,
  QD_PARAMETER_JOINT_SPRINGREF,
  QD_PARAMETER_JOINT_DAMPING,
  QD_PARAMETER_JOINT_ARMATURE,
  QD_PARAMETER_JOINT_FRICTION,
  QD_PARAMETER_ACTUATOR_STIFFNESS,
  QD_PARAMETER_ACTUATOR_GAIN,
  QD_PARAMETER_ACTUATOR_BIAS,
  QD_PARAMETER_ACTUATOR_DAMPING,
  QD_PARAMETER_ACTUATOR_FORCE_RANGE,
  QD_PARAMETER_GEOM_SIZE,    /* cannot vary where the geometry has a field */
  QD_PARAMETER_GEOM_MODULUS, /* positive of soft geometries, zero of others */
  QD_PARAMETER_PAIR_FRICTION,
  QD_PARAMETER_PAIR_COMPLIANCE,
  QD_PARAMETER_TENDON_STIFFNESS,
  QD_PARAMETER_GRAVITY,
  QD_PARAMETER_COUNT
} qd_parameter;

/* The name of the array. */
const char *qd_parameter_name(qd_parameter parameter);
/* How many numbers it has in this model, and which. */
int qd_parameter_size(const qd_model *model, qd_parameter parameter);
const double *qd_parameter_values(const qd_model *model, qd_parameter parameter);
/* Whether a model could be made with these values; else *index is the first element that is wrong
 * and *reason says why. */
qd_status qd_parameter_check(const qd_model *model, qd_parameter parameter, const double *values,
                             int *index, const char **reason);

/* ---------------------------------------------------------------- pressure fields
 * Soft bodies press where their fields balance (Elandt et al. 2019): pressure is linear in each of
 * their tetrahedra, zero on the surface, and contact happens on the polygons where the pressures of
 * two bodies are equal. Rigid bodies press with their surface, where it lies inside a soft one. */

typedef enum qd_field_kind {
  QD_FIELD_SOFT = 0,   /* tetrahedra with a pressure at each vertex */
  QD_FIELD_RIGID,      /* triangles, anticlockwise from outside */
  QD_FIELD_SOFT_SPACE, /* z <= 0 of its frame: pressure is slope times depth */
  QD_FIELD_RIGID_SPACE /* z <= 0 of its frame */
} qd_field_kind;

typedef struct qd_field_spec {
  qd_field_kind kind;
  int vertex_count, element_count;
  const double *vertex; /* (vertex_count, 3) m */
  const int32_t
      *element; /* (element_count, 4) tetrahedra of positive volume, or (.., 3) triangles */
  const double *pressure; /* (vertex_count) Pa, of tetrahedra */
  double slope;           /* Pa/m, of a soft half space */
} qd_field_spec;

/* Immutable, made once: gradients, faces and a tree of boxes. */
typedef struct qd_field qd_field;

/* On failure *field is NULL and message names the array, the row and the reason. */
qd_status qd_field_create(const qd_field_spec *spec, qd_field **field, char *message,
                          size_t message_size);
void qd_field_destroy(qd_field *field);
/* Elements that take part: tetrahedra with pressure, triangles; 1 for a half space. */
int qd_field_element_count(const qd_field *field);
/* 1 if one of the two gives way, and not both are half spaces. */
int qd_field_pair_supported(qd_field_kind a, qd_field_kind b);

typedef struct qd_patch_polygon {
  double area;          /* m^2 */
  double pressure;      /* mean, Pa */
  double centre[3];     /* of pressure, m */
  double normal[3];     /* unit, out of a, into b */
  double gradient_a[3]; /* of the pressure, Pa/m; of a rigid side its outward normal, reversed */
  double gradient_b[3];
  int32_t element_a, element_b;
  int32_t vertex_start, vertex_count; /* its corners, anticlockwise about the normal */
} qd_patch_polygon;

/* In world axes. */
typedef struct qd_patch {
  double force[3];       /* on b, N */
  double moment[3];      /* on b, about the world's origin, Nm */
  double centre[3];      /* of pressure, m; zero without contact */
  double area;           /* m^2 */
  double total_pressure; /* integral of the pressure, N */
  double tangent[36];    /* (6, 6) change of force and moment by a motion of a: linear velocity of
                            what is at the world's origin, then angular velocity */
  int polygon_count, vertex_count; /* found, perhaps more than there was room for */
} qd_patch;

/* What is asked for beside force and moment; NULL: the zeros. */
typedef struct qd_patch_options {
  double filter_angle; /* polygons are left out whose normal is farther from a gradient than this
                          (rad; Drake has 5 pi / 8, which breaks the conservation of energy); 0:
                          none is */
  int without_tangent; /* 1: it stays zero */
} qd_patch_options;

/* Where two bodies press on each other. Poses (7): position and unit quaternion w x y z in the
 * world. Room for polygons and for the corners of all of them may be 0; QD_OUT_OF_CAPACITY if it
 * was too little, with all else as it should be. QD_BAD_ARGUMENT for pairs that are not supported.
 * Does not allocate. */
qd_status qd_field_patch(const qd_field *a, const qd_field *b, const double pose_a[7],
                         const double pose_b[7], const qd_patch_options *options, qd_patch *patch,
                         qd_patch_polygon *polygons, int polygon_capacity, double *vertices,
                         int vertex_capacity);
/* Their energy, J: the lesser of their pressures, integrated over where they overlap. Force and
 * moment on b are minus its derivative by motions of b. A rigid surface must be closed. Does not
 * allocate. */
qd_status qd_field_energy(const qd_field *a, const qd_field *b, const double pose_a[7],
                          const double pose_b[7], double *energy);

/* ---------------------------------------------------------------- queries */

typedef struct qd_workspace qd_workspace;

/* One thread's scratch memory for a model, for at least contact_capacity contacts (0: a default).
 */
qd_workspace *qd_workspace_create(const qd_model *model, int contact_capacity);
void qd_workspace_destroy(qd_workspace *workspace);
/* Makes room for at least this many contacts (doubling, so that few calls do), and for the programs
 * that a step which returned QD_OUT_OF_CAPACITY asked for. Contents are lost. Allocates; not inside
 * a step. QD_OUT_OF_MEMORY: the workspace is as it was. */
qd_status qd_workspace_reserve(const qd_model *model, qd_workspace *workspace,
                               int contact_capacity);
size_t qd_workspace_bytes(const qd_workspace *workspace);

/* Normalises quaternions within 1e-3 of unit length; QD_BAD_ARGUMENT beyond (*joint: which joint),
 * QD_NOT_FINITE on NaN or infinity (*joint: which). Output q_out (nq) may be q itself. */
qd_status qd_normalize(const qd_model *model, const double *q, double *q_out, int *joint);
/* mocap (mocap_count, 7) = where the model has its mocap bodies */
void qd_mocap_default(const qd_model *model, double *mocap);
/* As qd_normalize for the quaternions of poses (mocap_count, 7): position m, quaternion. */
qd_status qd_mocap_normalize(const qd_model *model, const double *mocap, double *mocap_out,
                             int *index);
/* q_out = q [+] v */
void qd_integrate(const qd_model *model, const double *q, const double *v, double *q_out);
/* v = q1 [-] q0: the displacement with q1 = q0 [+] v, rotations at most pi */
void qd_difference(const qd_model *model, const double *q1, const double *q0, double *v);
/* Positions (body_count, 3) and rotation matrices (body_count, 3, 3) of all bodies in the world. */
void qd_body_poses(const qd_model *model, qd_workspace *workspace, const double *q, double *pos,
                   double *rot);
/* Jacobian (6, nv) of a body-fixed point given in body coordinates: three rows of linear velocity
 * of the point, three of angular velocity, world axes, with respect to tangent coordinates. */
void qd_point_jacobian(const qd_model *model, qd_workspace *workspace, const double *q, int body,
                       const double *point, double *jacobian);
/* Lengths (tendon_count) of all tendons, their derivatives (tendon_count, nv) by tangent
 * coordinates, and the generalised forces (tendon_count, nv) of a unit force along each, which
 * differ for reaches that turn; NULL: not wanted. */
void qd_tendon_lengths(const qd_model *model, qd_workspace *workspace, const double *q,
                       double *length, double *jacobian, double *moment);
/* Joint-space mass matrix M (nv, nv) of the bodies: the joints' armature, which adds to its
 * diagonal, is not in it. */
void qd_mass_matrix(const qd_model *model, qd_workspace *workspace, const double *q, double *M);
/* Generalised force (nv) of Coriolis, centrifugal and gyroscopic effects: (M(q) + armature)
 * dv/dt + it = what forces act, and armature has no part in it. */
void qd_bias_force(const qd_model *model, qd_workspace *workspace, const double *q, const double *v,
                   double *force);
/* J: kinetic energy at the velocity v (nv), armature included; potential energy of gravity (zero at
 * the world's origin) and of joint springs. */
void qd_energy(const qd_model *model, qd_workspace *workspace, const double *q, const double *v,
               double *kinetic, double *potential);

typedef struct qd_contact {
  int32_t geom_a, geom_b; /* -> the pair's geometries */
  int32_t body_a, body_b;
  int32_t pair;       /* index of the candidate pair */
  int32_t dim;        /* 1, 3, 4, 6 */
  double dist;        /* signed distance, m */
  double pos[3];      /* midway between the witness points, world */
  double frame[9];    /* rows: normal (from A into B), tangent 1, tangent 2; world */
  double friction[5]; /* tangential (2), torsional (m), rolling (2, m) */
  double force[6];    /* on B in the contact frame: N (3), then Nm about normal, t1, t2 */
  double softened; /* of a step from a start that contradicts itself: how far its rows are outside
                      their cone all the same (metres along its normal), else 0 */
} qd_contact;

/* Contacts with dist <= max(margin, the pair's own margin). *contacts points into the workspace and
 * lives until its next use. QD_NOT_FINITE if q holds NaN or infinity. */
qd_status qd_collide(const qd_model *model, qd_workspace *workspace, const double *q, double margin,
                     const qd_contact **contacts, int *contact_count);
/* Signed distance (pair_count) of every candidate pair, m: the least of its contacts', and margin
 * where the pair is farther apart. QD_OUT_OF_CAPACITY: *contact_count says what room is needed. */
qd_status qd_pair_distances(const qd_model *model, qd_workspace *workspace, const double *q,
                            double margin, double *distance, int *contact_count);

/* Where the geometries of a soft pair press on each other at q (normalised), in world axes, moments
 * about the world's origin; *pair: which candidate pair it is. As qd_field_patch otherwise. */
qd_status qd_pressure_surface(const qd_model *model, qd_workspace *workspace, const double *q,
                              int soft_pair, int *pair, qd_patch *patch, qd_patch_polygon *polygons,
                              int polygon_capacity, double *vertices, int vertex_capacity);

/* ---------------------------------------------------------------- the quasi-dynamic step */

typedef enum qd_friction_model { QD_CONE = 0, QD_PYRAMID = 1 } qd_friction_model;

/* Which bilateral constraints give way by their compliance. */
typedef enum qd_soft_constraints {
  QD_SOFT_NONE = 0,
  QD_SOFT_ALL = 1,
  QD_SOFT_MOCAP = 2 /* those on mocap bodies, which pull what they hold */
} qd_soft_constraints;

/* What contacts are that have no stiffness of their own. Rigid, but for contact_compliance; or
 * MuJoCo's at rest: they yield and creep by pair_reference, pair_impedance, pair_impratio and the
 * bodies' inverse weights. Of the quasi-dynamic step with cones, under the convex law. */
typedef enum qd_contacts { QD_CONTACTS_RIGID = 0, QD_CONTACTS_MUJOCO = 1 } qd_contacts;

/* Convex: what slides also parts, by friction times what it slides (one program a step). Coulomb:
 * what slides stays in contact, its force opposite; the fixed point of convex programs. */
typedef enum qd_friction_law { QD_LAW_CONVEX = 0, QD_LAW_COULOMB = 1 } qd_friction_law;

/* How the second-order step turns bodies that are alone on a free or ball joint: by Euler's
 * equation with the implicit midpoint rule, which keeps their energy, or with the gyroscopic force
 * at the beginning of the step, which adds to it. */
typedef enum qd_gyroscopic { QD_GYROSCOPIC_IMPLICIT = 0, QD_GYROSCOPIC_EXPLICIT = 1 } qd_gyroscopic;

/* Where friction of patches acts: on each polygon, or on the patch as a whole, whose limit surface
 * (force and torque) is then an ellipsoid. */
typedef enum qd_patch_friction {
  QD_FRICTION_POLYGONS = 0,
  QD_FRICTION_ELLIPSOID = 1
} qd_patch_friction;

/* How that friction answers to sliding. */
typedef enum qd_patch_law {
  QD_PATCH_DISC = 0,         /* sticks up to mu times the force */
  QD_PATCH_ELASTIC_CONE = 1, /* likewise, and what slides is lifted by mu times its way: the cone of
                                convex programs. Of polygons; without derivatives */
  QD_PATCH_REGULARIZED = 2,  /* second-order exact steps: grows with the speed up to slip_speed */
  QD_PATCH_BRISTLE = 3       /* likewise: a spring of each patch, whose stretch is a state; without
                                derivatives */
} qd_patch_law;

typedef struct qd_step_options {
  double h;                /* step, s, > 0 */
  int friction_model;      /* a qd_friction_model */
  int law;                 /* a qd_friction_law; Coulomb's is of exact steps alone */
  int stop_after;          /* > 0: under Coulomb's law, what the best of so many convex programs an
                              island gives counts whatever its law_residual. 0: an error, where
                              that is beyond ten times the tolerance (times the size of the smallest thing in
                              contact) */
  int ray_count;           /* pyramid: rays per contact, >= 3, or 2 for planar models */
  double kappa;            /* log-barrier weight, 1/J; infinity: the exact step */
  double epsilon;          /* mass factor, >= 0; used if mass_ratio is 0 */
  double mass_ratio;       /* > 0: epsilon per object from stiffness and mass (formulation 2) */
  double margin;           /* m; pairs within it count; infinity allowed */
  int add_missed_pairs;    /* 1: pairs beyond the margin that an exact step runs into are added */
  int joint_limits;        /* 1: limits are constraints of the program */
  int gravity_on_actuated; /* 1: gravity acts on actuated joints too */
  int damping;             /* 1: dampers of joints and actuators brake, with displacement over h */
  int soft_constraints;    /* a qd_soft_constraints; others hold rigidly */
  double contact_compliance; /* m/N along the normal, of pairs that have none of their own; needs
                                cones, or two rays. 0: rigid */
  int contacts;              /* a qd_contacts */
  int force_limits;          /* 1: actuators pull no harder than their actuator_force_range */
  int patch_friction;        /* a qd_patch_friction, of soft geometries */
  int patch_law;             /* a qd_patch_law, likewise */
  double slip_speed;         /* m/s, > 0, of QD_PATCH_REGULARIZED: from there on all of mu acts */
  double bristle_stiffness;  /* 1/m, > 0, of QD_PATCH_BRISTLE: of a newton of pressure */
  double bristle_time;       /* s, >= 0, likewise: times the speed, it adds to the stretch */
  const uint8_t *held;       /* (nv) 1: the DOF does not move; NULL: none */
  int soften;                /* 1: constraints that no motion satisfies give way: those of least
                                violation (sum of squares; an angle counts as its arc at the size of
                                the smallest thing in contact, bilateral constraints a hundredth) for
                                motions of at most a radian and ten times the largest violation at the
                                start, then the step within it. 0: an error */
  double recovery_speed; /* m/s, of turns rad/s, >= 0: at most so fast penetrations and violations
                            of limits and constraints are undone; 0: they stay; infinity: in one
                            step */
  double tolerance;      /* of the cone solver */
  int iteration_limit;
  /* 1: the second-order step, of velocities (formulation 7): every DOF has its mass, epsilon and
   * mass_ratio do not count, and neither do the following for 0, the quasi-dynamic step */
  int dynamic;
  int gyroscopic;      /* a qd_gyroscopic */
  double restitution;  /* 0 to 1; of pairs without their own */
  double bounce_speed; /* m/s: contacts that close more slowly do not bounce; negative: what gravity
                          makes of rest in two steps */
} qd_step_options;

qd_step_options qd_step_options_default(void);

/* What a step failed on: what contradicts each other (the largest multipliers of the proof that it
 * is infeasible), or what moves though nothing decides how far (unbounded, not unique). */
typedef enum qd_culprit_kind {
  QD_CULPRIT_PAIR = 0,   /* index: a candidate pair; its contacts */
  QD_CULPRIT_LIMIT,      /* index: a DOF; the limit of its joint */
  QD_CULPRIT_CONSTRAINT, /* index: a bilateral constraint */
  QD_CULPRIT_TENDON,     /* index: a tendon */
  QD_CULPRIT_MOTION      /* index: a DOF */
} qd_culprit_kind;

typedef struct qd_culprit {
  int32_t kind;           /* a qd_culprit_kind */
  int32_t index;          /* of what the kind says */
  int32_t body_a, body_b; /* bodies that it joins; the same one twice for a DOF */
  double weight;          /* the largest is 1 */
} qd_culprit;

#define QD_CULPRITS_MAX 8

typedef struct qd_step_result {
  double *q_next;      /* (nq) out, caller's memory */
  double *delta;       /* (nv) out, caller's memory */
  double *v_next;      /* (nv) out, caller's memory: delta / h; NULL: not wanted */
  double *limit_force; /* (nv) out, caller's memory: generalised force of joint limits, N or Nm */
  double *constraint_force; /* (constraint_count, 6) out, caller's memory, may be NULL without any:
                               force N on the second body at its anchor and moment Nm, world axes;
                               coupling: generalised force on the first joint, then zeros */
  double *tendon_force; /* (tendon_count) out, caller's memory, may be NULL without any: along each
                           tendon, N, positive where it makes the tendon longer */
  double *actuator_force; /* (2, nu) out, caller's memory, may be NULL: what each actuator pulls its
                             joint with, N or Nm, then 1 where it is at a limit, else 0 */
  double *bristle; /* (soft_pair_count, 6) out, caller's memory, may be NULL: as in the input, at
                      the end of the step; zero under other laws */
  qd_trace *trace; /* out, caller's memory, NULL: not wanted: what single steps and their
                      derivatives have tried */
  const qd_contact *contacts; /* out, inside the workspace, lives until its next use */
  int contact_count;          /* out */
  int row_count;              /* out: rows of the cone program; exact: those within reach */
  int missed_pairs;           /* out: pairs beyond the margin (or with points of a cloud beyond the
                                 nearest) that the step ran into: added in exact
                                 mode (if the option is set), passed through otherwise */
  int dropped_pairs;          /* out: of the missed pairs, those that an exact step passes through
                                 all the same: with them no motion would be left. They exert no
                                 force and may end at any depth; all else holds, the law too */
  int relaxed_contacts; /* out: contacts that penetrate by less than 5 % of their shapes' size,
                           and that the step keeps from deepening only (smoothed: that count
                           as gaps of 0.1 %): to resolve them all would leave no motion. And
                           those of any depth that the normal row opens by 3 rad (m) or more
                           only: at dead centres of a chain. 0 in other steps */
  int deep_contacts;  /* out: contacts that penetrate by 5 % of their shapes' size or more at q, and
                         that the step undoes at once, however far bodies move for it */
  int softened;       /* out: contacts, limits and rows of constraints that gave way by more
                         than the tolerance times the smallest thing's size: with the option
                         soften; without, by at most 1e-4 of that size, where rows leave so little
                         room that no method found finite forces; constraints of which no more than
                         that contradicts the others count where finite forces need more */
  int soft_programs;  /* out: programs that soft geometries took; 0: none was in range */
  int soft_converged; /* out: 1 unless the last of them was not the answer yet, or a pair went as
                         deep as a step lets it */
  int bounces;        /* out: contacts that bounce (restitution) */
  double bounce_share; /* out: what coefficients of restitution were multiplied by in the island
                          where that is least: 1, or less where the bounces of an island would
                          make energy, or leave no room for each other */
  int capped_rows; /* out: contacts, limits and parts of constraints whose recovery was capped */
  /* out, of Coulomb's law; 0, 0 and 1 of the other */
  int convex_programs; /* solved for it in the last round of contacts that came in, of the island
                          that took most */
  double law_residual; /* largest difference between how far a contact with force slides (weighted
                          by its friction) and how far its normal was let close for that; closing of
                          contacts without force. m */
  int unique; /* 1: the motion is the only one (of the convex law). Under Coulomb's law -1: no
                 other is near by, whether there are others far away is not known; 0: there
                 may be others near by, or so many contacts slide that it is not known */
  int derivative_exact; /* out of qd_linearize: 1 unless the path's derivative was returned,
                           relaxed_contacts or softened is not 0, or a contact is so near to a kink
                           (slips or presses so little) that the answer's own error changes the
                           derivative by more than 1e-6 of it. Of the contacts at hand: a manifold
                           of bumpy faces may take other corners with the smallest turn, which this
                           does not see */
  qd_cone_info info;    /* out, always filled */
  qd_culprit culprit[QD_CULPRITS_MAX]; /* out of a failed step, largest first */
  int culprit_count;                   /* out, 0 where nothing is known */
} qd_step_result;

/* An earlier step's solution, of this model under any options, as a guess for this one: what its
 * qd_step_result holds, copied, since contacts live in the workspace. Contacts are matched by pair
 * and place; what is new starts open. Any numbers will do: a good guess saves time, a bad one costs
 * little, and the answer is certified as any other. It agrees with that of no guess to the
 * tolerance, not in its last bits, and forces that are not unique depend on it. */
typedef struct qd_step_start {
  int contact_count;
  const qd_contact *contacts;     /* (contact_count) pair, pos, frame and force count */
  const double *delta;            /* (nv) */
  const double *limit_force;      /* (nv) */
  const double *constraint_force; /* (constraint_count, 6), may be NULL */
  const double *tendon_force;     /* (tendon_count), may be NULL */
} qd_step_start;

/* Numbers of a pair's bristles. */
#define QD_BRISTLES 6

/* What a step is a function of, beside the model and the options. Forces that actuated DOFs feel
 * add to those of their springs (tau_a of formulation 2). */
typedef struct qd_step_input {
  const double *q;      /* (nq) normalised */
  const double *u;      /* (nu) commands */
  const double *tau;    /* (nv) applied generalised force, N or Nm; NULL: none */
  const double *wrench; /* (body_count, 6) applied to the bodies: force N at the centre of mass,
                           then moment Nm, world axes; the world's row is without effect. NULL: none
                         */
  const double *mocap;  /* (mocap_count, 7) poses of the mocap bodies: position m, quaternion,
                           normalised. NULL: where the model has them */
  const qd_step_start *start; /* a guess; NULL: none */
  const double *v;            /* (nv) velocity, of the second-order step; NULL: zero */
  const double *bristle;      /* (soft_pair_count, 6) stretch of each pair's bristles under
                                 QD_PATCH_BRISTLE: by how far the second body has gone against the
                                 first, m at the origin of its frame, then rad, in its axes. NULL: zero
                               */
} qd_step_input;

/* q_next = f(q, u, tau, wrench, mocap), or of the second-order step f(q, v, u, tau, wrench, mocap).
 * QD_NOT_FINITE if an input holds NaN or infinity. */
qd_status qd_step(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
                  const qd_step_input *input, qd_step_result *result);
/* The same step, quasi-dynamic ones only, and A = dq_next/dq (nv, nv), B = dq_next/du (nv, nu) in
 * tangent coordinates; NULL for the one that is not wanted. */
qd_status qd_linearize(const qd_model *model, qd_workspace *workspace,
                       const qd_step_options *options, const qd_step_input *input,
                       qd_step_result *result, double *A, double *B);
/* ---------------------------------------------------------------- derivatives by everything
 * A step is also a function of its forces and of the model's parameters. Derivatives are exact, by
 * the active set (or path) that the step ended on, as A and B are. Configurations count in tangent
 * coordinates. What follows from parameters once and for all is held constant: the epsilon of
 * mass_ratio, inertias of a shape. */

typedef enum qd_argument {
  QD_BY_Q = 0,     /* (nv) */
  QD_BY_U,         /* (nu) */
  QD_BY_TAU,       /* (nv) */
  QD_BY_WRENCH,    /* (body_count, 6) */
  QD_BY_MOCAP,     /* (mocap_count, 6) translation, then rotation vector in world axes */
  QD_BY_V,         /* (nv); of a quasi-dynamic step zero, like all that it does not know */
  QD_BY_H,         /* (1) the step length */
  QD_BY_PARAMETER, /* the first of the qd_parameters, in their order */
  QD_BY_BODY_MASS = QD_BY_PARAMETER + QD_PARAMETER_BODY_MASS,
  QD_BY_BODY_COM = QD_BY_PARAMETER + QD_PARAMETER_BODY_COM,
  QD_BY_BODY_INERTIA = QD_BY_PARAMETER + QD_PARAMETER_BODY_INERTIA, /* symmetric */
  QD_BY_JOINT_STIFFNESS = QD_BY_PARAMETER + QD_PARAMETER_JOINT_STIFFNESS,
  QD_BY_JOINT_SPRINGREF = QD_BY_PARAMETER + QD_PARAMETER_JOINT_SPRINGREF,
  QD_BY_JOINT_DAMPING = QD_BY_PARAMETER + QD_PARAMETER_JOINT_DAMPING,
  QD_BY_JOINT_ARMATURE = QD_BY_PARAMETER + QD_PARAMETER_JOINT_ARMATURE,
  QD_BY_JOINT_FRICTION = QD_BY_PARAMETER + QD_PARAMETER_JOINT_FRICTION,
  QD_BY_ACTUATOR_STIFFNESS = QD_BY_PARAMETER + QD_PARAMETER_ACTUATOR_STIFFNESS,
  QD_BY_ACTUATOR_GAIN = QD_BY_PARAMETER + QD_PARAMETER_ACTUATOR_GAIN,
  QD_BY_ACTUATOR_BIAS = QD_BY_PARAMETER + QD_PARAMETER_ACTUATOR_BIAS,
  QD_BY_ACTUATOR_DAMPING = QD_BY_PARAMETER + QD_PARAMETER_ACTUATOR_DAMPING,
  QD_BY_ACTUATOR_FORCE_RANGE = QD_BY_PARAMETER + QD_PARAMETER_ACTUATOR_FORCE_RANGE,
  QD_BY_GEOM_SIZE = QD_BY_PARAMETER + QD_PARAMETER_GEOM_SIZE,
  QD_BY_GEOM_MODULUS = QD_BY_PARAMETER + QD_PARAMETER_GEOM_MODULUS,
  QD_BY_PAIR_FRICTION = QD_BY_PARAMETER + QD_PARAMETER_PAIR_FRICTION,
  QD_BY_PAIR_COMPLIANCE = QD_BY_PARAMETER + QD_PARAMETER_PAIR_COMPLIANCE,
  QD_BY_TENDON_STIFFNESS = QD_BY_PARAMETER + QD_PARAMETER_TENDON_STIFFNESS,
  QD_BY_GRAVITY = QD_BY_PARAMETER + QD_PARAMETER_GRAVITY,
  QD_ARGUMENT_COUNT = QD_BY_PARAMETER + QD_PARAMETER_COUNT
} qd_argument;

/* "q", "u", ...; and how many numbers it has in this model. */
const char *qd_argument_name(int argument);
int qd_argument_size(const qd_model *model, int argument);

/* A step that leaves in the workspace what the next two functions need, until its next use. They
 * take the same model, options, input and result, and allocate nothing. */
qd_status qd_differentiate(const qd_model *model, qd_workspace *workspace,
                           const qd_step_options *options, const qd_step_input *input,
                           qd_step_result *result);
/* out (count, nv) = the tangents (count, size of the argument) moved through the step; NULL: zero.
 * v_out (count, nv): likewise of v_next, NULL: not wanted. */
void qd_jvp(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *const tangent[QD_ARGUMENT_COUNT], double *out, double *v_out);
/* gradient[i] (count, size of argument i), NULL: not wanted, = derivatives of cotangent'q_next +
 * v_cotangent'v_next; both (count, nv), NULL: zero. If both are NULL, of the unit vectors in place
 * of cotangent (count is nv), which gives Jacobians. */
void qd_vjp(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *cotangent, const double *v_cotangent,
            double *const gradient[QD_ARGUMENT_COUNT]);
/* Jacobians of q_next and v_next, (nv, size of argument i) each, NULL: not wanted in both: with as
 * many solves as qd_vjp takes for one. */
void qd_jacobians(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
                  const qd_step_input *input, const qd_step_result *result,
                  double *const of_q[QD_ARGUMENT_COUNT], double *const of_v[QD_ARGUMENT_COUNT]);
/* The second-order step with its Jacobians by q, v and u in one sweep, many times faster; both NULL
 * for what is not wanted, as all others are. */
qd_status qd_linearize_dynamic(const qd_model *model, qd_workspace *workspace,
                               const qd_step_options *options, const qd_step_input *input,
                               qd_step_result *result, double *const of_q[QD_ARGUMENT_COUNT],
                               double *const of_v[QD_ARGUMENT_COUNT]);

/* ---------------------------------------------------------------- batches
 * Many steps of one model on several threads. Samples do not know each other, so results have the
 * same bits whatever the number of threads. A sample that fails keeps its q, has a status, and does
 * not stop the others. */

#define QD_THREADS_MAX 1024

/* Threads that wait for work; the first batch that wants them starts them. One pool serves any
 * number of models and callers. After fork, the child's pool starts threads of its own. */
typedef struct qd_thread_pool qd_thread_pool;

qd_thread_pool *qd_thread_pool_create(void);
/* Ends the threads. The pool must not be in use. */
void qd_thread_pool_destroy(qd_thread_pool *pool);

/* Scratch of one batch call at a time: a workspace for each thread that takes part, and the
 * contacts of the latest call. Grows as needed. */
typedef struct qd_batch qd_batch;

qd_batch *qd_batch_create(const qd_model *model);
void qd_batch_destroy(qd_batch *batch);
/* Lets whoever waits for a batch give it up. stop(context) is asked by the calling thread alone,
 * between steps: often, so it should be quick. After it has returned 1, no step begins any more;
 * the call ends with those under way and returns QD_STOPPED, and its outputs are incomplete. NULL:
 * the call runs to its end, as at first. */
void qd_batch_set_stop(qd_batch *batch, int (*stop)(void *context), void *context);

/* Commands that react, of rollouts: sample i's step t is taken with
 *
 *     clip(u + x_gain (q [-] q_nominal) + v_gain (v - v_nominal) + u_gain (u of step t - 1),
 *          lower, upper)
 *
 * where q and v are where the step begins, and u what qd_batch_input has. What qd_ocp_qp gives is
 * this with u - x_gain x - u_gain (u before it) in place of u. */
typedef struct qd_feedback {
  const double *q_nominal;     /* (step_count, nq), the same for all samples */
  const double *u_before;      /* (nu) command before the first, likewise */
  const double *x_gain;        /* (sample_count, step_count, nu, nv) */
  const double *u_gain;        /* (sample_count, step_count, nu, nu), NULL: zero */
  const double *v_nominal;     /* (step_count, nv) of the second-order step; else NULL, as v_gain */
  const double *v_gain;        /* (sample_count, step_count, nu, nv) */
  const double *lower, *upper; /* (sample_count, step_count, nu) */
  double *u; /* (sample_count, step_count, nu) the commands, filled; NaN after a failed step */
} qd_feedback;

/* Sample i begins at q + i * q_stride, and so on; a stride of 0 gives all samples the same. */
typedef struct qd_batch_input {
  int64_t sample_count;
  const double *q;       /* (nq) a sample */
  const double *v;       /* (nv) a sample, of the second-order step, as options say; else NULL */
  const double *u;       /* (nu) a sample */
  const double *tau;     /* (nv) a sample, N or Nm; NULL: none */
  const double *wrench;  /* (body_count, 6) a sample, as in qd_step_input; NULL: none */
  const double *mocap;   /* (mocap_count, 7) a sample; NULL: where the model has them */
  const double *bristle; /* (soft_pair_count, 6) a sample, as in qd_step_input; NULL: zero */
  ptrdiff_t q_stride, v_stride, u_stride, tau_stride,
      wrench_stride;                                   /* doubles from sample to sample */
  ptrdiff_t mocap_stride, bristle_stride;              /* likewise */
  ptrdiff_t u_step, tau_step, wrench_step, mocap_step; /* of rollouts: from step to step */
  const double *parameter[QD_PARAMETER_COUNT]; /* a sample's own parameters, which have passed
                                                  qd_parameter_check; NULL: the model's */
  ptrdiff_t parameter_stride[QD_PARAMETER_COUNT];
  const qd_step_start *start;  /* guesses, of a rollout for its first step; NULL: none */
  ptrdiff_t start_stride;      /* 1: each sample has its own; 0: all have the same */
  int warm_start;              /* of rollouts: 1: each step starts from the one before */
  const qd_feedback *feedback; /* of rollouts; NULL: the commands as they are */
  double *v_path; /* of rollouts of the second-order step: (sample_count, step_count + 1, nv) the
                     velocities, filled as q is; else NULL */
  double *bristle_path; /* likewise of QD_PATCH_BRISTLE: (sample_count, step_count + 1,
                           soft_pair_count, 6), else NULL */
} qd_batch_input;

/* Caller's memory; every array but q_next and status may be NULL. */
typedef struct qd_batch_output {
  double *q_next;           /* (sample_count, nq) */
  double *v_next;           /* (sample_count, nv) of the second-order step */
  double *bristle;          /* (sample_count, soft_pair_count, 6) as in qd_step_result; where a
                               sample failed, what it began with */
  double *delta;            /* (sample_count, nv), zero where a sample failed */
  double *limit_force;      /* (sample_count, nv) N or Nm, zero where a sample failed */
  double *constraint_force; /* (sample_count, constraint_count, 6), zero where a sample failed */
  double *tendon_force;     /* (sample_count, tendon_count), zero where a sample failed */
  int32_t *softened;        /* (sample_count) as in qd_step_result, 0 where a sample failed */
  double *actuator_force;   /* (sample_count, 2, nu) as in qd_step_result, zero where one failed */
  double *derivative[QD_ARGUMENT_COUNT]; /* (sample_count, nv, size of the argument) dq_next by it,
                                            NaN where a sample failed */
  uint8_t *derivative_exact; /* (sample_count) 1: exact; 0: the path's derivative, or failed */
  int32_t *status;           /* (sample_count) a qd_status each */
  int64_t *contact_start;    /* (sample_count + 1) contacts of sample i are contact_start[i] up to
                                contact_start[i + 1] of qd_batch_contacts; NULL: contacts not kept */
} qd_batch_output;

/* The failed sample of the smallest index. */
typedef struct qd_batch_failure {
  int64_t sample; /* -1: none failed */
  int64_t step;   /* of a rollout, from 0 */
  qd_status status;
  qd_cone_info info;
  int row_count, contact_count, missed_pairs; /* of its program */
  qd_culprit culprit[QD_CULPRITS_MAX];
  int culprit_count;
} qd_batch_failure;

/* qd_step for every sample on up to thread_count threads, the caller's included (pool may be NULL:
 * the caller's alone). The output's derivatives are not touched. Returns QD_OK once every sample
 * has a status, QD_OUT_OF_MEMORY if the batch could not begin, QD_STOPPED: see
 * qd_batch_set_stop. */
qd_status qd_step_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                        const qd_step_options *options, const qd_batch_input *input,
                        const qd_batch_output *output, qd_batch_failure *failure);
/* The same with qd_linearize, or with qd_differentiate and qd_vjp where derivatives by more than q
 * and u are wanted. */
qd_status qd_linearize_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                             const qd_step_options *options, const qd_batch_input *input,
                             const qd_batch_output *output, qd_batch_failure *failure);
/* Copies the contacts of the latest qd_step_batch or qd_linearize_batch, in the order of samples;
 * contact_start (sample_count + 1) is what that call filled, and contacts has room for
 * contact_start[sample_count]. */
void qd_batch_contacts(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                       int64_t sample_count, const int64_t *contact_start, qd_contact *contacts);

/* step_count steps in a row from each sample's q. u, tau and wrench hold one value a step, u_step
 * (tau_step, wrench_step) doubles from step to step; 0: the same in every step. Fills q
 * (sample_count, step_count + 1, nq), which begins with the normalised q, and per sample the status
 * and the number of steps that were done; after a failed step the last configuration is repeated.
 */
qd_status qd_rollout_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                           const qd_step_options *options, const qd_batch_input *input,
                           int64_t step_count, double *q, int32_t *status, int64_t *steps_done,
                           qd_batch_failure *failure);

/* How a rollout is differentiated: every configuration of it, by where it begins, by what every
 * step is given and by the sample's parameters. With a feedback, which must have no u_gain, u is
 * what qd_batch_input has, and commands that are clipped do not change. Under the options of the
 * steps, or at the same configurations under others (smoothed, where the steps are exact). */
typedef struct qd_rollout_way {
  const qd_step_options *options; /* NULL: those of the steps */
  int ambient;                    /* 1: derivatives of f(normalize(q)) by the numbers of q (nq), as
                                     of q[t]; 0: in tangent coordinates (nv) */
  int path_known;                 /* 1: q, status and steps_done hold the rollout already */
  int64_t kept; /* steps, from the last back, whose factors are kept from the rollout itself; the
                   others are taken once more. -1: as many as fit into 128 MB a thread */
  const double *v_cotangent; /* of a pullback of the second-order step: (sample_count, step_count +
                                1, nv) of every velocity; NULL: zero */
  double *v_out; /* of its pushforward: (sample_count, step_count + 1, nv), NULL: not wanted */
  uint8_t *derivative_exact; /* (sample_count) 1: that of every step is exact; 0: not, or failed */
} qd_rollout_way;

/* qd_rollout_batch and its pullback: cotangent (sample_count, step_count + 1, nv or nq) of every
 * configuration, the first included. gradient[i]: NULL, or by q (sample_count, nv or nq), by u, tau
 * and wrench (sample_count, step_count, size), by parameters (sample_count, size); NaN where the
 * sample failed. With 0 in u_step and its like the gradient of every step is given all the same.
 */
qd_status qd_rollout_vjp_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                               const qd_step_options *options, const qd_batch_input *input,
                               int64_t step_count, const qd_rollout_way *way,
                               const double *cotangent, double *const gradient[QD_ARGUMENT_COUNT],
                               double *q, int32_t *status, int64_t *steps_done,
                               qd_batch_failure *failure);
/* The same forwards: tangent[i] as gradient[i] above, NULL: zero; out (sample_count, step_count +
 * 1, nv or nq), NaN where the sample failed. */
qd_status qd_rollout_jvp_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                               const qd_step_options *options, const qd_batch_input *input,
                               int64_t step_count, const qd_rollout_way *way,
                               const double *const tangent[QD_ARGUMENT_COUNT], double *out,
                               double *q, int32_t *status, int64_t *steps_done,
                               qd_batch_failure *failure);

/* qd_body_poses of many configurations, normalised: pos (sample_count, body_count, 3), rot
 * (sample_count, body_count, 3, 3), NaN where the status is not QD_OK. */
qd_status qd_body_poses_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                              int64_t sample_count, const double *q, ptrdiff_t q_stride,
                              double *pos, double *rot, int32_t *status);

/* What a policy is told that moves a body to a goal, as numbers of about one. In this order: the
 * goal from the body in the body's axes, over length (3); its direction (3); log(1 + distance /
 * position_tolerance) and the same of the angle; the goal's rotation from the body's, the first two
 * columns (6). With the world: the body's place over length (3), its rotation (6) and the goal's
 * place from the body's over length (3), in world axes. The tips' places from the body over length,
 * (3) each, all in the body's axes, then all in the world's; joints from the middle over half of
 * their ranges; more_count numbers of the caller's own. */
typedef struct qd_view {
  int body;
  int coordinate_count;
  const int32_t *coordinate; /* (coordinate_count) of the body: indices of a tangent vector */
  const int32_t *turns; /* of each: 0 shifts, m; 1 turns, rad; 2 turns, whole turns uncounted */
  int with_world;
  int tip_count;
  const int32_t *tip; /* (tip_count) bodies */
  int joint_count;
  const int32_t *joint;        /* (joint_count) indices in q */
  const double *middle, *half; /* (joint_count) */
  int more_count;
  const int32_t *column; /* (qd_view_size) of each number its column, or -1: left out */
  int column_count;
  double length, position_tolerance, rotation_tolerance; /* m, m, rad; > 0 */
  double reach;                                          /* weight of the tips' distance */
  double home[3];                                        /* a place, m */
} qd_view;

/* Numbers of all kinds, those left out included. */
int qd_view_size(const qd_view *view);

/* What an observation is judged by: distance (m) and angle (rad) from the goal; the larger of both
 * over their tolerances, <= 1 where the goal is reached; with e the root of distance^2 + (length
 * angle)^2 the potential -e / length - log(1 + e / position_tolerance) - reach max(0, f - 1.2), f
 * the tips' mean distance from the body over length; the body's distance from home, m. */
enum {
  QD_VIEW_SHIFT,
  QD_VIEW_TURN,
  QD_VIEW_OFF,
  QD_VIEW_POTENTIAL,
  QD_VIEW_AWAY,
  QD_VIEW_MEASURES
};

/* Rows; strides in doubles. */
typedef struct qd_view_input {
  int64_t sample_count;
  const double *q, *goal; /* (nq), the goal normalised */
  const double *pose;     /* (12) the body's at the goal: place and rotation matrix */
  const double *more;     /* (more_count) */
  ptrdiff_t q_stride, goal_stride, pose_stride, more_stride;
} qd_view_input;

/* observation (sample_count, column_count) and measure (sample_count, QD_VIEW_MEASURES) of many
 * configurations, NaN where the status, that of qd_normalize, is not QD_OK. */
qd_status qd_observe_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                           const qd_view *view, const qd_view_input *input, double *observation,
                           double *measure, int32_t *status);

/* A game of such configurations: what reaching the goal brings, what losing the body or a failed
 * move costs, and every action; from how far from home (m) the body is lost, and the number of
 * actions that an episode has at most. */
typedef struct qd_game {
  double success, failure, cost, lost;
  int64_t horizon;
} qd_game;

enum { QD_GAME_TERMINATED, QD_GAME_TRUNCATED, QD_GAME_SUCCESS, QD_GAME_LOST, QD_GAME_MARKS };

/* What one action each brought of many players, who have come to measures (count, QD_VIEW_MEASURES)
 * from potentials before (count), by done (count) actions of their episodes, this one included;
 * failed: whose action had no answer. reward (count): the change of the potential and what the game
 * adds; mark[k] (count): 0 or 1. */
void qd_judge(const qd_game *game, int64_t count, const double *measure, const double *before,
              const uint8_t *failed, const int64_t *done, double *reward,
              uint8_t *const mark[QD_GAME_MARKS]);

/* qd_pair_distances of many configurations: sample i at q + i * q_stride (doubles), its row of
 * distance (sample_count, pair_count) NaN where its status is not QD_OK. */
qd_status qd_pair_distances_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                                  int64_t sample_count, const double *q, ptrdiff_t q_stride,
                                  double margin, double *distance, int32_t *status);

/* ---------------------------------------------------------------- derivatives of MuJoCo's step
 * MuJoCo's own arrays, read in place, of a model and of its data after mj_forward; nothing here
 * links MuJoCo. Names, shapes and meanings are those of mjModel, mjOption, mjData and mjContact
 * (their documentation), booleans bytes. */

typedef struct qd_mj {
  int64_t nq, nv, nu, na, nbody, ngeom, nactuator, ntendon;
  /* mjModel */
  const int32_t *body_parentid, *body_rootid, *body_dofnum, *body_dofadr;
  const int32_t *jnt_type, *jnt_qposadr, *jnt_dofadr, *jnt_bodyid;
  const int32_t *dof_bodyid, *dof_jntid, *dof_parentid;
  const int32_t *geom_type, *geom_bodyid, *geom_dataid, *site_bodyid;
  const int32_t *M_rownnz, *M_rowadr, *M_colind;
  const int32_t *ten_J_rownnz, *ten_J_rowadr, *ten_J_colind;
  const int32_t *actuator_trntype, *actuator_dyntype, *actuator_gaintype, *actuator_biastype;
  const int32_t *actuator_trnid, *actuator_actadr, *actuator_group;
  const int32_t *eq_type, *eq_obj1id, *eq_obj2id, *eq_objtype;
  const double *body_mass, *body_gravcomp, *jnt_stiffness, *dof_damping, *qpos0, *qpos_spring;
  const double *geom_size, *tendon_stiffness, *tendon_damping, *tendon_lengthspring;
  const double *tendon_length0, *actuator_dynprm, *actuator_gainprm, *actuator_biasprm;
  const double *actuator_actrange, *actuator_forcerange, *actuator_ctrlrange, *actuator_gear;
  const double *jnt_actfrcrange, *eq_data;
  const uint8_t *actuator_actlimited, *actuator_actearly, *actuator_forcelimited;
  const uint8_t *actuator_ctrllimited, *jnt_actfrclimited;
  int32_t dynprm_count, gainprm_count, biasprm_count, eqdata_count; /* columns of those tables */
  /* mjOption */
  double timestep;
  const double *gravity;
  int32_t integrator, cone, disableflags, disableactuator;
  /* mjData */
  const double *qpos, *qvel, *act, *ctrl, *act_dot, *xfrc_applied, *qacc;
  const double *xpos, *xquat, *xmat, *xipos, *subtree_com, *cdof, *cinert;
  const double *geom_xpos, *geom_xmat, *site_xpos, *site_xmat;
  const double *ten_J, *ten_length, *actuator_length, *actuator_velocity, *actuator_force;
  const double *qfrc_actuator, *qfrc_smooth, *M;
  /* its arena */
  int64_t nefc, ncon;
  const int32_t *efc_type, *efc_id;
  const int32_t *efc_J_rownnz, *efc_J_rowadr, *efc_J_colind; /* NULL: efc_J is (nefc, nv) */
  const double *efc_J, *efc_pos, *efc_margin, *efc_frictionloss, *efc_KBIP, *efc_R, *efc_aref;
  const char *contact_dist, *contact_pos, *contact_frame, *contact_friction; /* of the first one */
  const char *contact_mu, *contact_dim, *contact_geom, *contact_efc_address;
  int64_t contact_stride; /* bytes from contact to contact */
} qd_mj;

/* Convex meshes of a model, by its mesh numbers. Immutable. */
typedef struct qd_mj_meshes qd_mj_meshes;

/* Of mesh i: vertex_count[i] vertices and face_count[i] triangles of its hull, counterclockwise
 * seen from outside, in arrays mesh after mesh; face_count[i] = 0: contacts of it are not known. */
qd_mj_meshes *qd_mj_meshes_create(int mesh_count, const int32_t *vertex_count, const double *vertex,
                                  const int32_t *face_count, const int32_t *face);
void qd_mj_meshes_destroy(qd_mj_meshes *meshes);

/* How a contact changes that the caller differentiated: rows of distance, position (3) and normal
 * (3), columns the twist (omega, v at the contact's position) of the second geometry, world axes,
 * while the first one stands still. */
typedef struct qd_mj_change {
  int32_t contact;     /* which */
  double by_twist[42]; /* (7, 6) */
} qd_mj_change;

typedef struct qd_mj_info {
  int unknown_count; /* contacts that act and whose change is not known, */
  int unknown[16];   /* and the first of them */
  int iterations;    /* of Newton's method on the step's forces, from MuJoCo's */
  double residual;   /* of qacc, beside its largest number, where it ended */
} qd_mj_info;

typedef struct qd_mj_workspace qd_mj_workspace;

/* One thread's scratch for any models; grows with them. NULL if memory is exhausted. */
qd_mj_workspace *qd_mj_workspace_create(void);
void qd_mj_workspace_destroy(qd_mj_workspace *workspace);

/* Derivatives of one mj_step, Euler or implicitfast, by the implicit function theorem on MuJoCo's
 * convex program of accelerations: A (2 nv + na, 2 nv + na) and B (2 nv + na, nu) of the state (dq,
 * dv, act) in MuJoCo's tangent coordinates, as mjd_transitionFD orders them. QD_BAD_ARGUMENT:
 * contacts are unknown (info). QD_NUMERICAL_TROUBLE: Newton's matrix could not be factored.
 * QD_OUT_OF_MEMORY: the workspace could not grow. Of the models that its caller has checked. */
qd_status qd_mj_linearize(const qd_mj *mj, const qd_mj_meshes *meshes, int change_count,
                          const qd_mj_change *changes, qd_mj_workspace *workspace, double *A,
                          double *B, qd_mj_info *info);

#if defined(QD_VISIBLE) && defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
