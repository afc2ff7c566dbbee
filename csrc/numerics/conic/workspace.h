/* Workspace of the cone solver, shared by its stages: the program in internal form, and the
 * iterates.
 *
 * Internal form: columns are scaled by `column_scale` (unit diagonal of Q), permuted and padded
 * into tiles. Rows are sorted into padded groups of cones. Equalities are rows of a group whose
 * slack is held at zero by a proximal term: dual step = penalty * violation, repeated until it
 * vanishes. Slacks, multipliers of cones and the cost keep their units (except with ROWS_ALIKE);
 * equality rows are scaled to norm one. */
#ifndef QD_NUMERICS_CONIC_WORKSPACE_H
#define QD_NUMERICS_CONIC_WORKSPACE_H

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/cones.h"
#include "numerics/conic/active_set/active_set.h"
#include "numerics/conic/active_set/near_rows.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/conic.h"
#include "numerics/conic/newton/envelope.h"
#include "numerics/conic/path/box_cone.h"
#include "numerics/conic/program/columns.h"
#include "numerics/conic/program/equalities.h"
#include "numerics/conic/tuning.h"
#include "numerics/tiles/tiles.h"

typedef enum cone_state { CONE_OPEN, CONE_STICK, CONE_SLIDE, CONE_WEAK } cone_state;

typedef enum solution_origin {
  ORIGIN_FREE,
  ORIGIN_ACTIVE_SET,
  ORIGIN_START, /* the caller's guess */
  ORIGIN_REST,
  ORIGIN_PATH,
  ORIGIN_PATH_END, /* as ORIGIN_PATH, with units from the point itself */
  ORIGIN_MULTIPLIERS
} solution_origin;

/* A cone of a stiff block in a sensitivity: first slot, index among cones, rows, stride between
 * rows. */
typedef struct stiff_cone {
  int slot, cone, dim, step;
} stiff_cone;

/* One of the caller's matrices: dense rows, or the tiles of sparse_rows. */
typedef struct row_source {
  const double *values;
  size_t stride; /* between rows, if start is NULL */
  const int *start, *tiles;
} row_source;

static inline const double *source_row(const row_source *source, size_t row) {
  return source->values + (source->start ? 4 * (size_t)source->start[row] : row * source->stride);
}

/* Offset of a tile behind the row's first number; -1 if the row does not have the tile. */
static inline int source_offset(const row_source *source, int row, int tile) {
  if (!source->start) {
    return 4 * tile;
  }
  for (int k = source->start[row]; k < source->start[row + 1]; ++k) {
    if (source->tiles[k] == tile) {
      return 4 * (k - source->start[row]);
    }
  }
  return -1;
}

static inline const double *source_tile(const row_source *source, int row, int tile) {
  const int offset = source_offset(source, row, tile);
  return offset < 0 ? NULL : source_row(source, (size_t)row) + offset;
}

/* The program in internal form; constant after loading, except `definite`. */
typedef struct conic_loaded {
  row_source source_Q, source_G, source_C; /* the caller's matrices */
  int variable_count, row_count, equality_count;
  int column_count;  /* 4 * tiles */
  int slot_count;    /* numbers in a vector over rows */
  int lane_count;    /* numbers in a vector over cones */
  int exact;         /* 1: every target is zero (no barrier) */
  int definite;      /* 1: Q is safely positive definite, as far as its factorisation has shown */
  int springs_alone; /* 1: Q plus the springs of interval rows is the identity */
  int *column_of;    /* (column_count) original column, -1 for padding */
  double *column_scale; /* (column_count) x = column_scale * internal x */
  int *slot_of;         /* (row_count + equality_count), -1 for omitted rows */
  int *cone_rows;       /* (cones) number of rows kept of each cone */
  double *row_scale;    /* (row_count + equality_count) internal row = row_scale * row */
  double *lane_scale;   /* over cones: the row scale of the cone */
  double *b;            /* over columns */
  double *g;            /* over rows */
  double *compliance;   /* over cones: largest squared row norm, i.e. how far a multiplier moves its
                           slack */
} conic_loaded;

/* Natural units of the program: the scales below which numbers are small
 * (conic/program/units.c). */
typedef struct conic_units {
  double length, force, energy; /* of slack, dual and their product */
  int by_offsets;               /* 1: lengths ignore the minimiser of the cost */
  double near_length; /* length of the slacks of cones that the minimiser of the cost violates */
  double reach;       /* size of internal x */
  double b_size;      /* max-norm of internal b, including the forces of intervals */
  double resolution;  /* of rows, in the caller's units: smaller values count as zero */
} conic_units;

/* A primal-dual point: x over columns, slack and dual over rows. */
typedef struct conic_point {
  double *x, *slack, *dual;
} conic_point;

/* Residuals of a point, directions from it, and scratch. No method relies on what another left
 * here. */
typedef struct conic_work {
  double *Qx, *residual_x, *dx, *x; /* over columns */
  double *residual_row, *aim, *rhs, *dslack, *ddual, *dslack_aim, *ddual_aim, *row, *row2;
} conic_work;

/* State of each cone and stiffness of its directions; for the polish, the multipliers and
 * derivatives. */
typedef struct conic_active {
  int *state;              /* a cone_state, over cones */
  int changed;             /* 1: the last projection changed a state */
  double hard_penalty;     /* penalty of held rows, relative to the compliance they work against */
  cone_operator rows;      /* square root R of each cone's stiffness */
  cone_operator stiffness; /* R R */
  cone_operator hard;      /* projector on held directions; all three share u */
} conic_active;

typedef struct path_work {
  double *ray;      /* the best infeasibility ray so far */
  double ray_reach; /* size of x up to which it excludes points */
  double error;     /* relative, of a path that ended short of its goal */
  double share;     /* share of the residuals that the last step removes at full length: 1 or 0 */
} path_work;

typedef struct polish_work {
  double *split;     /* over cones: ratio dual / slack that separates held from free directions */
  double *per_split; /* over cones: 1 / split */
  int split_width;   /* width of the gap between them on the path, in powers of two; 0: not known */
  double error;      /* smallest error of the last polish */
} polish_work;

typedef struct cuts_work {
  active_set set;
  near_rows near_rows, near_cones;
  int *is_near, *tail; /* (blocks) */
} cuts_work;

typedef struct multipliers_work {
  double *penalty; /* over cones */
} multipliers_work;

typedef struct certificate_work {
  double *unit, *curvature, *x, *left, *terms, *allowed; /* over columns (certificate/detail.c) */
  double *slack, *size, *norm, *far;                     /* over rows and equalities */
  int any_gap;       /* 1: the fast check accepts an exact answer with any duality gap */
  int gap_was_large; /* 1: the fast check rejected an answer because of its duality gap */
} certificate_work;

/* The active set for derivatives (conic/sensitivity/settle.c). */
typedef struct settled_set {
  int is_known; /* 1: for the last program */
  int active;   /* 1: cones have states; 0: the path's scaling is used for all of them */
  int scaled;   /* 1: the scaling of cones near two states is known */
  int exact;    /* 1: the set is certified and unique */
} settled_set;

typedef struct sensitivity_work {
  int rounds;                                /* number of refinements of a solve */
  double *block4, *x4, *rhs4;                /* four right-hand sides at once, over columns */
  double *row4, *work_row4, *moved4, *dual4; /* over rows */
  int *stiff_blocks;                         /* (blocks) blocks with a nonzero stiffness */
  stiff_cone *stiff_cones;                   /* their cones */
  int *stiff_slots;                          /* their rows */
  int stiff_count, stiff_cone_count, stiff_slot_count;
} sensitivity_work;

typedef struct conic_structure {
  int mask_words;         /* 64-bit words of a set of tiles */
  int any_empty_row;      /* 1: some row of G or C has no entries */
  uint64_t *row_mask;     /* tiles touched by each row (original order) */
  uint64_t *tile_mask;    /* tiles coupled to each tile */
  uint64_t *Q_mask;       /* the same, through Q alone */
  uint64_t *scratch_mask; /* three masks */
  int *tile_degree;
  int *block_from;    /* parallel to block_tiles: offset of the tile in the caller's row */
  int *tile_position; /* original tile -> position */
  int *tile_original; /* position -> original tile */
  int *dim_count;     /* number of cones of each dimension */
  int *dim_group;     /* their group */
} conic_structure;

/* Memory shared by stages that never run at the same time: cuts (until their polish ends), the
 * method of multipliers, the certificate, and derivatives (from their factorisation on). Each stage
 * overwrites the data of the one before. */
typedef struct conic_stages {
  char *begin;
  size_t bytes;
} conic_stages;

/* The caller's request to stop. */
typedef struct conic_stop {
  int (*ask)(void *context); /* NULL: no callback */
  void *context;
  int stopped;
} conic_stop;

struct qd_cone_workspace {
  conic_size capacity;
  conic_size wanted; /* its fill: of the current program */
  size_t bytes;
  conic_loaded program;
  tile_system system;   /* the program's matrices and their factor */
  cone_product product; /* the program's cones and their scaling */
  conic_units units;
  solution_origin origin; /* the method that found the answer */
  conic_point iterate;    /* the current iterate of a method, or its answer up to the tolerance */
  conic_point best; /* best iterate of the path (x shared with polished); its dual: an infeasibility
                       certificate */
  conic_point newton;   /* the current iterate of a polish, or the caller's guess */
  conic_point polished; /* answer of a polish, to rounding */
  conic_work work;
  conic_active active;
  double slack_error; /* max |dual| |Gx + g - slack|, set by conic_measure */
  /* data of single methods */
  path_work path;
  polish_work polish;
  cuts_work cuts;
  multipliers_work multipliers;
  certificate_work certificate;
  settled_set settled;
  sensitivity_work sensitivity;
  conic_stages stages;
  conic_structure structure;
  equality_space space; /* laid out if capacity.is_dense, like `aligned` */
  aligned_columns aligned;
  compliant_program soft; /* laid out for compliant rows, like `ends` and `envelope` */
  interval_ends ends;
  envelope envelope;
  conic_stop stop;
};

/* Starts a stage on the shared memory. With assertions on, the memory is filled with NaN so that
 * data of an earlier stage cannot be used. */
static inline void conic_begin_stage(const qd_cone_workspace *workspace) {
#ifndef NDEBUG
  memset(workspace->stages.begin, 0xff, workspace->stages.bytes);
#else
  (void)workspace;
#endif
}

/* Solver of a program with rigid rows. */
typedef qd_status (*rigid_solver)(qd_cone_workspace *workspace, const qd_cone_options *options,
                                  const conic_program *source, const conic_answer *out,
                                  qd_cone_info *info);
/* Solves a program with compliant rows through an equivalent program with rigid rows. */
qd_status conic_solve_compliant(qd_cone_workspace *workspace, const qd_cone_options *options,
                                const conic_program *source, const conic_answer *out,
                                qd_cone_info *info, rigid_solver solve);
/* Number of the caller's variables, the first of the loaded program. */
static inline int conic_caller_columns(const qd_cone_workspace *workspace) {
  return compliance_is_written(&workspace->soft) ? workspace->soft.variables
                                                 : workspace->program.variable_count;
}

static inline const cone_group *first_group(const qd_cone_workspace *workspace) {
  return workspace->product.groups;
}
static inline const cone_group *end_group(const qd_cone_workspace *workspace) {
  return groups_end(&workspace->product);
}
static inline void conic_copy_columns(const qd_cone_workspace *workspace, double *to,
                                      const double *from) {
  memcpy(to, from, (size_t)workspace->program.column_count * sizeof(double));
}
static inline void conic_copy_slots(const qd_cone_workspace *workspace, double *to,
                                    const double *from) {
  memcpy(to, from, (size_t)workspace->program.slot_count * sizeof(double));
}
static inline void conic_zero_columns(const qd_cone_workspace *workspace, double *to) {
  memset(to, 0, (size_t)workspace->program.column_count * sizeof(double));
}
static inline void conic_zero_slots(const qd_cone_workspace *workspace, double *to) {
  memset(to, 0, (size_t)workspace->program.slot_count * sizeof(double));
}
static inline void conic_copy_point(const qd_cone_workspace *workspace, const conic_point *to,
                                    const conic_point *from) {
  conic_copy_columns(workspace, to->x, from->x);
  conic_copy_slots(workspace, to->slack, from->slack);
  conic_copy_slots(workspace, to->dual, from->dual);
}

/* Scaling of cone rows: as given, or with the rows of each cone scaled to the same norm. The latter
 * is slower in general, because natural units then mix distant and near cones, but is needed when
 * row norms differ by many decades. */
typedef enum row_scaling { ROWS_AS_GIVEN, ROWS_ALIKE } row_scaling;

/* Checks sizes, signs and completeness of a program; cone kinds up to `last_kind` are allowed. */
int conic_makes_sense(const conic_size *room, const conic_program *source, int last_kind);
/* Reads, checks and converts a program. */
qd_status conic_load(qd_cone_workspace *workspace, const conic_program *program,
                     row_scaling scaling);
/* Zeroes the vectors over rows whose padded lanes must be zero, after their use as scratch. */
void conic_clear_rows(qd_cone_workspace *workspace);
/* The cone of a row that has a slot. */
static inline int conic_lane_of(const qd_cone_workspace *workspace, int row) {
  const cone_group *group = workspace->product.groups;
  const int slot = workspace->program.slot_of[row];
  while (slot >= group->slot + group->dim * group->padded) {
    ++group;
  }
  return group->cone + (slot - group->slot) % group->padded;
}
/* Q_jj in the caller's units. */
static inline double conic_curvature(const qd_cone_workspace *workspace, int j) {
  const double *own = source_tile(&workspace->program.source_Q, j, j / 4);
  return own ? own[j % 4] : 0.0;
}
/* The matrix of a row (G for row < row_count, else C); *at: the row in it. */
static inline const row_source *conic_source_of(const qd_cone_workspace *workspace, int row,
                                                int *at) {
  const int equality = row >= workspace->program.row_count;
  *at = row - (equality ? workspace->program.row_count : 0);
  return equality ? &workspace->program.source_C : &workspace->program.source_G;
}
static inline const double *conic_caller_row(const qd_cone_workspace *workspace, int row) {
  int at;
  const row_source *source = conic_source_of(workspace, row, &at);
  return source_row(source, (size_t)at);
}
/* 1 for a row of an interval. Its compliance and limits are in the caller's units. */
static inline int conic_is_interval_row(const qd_cone_workspace *workspace, int row) {
  const cone_group *group = workspace->product.groups + workspace->ends.rows;
  return workspace->ends.count > 0 && workspace->program.slot_of[row] >= group->slot &&
         workspace->program.slot_of[row] < group->slot + group->count;
}
/* Writes the square roots of the equalities' penalties into an operator on rows. */
void conic_scale_equalities(qd_cone_workspace *workspace, cone_operator *scaling);
/* Factors Q + S'S, S = scaling G; returns the number of dropped columns. */
int conic_factor_rows(qd_cone_workspace *workspace, const cone_operator *scaling,
                      qd_cone_info *info);
/* One predictor-corrector step from products of mean mu towards `target`; `plain`: without the
 * second-order term. Returns the step length, 0 if the scaling or the factor failed. */
double conic_take_step(qd_cone_workspace *workspace, double mu, double target, int refinements,
                       int plain, qd_cone_info *info);
/* w = Gx + g, zero in padded lanes */
void conic_slacks_at(const qd_cone_workspace *workspace, const double *x, double *w);
/* residual_row = Gx + g - slack */
void conic_row_residual(qd_cone_workspace *workspace, const double *x, const double *slack);
/* residual_x = Qx + b - G'dual, and work.Qx */
void conic_column_residual(qd_cone_workspace *workspace, const double *x, const double *dual);
/* Sets the natural units from the minimiser of the cost and its violation of each cone (over
 * cones). */
void conic_find_units(qd_cone_workspace *workspace, const double *violation);
/* x = argmin of the cost + stiffness/2 |Gx + g|^2 + penalty/2 |Cx + c|^2 */
void conic_least_squares(qd_cone_workspace *workspace, double stiffness, qd_cone_info *info);
/* w = Gx + g, and the violation |w_1..| - w_0 of each cone (over cones) */
void conic_start_rows(qd_cone_workspace *workspace, double *w, double *violation);
/* Minimiser of the cost alone, and the natural units. Returns 1 if it lies inside every cone and so
 * solves the exact program. Leaves its rows Gx + g in `rhs`. */
int conic_free_minimum(qd_cone_workspace *workspace, qd_cone_info *info);
/* After conic_free_minimum: 1 if an exact program should use the path, 0 for cuts first. */
int conic_wants_path(const qd_cone_workspace *workspace);
/* After conic_free_minimum: 1 if so many rows are violated that most of them must be redundant. */
int conic_is_crowded(const qd_cone_workspace *workspace);
/* Dual active-set method from the minimiser of the cost: x and dual with few active rows.
 * Polyhedral programs end at a vertex, a solution whose load is then spread over redundant rows.
 * Others end near the solution, or, if they need too many rows, nowhere: then x and its rows are
 * unchanged. */
typedef enum cuts_end { CUTS_NOWHERE, CUTS_NEARBY, CUTS_AT_VERTEX } cuts_end;
cuts_end conic_dual_active_set(qd_cone_workspace *workspace);
/* Prediction of that end: are few blocks of rows violated, and is the method exact? */
typedef enum cuts_outlook { CUTS_NONE, CUTS_MANY, CUTS_FEW, CUTS_EXACT } cuts_outlook;
cuts_outlook conic_cuts_apply(qd_cone_workspace *workspace);
/* Continues the cuts after a failed polish, down to an acceptable tolerance, with the load spread
 * over resting contacts; 0 if that takes too many cuts. */
int conic_resume_cuts(qd_cone_workspace *workspace);
/* Factors the cost alone; 0 if it is not safely definite. */
int conic_factor_cost(qd_cone_workspace *workspace);
/* Solves an exact program with uncoupled variables if only its answer is wanted; 0 for other
 * programs and without a solution. */
int conic_solve_separable(qd_cone_workspace *workspace, const conic_program *program, double *x,
                          double *slack, double *dual, qd_cone_info *info);
/* Reads the caller's guess into newton, in internal units. */
void conic_read_start(qd_cone_workspace *workspace, const conic_answer *guess);
/* Error of a guess above which a polish costs more than an exact solve without the guess. */
double conic_start_limit(qd_cone_workspace *workspace);
/* Moves the guess to the path (conic/path/start.c) and writes x, slack and dual. The products
 * become `factor` times a barrier's targets, or for an exact program, times the natural energy. */
void conic_enter_path(qd_cone_workspace *workspace, double factor);
/* Slack and dual of the iterate on the path of the penalised problem: slack - dual / stiffness = w
 * with the same product for every cone, by eigenvalues along (1, +-u). Distant cones do not affect
 * near ones. Tried and dropped: shifting all slacks and multipliers equally until they are inside,
 * which took up to twice the iterations. */
void conic_start_cones(qd_cone_workspace *workspace, const double *w);
/* Follows the central path to a complementarity of `goal` (relative) with at most iteration_limit
 * iterations in all, from a cold start, from where it stopped, or from a given point, which it
 * leaves if the first steps are short. PATH_ELSEWHERE starts cold after other starts have failed
 * and accepts an end by rounding. Leaves x, slack, dual. */
typedef enum path_start {
  PATH_COLD,
  PATH_RESUMED,
  PATH_WARM,    /* a barrier, from a guess */
  PATH_ENTERED, /* an exact program, from a point near a guess */
  PATH_ELSEWHERE
} path_start;
typedef struct path_request {
  double goal;
  int iteration_limit;
  int wanted_width; /* width of the split at which to stop for a polish; 0: never */
  path_start from;
  double look_error; /* relative error at which to stop for the callback; 0: never */
} path_request;
typedef enum path_end {
  PATH_ARRIVED,
  PATH_AT_WIDTH,
  PATH_AT_LOOK,
  PATH_INFEASIBLE, /* best.dual is the certificate */
  PATH_UNBOUNDED,  /* newton.x is far along the ray */
  PATH_AT_LIMIT,
  PATH_IN_TROUBLE,
  PATH_LEFT,   /* PATH_WARM, PATH_ENTERED: the guess does not help */
  PATH_GOES_ON /* not ended */
} path_end;
path_end conic_follow_path(qd_cone_workspace *workspace, const path_request *request,
                           qd_cone_info *info);
/* 1 if the cost is unbounded below along x, or, for a barrier, along the last step. */
int conic_proves_unbounded(qd_cone_workspace *workspace);
/* Alternative units for restarts of the path: nearer to and farther from the boundary, and far
 * out. */
#define OTHER_UNITS 6
void conic_change_units(qd_cone_workspace *workspace, int choice);
/* 1 if other methods may still give a verdict. An iteration limit below MEANT_ITERATIONS is
 * deliberate. */
static inline int conic_is_undecided(qd_status status, int iteration_limit) {
  return status == QD_NUMERICAL_TROUBLE ||
         (status == QD_ITERATION_LIMIT && iteration_limit >= MEANT_ITERATIONS);
}
void conic_clear_outputs(const qd_cone_program *program, const conic_answer *out);
void conic_clear_info(qd_cone_info *info);
/* Residuals in the caller's units; replaces a verdict that they do not confirm by
 * QD_NUMERICAL_TROUBLE. */
qd_status conic_judge(qd_cone_workspace *workspace, const conic_program *source, double tolerance,
                      qd_status status, const conic_answer *out, qd_cone_info *info);
/* Gap between the two kinds of eigenvalues of the path's slack and dual. Writes split if the gap is
 * at least `wanted` wide; returns split_width. */
int conic_find_split(qd_cone_workspace *workspace, int wanted);
/* Newton's method on the active set, from x and dual. ORIGIN_REST starts from the minimiser of the
 * cost, whose rows are in `rhs`, and assumes that all near contacts come to rest. Returns 1 if the
 * KKT conditions hold to rounding: then the answer is in polished. */
typedef struct polish_guess {
  solution_origin origin;
  int is_vertex;    /* ORIGIN_ACTIVE_SET: the cuts ended at a vertex, whose load is to be spread */
  int strict;       /* vertices of cuts: 1: reject cones at the limit of sliding */
  double limit;     /* ORIGIN_START: a guess with a larger error is not polished */
  double tolerance; /* smaller errors count as solved where a polish stalls */
} polish_guess;
int conic_polish(qd_cone_workspace *workspace, const polish_guess *guess, qd_cone_info *info);
/* Keeps the minimiser of the cost as polished, where it lies inside all cones. */
void conic_keep_free_minimum(qd_cone_workspace *workspace);
/* Method of multipliers for an exact program, from the end of the path, at most `limit` times, then
 * the polish if requested. Leaves x, slack, dual, the same in polished, and the states; returns 1
 * if that solves the program. Restores the path's end if it made no progress. */
int augmented_lagrangian(qd_cone_workspace *workspace, double tolerance, int limit, int polish,
                         int *polished, qd_cone_info *info);
/* 1 if a row without entries is violated; its certificate is then in best.dual. */
int conic_find_contradiction(qd_cone_workspace *workspace, const qd_cone_program *program);
/* 1 if the norms of rows differ by more than the methods can resolve together. */
int conic_rows_are_far_apart(const qd_cone_workspace *workspace);
/* 1 if the cost alone moves x much farther than the rows' offsets: natural lengths may be wrong. */
int conic_cost_is_weak(const qd_cone_workspace *workspace, const qd_cone_program *program);
/* Residuals in the caller's units, over nonzero tiles. Leaves Qx + b - G'dual - C'dual_eq in work.x
 * and Gx + g in work.row2. */
void conic_measure(qd_cone_workspace *workspace, const conic_program *source,
                   const conic_answer *at, qd_cone_info *info);
/* A point and its multipliers, in the caller's units. */
typedef struct cone_point {
  const double *x, *slack, *dual, *dual_eq;
} cone_point;
/* 1 if the point that conic_measure evaluated is a solution. */
int conic_is_certified(qd_cone_workspace *workspace, const conic_program *source, double tolerance,
                       const cone_point *at, const qd_cone_info *info);
/* 1 if the multipliers, a ray, prove that no point satisfies the constraints. Sets multipliers to
 * zero that are not part of the proof or that compliant rows cannot carry. */
int conic_excludes(qd_cone_workspace *workspace, const conic_program *source,
                   const conic_answer *out);
/* Projects z = dual - r slack on the cones, r = split; returns the largest |dual - projected| / r.
 * Sets each cone's state and the operators of the Newton step. */
double conic_project(qd_cone_workspace *workspace, const double *slack, const double *dual,
                     double *z, double *projected);
/* Sets the states from polished. */
void conic_read_states(qd_cone_workspace *workspace);
/* Square root of the penalty of one cone's held rows. */
LANES_INLINE double conic_hard_root(const qd_cone_workspace *workspace, int cone) {
  const double compliance = workspace->program.compliance[cone];
  return sqrt(workspace->active.hard_penalty / (compliance > 0.0 ? compliance : 1.0));
}

/* Sets one cone's operators R, R R and the projector on held directions from their values along (1,
 * u), (1, -u) and across. */
LANES_INLINE void conic_set_stiffness(qd_cone_workspace *workspace, int cone, double along,
                                      double against, double across, int hard_along,
                                      int hard_rest) {
  cone_operator *rows = &workspace->active.rows, *stiffness = &workspace->active.stiffness;
  cone_operator *hard = &workspace->active.hard;
  rows->diagonal[cone] = 0.5 * (along + against);
  rows->cross[cone] = 0.5 * (along - against);
  rows->tangent[cone] = across;
  stiffness->diagonal[cone] = 0.5 * (along * along + against * against);
  stiffness->cross[cone] = 0.5 * (along * along - against * against);
  stiffness->tangent[cone] = across * across;
  hard->diagonal[cone] = 0.5 * (hard_along + hard_rest);
  hard->cross[cone] = 0.5 * (hard_along - hard_rest);
  hard->tangent[cone] = hard_rest;
}

/* Sets the stiffness of each cone from its certified state; 1 if any direction is held. Weak and
 * padded cones get zero. */
int conic_set_active_rows(qd_cone_workspace *workspace, const double *dual, const double *slack);
/* 1 if the system is positive definite for any active set. Interval forces at their limits add no
 * curvature. */
static inline int conic_set_is_definite(const qd_cone_workspace *workspace) {
  return workspace->program.definite && !(workspace->program.exact && workspace->ends.count > 0);
}
/* 1 if some cone's state is weak. */
int conic_any_weak(const qd_cone_workspace *workspace);
/* 1 if some cone touches in `polished` without load: its state is uncertain. */
int conic_any_idle(const qd_cone_workspace *workspace);
/* 1 if touching cones in `polished` seem unable to share their load differently: none is idle, and
 * they have no more rows than there are unknowns. Weak ones among them are at most at the limit of
 * sliding. */
int conic_shares_are_known(const qd_cone_workspace *workspace);
/* Makes equality rows held. */
void conic_set_equalities(qd_cone_workspace *workspace);

/* 1 once the caller has asked to stop: all methods end. */
static inline int conic_is_stopped(qd_cone_workspace *workspace) {
  conic_stop *stop = &workspace->stop;
  return stop->ask && (stop->stopped || (stop->stopped = stop->ask(stop->context)) != 0);
}

#endif
