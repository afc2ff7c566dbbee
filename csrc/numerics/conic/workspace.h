/* What the stages of the cone solver share: the program in its internal form, and the iterate.
 *
 * Internal form: columns scaled by `column_scale` (unit diagonal of Q), permuted and padded into
 * tiles; rows sorted into groups of cones, padded; equalities are rows of a group whose slack is
 * held at zero by a proximal term: dual step = penalty * (what violates), repeated until nothing
 * violates. Slacks, multipliers of cones, and the cost keep their units (but see ROWS_ALIKE);
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
  ORIGIN_PATH_END, /* likewise, units from the point itself */
  ORIGIN_MULTIPLIERS
} solution_origin;

/* A cone of a block that a sensitivity moves: first slot, place among cones, rows, from row to row.
 */
typedef struct stiff_cone {
  int slot, cone, dim, step;
} stiff_cone;

/* One of the caller's matrices: all columns of every row, or the tiles of sparse_rows. */
typedef struct row_source {
  const double *values;
  size_t stride; /* from row to row, if start is NULL */
  const int *start, *tiles;
} row_source;

static inline const double *source_row(const row_source *source, size_t row) {
  return source->values + (source->start ? 4 * (size_t)source->start[row] : row * source->stride);
}

/* Where a tile of a row begins behind the row's first number, -1 if the row does not have it. */
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

/* The program in its internal form; nothing of it changes once it is loaded, but `definite`. */
typedef struct conic_loaded {
  row_source source_Q, source_G, source_C; /* the caller's */
  int variable_count, row_count, equality_count;
  int column_count;     /* 4 * tiles */
  int slot_count;       /* numbers in a vector over rows */
  int lane_count;       /* numbers in a vector over cones */
  int exact;            /* every target is zero */
  int definite;         /* Q is safely positive definite, as far as its factor has shown */
  int springs_alone;    /* Q with the springs of intervals' rows is the identity */
  int *column_of;       /* (column_count) original column, -1 if padded */
  double *column_scale; /* (column_count) x = column_scale * internal x */
  int *slot_of;         /* (row_count + equality_count), -1 for rows left out */
  int *cone_rows;       /* (cones) rows of each cone that are kept */
  double *row_scale;    /* (row_count + equality_count) internal row = row_scale * row */
  double *lane_scale;   /* over cones: the same, one for all rows of a cone */
  double *b;            /* over columns */
  double *g;            /* over rows */
  double *compliance;   /* over cones: largest squared row norm, what a multiplier does to its
                           slack */
} conic_loaded;

/* What is small: natural units of the program at hand (conic/program/units.c). */
typedef struct conic_units {
  double length, force, energy; /* of slack, dual and their product */
  int by_offsets;               /* lengths do without the minimiser of the cost */
  double near_length;           /* of the slacks of cones that the minimiser of the cost violates */
  double reach;                 /* of internal x */
  double b_size;                /* max-norm of internal b, with the forces' share */
  double resolution;            /* of rows, in the caller's units: less is zero */
} conic_units;

/* x over columns, slack and dual over rows. */
typedef struct conic_point {
  double *x, *slack, *dual;
} conic_point;

/* Residuals of a point, directions from it, and scratch: no method counts on what another left. */
typedef struct conic_work {
  double *Qx, *residual_x, *dx, *x; /* over columns */
  double *residual_row, *aim, *rhs, *dslack, *ddual, *dslack_aim, *ddual_aim, *row, *row2;
} conic_work;

/* Each cone's state and what its directions resist: polish, multipliers and derivatives. */
typedef struct conic_active {
  int *state;              /* a cone_state, over cones */
  int changed;             /* by the last projection */
  double hard_penalty;     /* of rows that may not move, over the compliance they work against */
  cone_operator rows;      /* square root R of the stiffness of each cone */
  cone_operator stiffness; /* R R */
  cone_operator hard;      /* projector on directions that may not move; all three share u */
} conic_active;

typedef struct path_work {
  double *ray;      /* the best proof of infeasibility so far, if there is no other */
  double ray_reach; /* how far it excludes points */
  double error;     /* relative, where the path ended short of its goal */
  double share;     /* of the residuals that its last step went for */
} path_work;

typedef struct polish_work {
  double *split;     /* over cones: dual / slack that parts held from free */
  double *per_split; /* over cones: 1 / split */
  int split_width;   /* how far apart they are on the path, in powers of two; 0: not known */
  double error;      /* the best that the last polish saw */
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
  int any_gap;       /* the short way takes an exact program's answer with any duality gap */
  int gap_was_large; /* it has turned one down for its gap */
} certificate_work;

/* The active set that derivatives are taken on (conic/sensitivity/settle.c). */
typedef struct settled_set {
  int is_known; /* of the program that was solved last */
  int active;   /* cones have states; 0: the path's scaling stands for all of them */
  int scaled;   /* the scaling of those that are near two states is known */
  int exact;    /* it is proven, and the only one */
} settled_set;

typedef struct sensitivity_work {
  int rounds;                                /* repetitions of a solve */
  double *block4, *x4, *rhs4;                /* four right-hand sides at once, over columns */
  double *row4, *work_row4, *moved4, *dual4; /* over rows */
  int *stiff_blocks;                         /* (blocks) whose multipliers move */
  stiff_cone *stiff_cones;                   /* their cones */
  int *stiff_slots;                          /* their rows */
  int stiff_count, stiff_cone_count, stiff_slot_count;
} sensitivity_work;

typedef struct conic_structure {
  int mask_words;         /* 64-bit words of a set of tiles */
  int any_empty_row;      /* a row without entries, equalities included */
  uint64_t *row_mask;     /* tiles a row touches (original order) */
  uint64_t *tile_mask;    /* tiles coupled to a tile */
  uint64_t *Q_mask;       /* the same, by Q alone */
  uint64_t *scratch_mask; /* three */
  int *tile_degree;
  int *block_from;    /* like block_tiles: where the tile begins in the caller's rows */
  int *tile_position; /* original tile -> place */
  int *tile_original; /* place -> original tile */
  int *dim_count;     /* cones of each dimension */
  int *dim_group;     /* their group */
} conic_structure;

/* Memory of stages that are never at work at the same time, which is the same for all of them: cuts
 * (to the end of their polish), the method of multipliers, the certificate, and derivatives (from
 * their factor on). What one leaves there is gone when the next one begins. */
typedef struct conic_stages {
  char *begin;
  size_t bytes;
} conic_stages;

/* The caller's wish to end. */
typedef struct conic_stop {
  int (*ask)(void *context); /* NULL: nobody is asked */
  void *context;
  int stopped;
} conic_stop;

struct qd_cone_workspace {
  conic_size capacity;
  conic_size wanted; /* its fill: of the program at hand */
  size_t bytes;
  conic_loaded program;
  tile_system system;   /* its matrices, and their factor */
  cone_product product; /* its cones, and their scaling */
  conic_units units;
  solution_origin origin; /* what led to the answer */
  conic_point iterate;    /* where a method stands; its answer, up to the tolerance */
  conic_point best;       /* of the path (x shared with polished); its dual: a proof that there is
                             no point */
  conic_point newton;     /* where a polish stands; a caller's guess */
  conic_point polished;   /* its answer, to rounding */
  conic_work work;
  conic_active active;
  double slack_error; /* max |dual| |Gx + g - slack| of what conic_measure saw */
  /* one method's each */
  path_work path;
  polish_work polish;
  cuts_work cuts;
  multipliers_work multipliers;
  certificate_work certificate;
  settled_set settled;
  sensitivity_work sensitivity;
  conic_stages stages;
  conic_structure structure;
  equality_space space; /* laid out if capacity.is_dense, as this: */
  aligned_columns aligned;
  compliant_program soft; /* laid out where rows may give way, as this: */
  interval_ends ends;
  envelope envelope;
  conic_stop stop;
};

/* A stage takes over the memory that it shares: where assertions are on, nothing of what was there
 * can be read. */
static inline void conic_begin_stage(const qd_cone_workspace *workspace) {
#ifndef NDEBUG
  memset(workspace->stages.begin, 0xff, workspace->stages.bytes);
#else
  (void)workspace;
#endif
}

/* A program whose rows are rigid. */
typedef qd_status (*rigid_solver)(qd_cone_workspace *workspace, const qd_cone_options *options,
                                  const conic_program *source, const conic_answer *out,
                                  qd_cone_info *info);
/* A program whose rows give way, by the rigid one that says the same. */
qd_status conic_solve_compliant(qd_cone_workspace *workspace, const qd_cone_options *options,
                                const conic_program *source, const conic_answer *out,
                                qd_cone_info *info, rigid_solver solve);
/* conic_sensitivity_solve and conic_find_free_direction of the rigid program. */
void conic_perturb(qd_cone_workspace *workspace, const conic_change *change);
int conic_find_rigid_direction(qd_cone_workspace *workspace, const qd_cone_info *info, double *out);

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

/* Rows of cones as the caller has them, or each cone's scaled to the same norm: slower in general,
 * since natural units then mix what far cones and near ones call far, but what programs need whose
 * rows differ by many decades. */
typedef enum row_scaling { ROWS_AS_GIVEN, ROWS_ALIKE } row_scaling;

/* Sizes, signs and kinds of what is there; `last_kind`: cones of this kind and those before. */
int conic_makes_sense(const conic_size *room, const conic_program *source, int last_kind);
/* Reads, checks and converts a program. */
qd_status conic_load(qd_cone_workspace *workspace, const conic_program *program,
                     row_scaling scaling);
/* Vectors over rows whose padded lanes have to be zero, after they have served as scratch. */
void conic_clear_rows(qd_cone_workspace *workspace);
/* The cone that a row (with a slot) belongs to. */
static inline int conic_lane_of(const qd_cone_workspace *workspace, int row) {
  const cone_group *group = workspace->product.groups;
  const int slot = workspace->program.slot_of[row];
  while (slot >= group->slot + group->dim * group->padded) {
    ++group;
  }
  return group->cone + (slot - group->slot) % group->padded;
}
/* Q_jj as the caller has it. */
static inline double conic_curvature(const qd_cone_workspace *workspace, int j) {
  const double *own = source_tile(&workspace->program.source_Q, j, j / 4);
  return own ? own[j % 4] : 0.0;
}
/* A row of G, or behind those of C, as the caller has it. */
static inline const double *conic_caller_row(const qd_cone_workspace *workspace, int row) {
  return row < workspace->program.row_count
             ? source_row(&workspace->program.source_G, (size_t)row)
             : source_row(&workspace->program.source_C,
                          (size_t)(row - workspace->program.row_count));
}
/* A row of an interval, whose compliance and limits are in the caller's numbers. */
static inline int conic_is_interval_row(const qd_cone_workspace *workspace, int row) {
  const cone_group *group = workspace->product.groups + workspace->ends.rows;
  return workspace->ends.count > 0 && workspace->program.slot_of[row] >= group->slot &&
         workspace->program.slot_of[row] < group->slot + group->count;
}
/* Square roots of the equalities' penalties, into an operator on rows. */
void conic_scale_equalities(qd_cone_workspace *workspace, cone_operator *scaling);
/* Factor of Q + S'S, S = scaling G; returns how many columns were dropped. */
int conic_factor_rows(qd_cone_workspace *workspace, const cone_operator *scaling,
                      qd_cone_info *info);
/* One predictor-corrector step towards `target` from products of mean mu, `plain` without a
 * second-order term; returns its length, 0 if the scaling or the factor failed. */
double conic_take_step(qd_cone_workspace *workspace, double mu, double target, int refinements,
                       int plain, qd_cone_info *info);
/* w = Gx + g, zero in padded lanes' tails */
void conic_slacks_at(const qd_cone_workspace *workspace, const double *x, double *w);
/* residual_row = Gx + g - slack */
void conic_row_residual(qd_cone_workspace *workspace, const double *x, const double *slack);
/* residual_x = Qx + b - G'dual, and Qx */
void conic_column_residual(qd_cone_workspace *workspace, const double *x, const double *dual);
/* Natural units, from the minimiser of the cost and by how much it violates each cone (over cones).
 */
void conic_find_units(qd_cone_workspace *workspace, const double *violation);
/* x = argmin of the cost + stiffness/2 |Gx + g|^2 + penalty/2 |Cx + c|^2 */
void conic_least_squares(qd_cone_workspace *workspace, double stiffness, qd_cone_info *info);
/* w = Gx + g, and the amount |w_1..| - w_0 by which each cone is violated (over cones) */
void conic_start_rows(qd_cone_workspace *workspace, double *w, double *violation);
/* Minimiser of the cost alone, natural units; 1 if it lies inside every cone and so solves the
 * exact program. Leaves its rows Gx + g in `rhs`. */
int conic_free_minimum(qd_cone_workspace *workspace, qd_cone_info *info);
/* From there: 1 if the path is the way for an exact program, 0 if cuts should be tried first. */
int conic_wants_path(const qd_cone_workspace *workspace);
/* Likewise: 1 if it violates so many rows that most of them have to be redundant. */
int conic_is_crowded(const qd_cone_workspace *workspace);
/* From there: x and dual of few active rows. Polyhedral programs end at a vertex, the solution with
 * its load spread; others near it; where that takes too many rows, nowhere, with x and its rows as
 * they were. */
typedef enum cuts_end { CUTS_NOWHERE, CUTS_NEARBY, CUTS_AT_VERTEX } cuts_end;
cuts_end conic_dual_active_set(qd_cone_workspace *workspace);
/* What is known of that beforehand: whether few blocks of rows are violated, and whether it ends at
 * the solution. */
typedef enum cuts_outlook { CUTS_NONE, CUTS_MANY, CUTS_FEW, CUTS_EXACT } cuts_outlook;
cuts_outlook conic_cuts_apply(qd_cone_workspace *workspace);
/* From where that ended, after a polish could not finish it: down to a tolerance that counts, with
 * the load spread over what rests; 0 if that takes too many cuts. */
int conic_resume_cuts(qd_cone_workspace *workspace);
/* The factor of the cost alone; 0 if it is not safely definite. */
int conic_factor_cost(qd_cone_workspace *workspace);
/* The whole of an exact program whose variables do not know each other, if only its answer is
 * wanted; 0 if it is another, or has no answer. */
int conic_solve_separable(qd_cone_workspace *workspace, const conic_program *program, double *x,
                          double *slack, double *dual, qd_cone_info *info);
/* The caller's guess, in the caller's units, into newton. */
void conic_read_start(qd_cone_workspace *workspace, const conic_answer *guess);
/* Errors of a guess beyond which a polish costs more than what an exact program takes without. */
double conic_start_limit(qd_cone_workspace *workspace);
/* The point that this guess shows, with its products of slack and multiplier, of the path of a
 * barrier that is so many times as strong, into x, slack and dual; of an exact program, where
 * products are so many times the natural energy. */
void conic_enter_path(qd_cone_workspace *workspace, double factor);
/* Slack and dual of the iterate on the path of the penalised problem: slack - dual / stiffness = w
 * with the same product for every cone, by eigenvalues along (1, +-u). Far cones do not move near
 * ones: shifting all slacks and multipliers by the same amount until they are inside took up to
 * twice the iterations. */
void conic_start_cones(qd_cone_workspace *workspace, const double *w);
/* Interior point from a cold start (or where it stopped, or from the point at hand, which is left
 * again if its first steps are short; or cold again after others have failed, when rounding may end
 * it) down to a complementarity of `goal` (relative), at most
 * iteration_limit iterations in all. Leaves x, slack, dual. */
typedef enum path_start {
  PATH_COLD,
  PATH_RESUMED,
  PATH_WARM,    /* a barrier's, from where a guess shows */
  PATH_ENTERED, /* an exact program's, from a point near a guess */
  PATH_ELSEWHERE
} path_start;
typedef struct path_request {
  double goal;
  int iteration_limit;
  int wanted_width; /* of the split at which it stops for a polish; 0: it does not */
  path_start from;
  double look_error; /* relative, at which it stops for a look; 0: it does not */
} path_request;
typedef enum path_end {
  PATH_ARRIVED,
  PATH_AT_WIDTH,
  PATH_AT_LOOK,
  PATH_INFEASIBLE, /* best.dual proves it */
  PATH_UNBOUNDED,  /* newton.x is far along */
  PATH_AT_LIMIT,
  PATH_IN_TROUBLE,
  PATH_LEFT,   /* PATH_WARM, PATH_ENTERED: the guess is no help */
  PATH_GOES_ON /* not yet */
} path_end;
path_end conic_follow_path(qd_cone_workspace *workspace, const path_request *request,
                           qd_cone_info *info);
/* 1 if the cost falls for ever along x, or of a barrier along the last step. */
int conic_proves_unbounded(qd_cone_workspace *workspace);
/* Other units than the natural ones, to start a path from that did not arrive: nearer to and
 * farther from the boundary, and far out. */
#define OTHER_UNITS 6
void conic_change_units(qd_cone_workspace *workspace, int choice);
/* 1 if other ways may still lead to a verdict. A far smaller limit than the default is one that the
 * caller means: no other scalings are tried. */
static inline int conic_is_undecided(qd_status status, int iteration_limit) {
  return status == QD_NUMERICAL_TROUBLE ||
         (status == QD_ITERATION_LIMIT && iteration_limit >= MEANT_ITERATIONS);
}
void conic_clear_outputs(const qd_cone_program *program, const conic_answer *out);
void conic_clear_info(qd_cone_info *info);
/* Residuals in the caller's numbers; a verdict that they do not bear out is none. */
qd_status conic_judge(qd_cone_workspace *workspace, const conic_program *source, double tolerance,
                      qd_status status, const conic_answer *out, qd_cone_info *info);
/* From the path's slack and dual: where the two kinds of eigenvalues part, into split if they are
 * as far apart as `wanted`; returns split_width. */
int conic_find_split(qd_cone_workspace *workspace, int wanted);
/* Newton on the active set, from x and dual (ORIGIN_REST: from the minimiser of the cost, whose
 * rows are in `rhs`, as if what it leaves near came to rest); 1 if the KKT equations hold to
 * rounding: then polished. */
typedef struct polish_guess {
  solution_origin origin;
  int is_vertex;    /* ORIGIN_ACTIVE_SET: the cuts ended at a solution, with the load spread */
  int strict;       /* cuts' vertices: cones that just do not slide are no answer */
  double limit;     /* ORIGIN_START: errors above it are not worth a factor; */
  double tolerance; /* errors below it count as solved where a polish gets no further */
} polish_guess;
int conic_polish(qd_cone_workspace *workspace, const polish_guess *guess, qd_cone_info *info);
/* The minimiser of the cost, near which no cone is, as if polished. */
void conic_keep_free_minimum(qd_cone_workspace *workspace);
/* An exact program where the path ended: method of multipliers from its end, at most `limit` times,
 * then the polish if asked. Leaves x, slack, dual, the same in polished, and the states; 1 if that
 * solves the program. Where it got no nearer than the path: as it was. */
int augmented_lagrangian(qd_cone_workspace *workspace, double tolerance, int limit, int polish,
                         int *polished, qd_cone_info *info);
/* A row that no x moves and that does not hold: 1, and the certificate in best.dual. */
int conic_find_contradiction(qd_cone_workspace *workspace, const qd_cone_program *program);
/* Norms of rows that differ by more than the methods can hold beside each other. */
int conic_rows_are_far_apart(const qd_cone_workspace *workspace);
/* The cost alone sends x far out beside the offsets of rows: natural lengths may mislead. */
int conic_cost_is_weak(const qd_cone_workspace *workspace, const qd_cone_program *program);
/* Residuals from the caller's own numbers, where they are not zero. Leaves Qx + b - G'dual -
 * C'dual_eq in work.x, Gx + g in work.row2. */
void conic_measure(qd_cone_workspace *workspace, const conic_program *source,
                   const conic_answer *at, qd_cone_info *info);
/* A point and its multipliers, in the caller's numbers. */
typedef struct cone_point {
  const double *x, *slack, *dual, *dual_eq;
} cone_point;
/* 1 if what conic_measure has left is a solution's. */
int conic_is_certified(qd_cone_workspace *workspace, const conic_program *source, double tolerance,
                       const cone_point *at, const qd_cone_info *info);
/* 1 if the multipliers, a ray, prove that no point satisfies the constraints: those that have no
 * part in the proof are zero then, as are those that rows which give way cannot carry. */
int conic_excludes(qd_cone_workspace *workspace, const conic_program *source,
                   const conic_answer *out);
/* Projects z = dual - r slack on the cones, r = split; returns the largest |dual - projected| / r.
 * Leaves each cone's state and the operators of the Newton step. */
double conic_project(qd_cone_workspace *workspace, const double *slack, const double *dual,
                     double *z, double *projected);
/* The states that polished show. */
void conic_read_states(qd_cone_workspace *workspace);
/* Square root of the penalty of one cone's hard rows. */
LANES_INLINE double conic_hard_root(const qd_cone_workspace *workspace, int cone) {
  const double compliance = workspace->program.compliance[cone];
  return sqrt(workspace->active.hard_penalty / (compliance > 0.0 ? compliance : 1.0));
}

/* One cone's operators R, R R and the projector on held directions, by their values along (1, u),
 * (1, -u) and across. */
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

/* Stiffness of each cone's certified state; 1 if any direction is hard. Weak and padded cones:
 * zero. */
int conic_set_active_rows(qd_cone_workspace *workspace, const double *dual, const double *slack);
/* 1 if the cost bends along every x, whatever the active set: forces at their ends do not. */
static inline int conic_set_is_definite(const qd_cone_workspace *workspace) {
  return workspace->program.definite && !(workspace->program.exact && workspace->ends.count > 0);
}
/* 1 if some cone's state is weak. */
int conic_any_weak(const qd_cone_workspace *workspace);
/* 1 if some cone touches in `polished` and carries nothing: its state is open to doubt. */
int conic_any_idle(const qd_cone_workspace *workspace);
/* 1 if nothing says that cones which touch in `polished` could share their load in another way:
 * none of them is idle, and they have no more rows than there are unknowns to tell them apart. What
 * may be weak about them is that they hardly slide. */
int conic_shares_are_known(const qd_cone_workspace *workspace);
/* Equality rows: hard. */
void conic_set_equalities(qd_cone_workspace *workspace);

/* 1 once the caller has asked for the end: no method goes on. */
static inline int conic_is_stopped(qd_cone_workspace *workspace) {
  conic_stop *stop = &workspace->stop;
  return stop->ask && (stop->stopped || (stop->stopped = stop->ask(stop->context)) != 0);
}

#endif
