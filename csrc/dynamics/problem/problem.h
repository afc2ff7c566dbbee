/* The quasi-dynamic step as cone programs, one for each island (formulation 2; CQDC section III):
 *   minimise 1/2 d'Qd + b'd  subject to  contacts and joint limits. */
#ifndef QD_DYNAMICS_PROBLEM_H
#define QD_DYNAMICS_PROBLEM_H

#include "dynamics/problem/friction.h"
#include "dynamics/problem/islands.h"
#include "dynamics/problem/pressure_contact.h"
#include "dynamics/problem/yield.h"
#include "mechanics/actuator.h"
#include "mechanics/constraint.h"
#include "mechanics/motion.h"
#include "mechanics/pairs/collision.h"
#include "mechanics/tendon.h"

/* Relative to the smallest body's size, or rad: how far constraints from a file may contradict each
 * other. Implied rows may deviate by this much, and an infeasible program may violate rows by it;
 * rows whose response is below this share of the largest one set no scale (recovery.c). Larger:
 * real contradictions pass; smaller: loops that have moved in long steps have no solution. */
#define FILE_ROUNDING 1e-4

/* Relative to the smallest body's size: the gap that a barrier keeps between bodies that penetrate
 * or rows that contradict each other. */
#define NEAR_LENGTH 1e-3

/* Relative to the largest force or multiplier: smaller ones count as zero. */
#define NO_FORCE 1e-7

/* Where a contact is in the program. Rows: [row, row + rows.count); none if the contact was dropped
 * because no free DOF moves it, or because it never parts. */
typedef enum offset_kind {
  OFFSET_GAP = 0, /* the distance */
  OFFSET_BOUNCE,  /* h times restitution times the normal velocity */
  OFFSET_CAPPED,  /* the part of the penetration that a step may undo */
  OFFSET_HELD,    /* how much deeper a soft pair in contact may go */
  OFFSET_YIELD    /* of MuJoCo's contacts (yield.h) */
} offset_kind;

typedef struct contact_block {
  int row;
  offset_kind offset; /* not used by relaxed contacts */
  double in_time[2];  /* s: the relative velocity under v is multiplied by this and added to the
                         offsets; of its normal component and of the others */
  friction_rows rows;
  double held_force;   /* the barrier's normal force if all rows vanish, which are then left out */
  double compliance;   /* m/N of its first row, along the normal; 0: rigid */
  double weight_share; /* factor of its inverse weight (metric_share.h) */
} contact_block;

/* Screws of four successive variables of an island; zero after the last variable. */
typedef struct column_tile {
  double w[3][4], v[3][4];
} column_tile;

/* The columns of the islands, for contacts. */
typedef struct column_table {
  column_tile *tile; /* sorted by island */
  int *body_start;   /* (nb + 1) into the next two arrays */
  int *body_tiles;   /* tiles of the island that move a body, ascending */
  double *body_mask; /* four per entry: 1 for variables that move the body, else 0 */
} column_table;

/* One row of a bilateral constraint. Rows that no free DOF moves are left out. */
typedef struct equality_row {
  int constraint;
  int component;
  double weight; /* inverse weight by MuJoCo's law; 0: another law */
  int shares;    /* 1: its weight is multiplied by a share (metric_share.h) */
} equality_row;

/* Motion under v that the rows of a connect or a weld need for MuJoCo's law. */
typedef struct constraint_law {
  double speed[CONSTRAINT_ROWS_MAX]; /* C v */
  double drift[CONSTRAINT_ROWS_MAX]; /* (dC/dt) v */
  double turning[3];                 /* of the solution: the multipliers of a weld's rotation */
} constraint_law;

/* Derivative of row r of a connect or a weld: d row = d (C x) + spring dc + along (-c.dc / |c|) +
 * drift d ((dC/dt) v), with the motion x = delta + in_time v, plus by_h dh. */
typedef struct anchor_change {
  double in_time, spring, along, drift, by_h;
} anchor_change;

/* Derivatives of a row of a coupling by its violation, by C v, and by h. */
typedef struct coupling_change {
  double by_violation, in_time, by_h;
} coupling_change;

/* A joint limit: one row, sign (q - bound) + sign d >= 0. */
typedef struct limit_row {
  int dof;
  int row;
  int capped; /* 1: its offset is the part that a step may undo */
  double sign;
  double beyond; /* MuJoCo's law: position beyond the margin, < 0 */
  double weight; /* MuJoCo's law: inverse weight; 0: rigid */
} limit_row;

/* The limit of a ball joint: |turn + inverse d| <= most, a Lorentz cone of four rows, of which the
 * first is constant. */
typedef struct ball_limit {
  int joint;
  int dof; /* the first of the joint's three */
  int row;
  int capped;        /* 1: most includes only the part that a step may undo */
  double turn[3];    /* rotation vector of q */
  double inverse[9]; /* inverse of the left Jacobian there, derivative of turn by d */
} ball_limit;

/* A row along an axis of the three rotations of a ball or free joint, by MuJoCo's law: the limit of
 * a ball joint, whose angle grows along minus the axis, or dry friction about an axis of the body.
 */
typedef struct turn_row {
  int joint;
  int dof; /* the first of the joint's three rotations */
  int row;
  int is_limit;
  double axis[3];
  double slope[9]; /* derivative of the axis by the three rotations */
  double beyond;   /* position of a limit beyond its margin, < 0 */
  double weight;   /* its inverse weight */
  int shares;      /* 1: its weight is multiplied by a share (metric_share.h) */
} turn_row;

#define TURN_ROWS_MAX 4 /* of one joint */

/* Derivatives of such a row at fixed delta by the three rotations, by their rates and by h, and of
 * its generalised force at fixed multiplier by the three rotations (3, 3). */
typedef struct turn_change {
  double by_q[3], by_v[3], by_h, force[9];
} turn_change;

typedef enum tendon_row_kind {
  TENDON_LIMIT,    /* sign (length - bound) + sign rate.d >= 0 */
  TENDON_SPRING,   /* the same, compliant: its force is that of a spring beyond the bound */
  TENDON_REST,     /* length - bound + rate.d = 0, compliant: a spring in both directions */
  TENDON_DAMPER,   /* rate.d = 0, compliant: by h times the force over the damping */
  TENDON_FRICTION, /* rate.d = 0, with a limited force */
  TENDON_ACTUATOR, /* rate.d - F0 / K = 0, compliant, with a limited force: an actuator */
  TENDON_FORCE     /* rate.d = 0, with a given force: an actuator without stiffness, or springs and
                      dampers that act early */
} tendon_row_kind;

/* A row along a tendon. The force is sign times its multiplier. */
typedef struct tendon_row {
  int tendon;
  int row;
  int kind; /* a tendon_row_kind */
  double sign;
  int capped;    /* 1: its offset is the part that a step may undo */
  int actuator;  /* of the last two kinds; -1: spring and damper of the tendon */
  double beyond; /* MuJoCo's law: position of a limit beyond its margin, < 0 */
  double weight; /* MuJoCo's law: inverse weight; 0: another law */
  int shares;    /* 1: its weight is multiplied by a share (metric_share.h) */
} tendon_row;

#define TENDON_ROWS_MAX 6 /* of one tendon, without those of its actuators */

/* A row d = 0, or d - F0 / (K - m) = 0 of an actuator, whose multiplier is a limited force. The
 * term m d is in the cost if the joint resists (RECOVER_RESIST), else m = 0. */
typedef struct force_row {
  int dof;
  int actuator; /* -1: dry friction */
  int row;
  double stiffness;    /* K - m, 0 for dry friction */
  double resistance;   /* m */
  double by_stiffness; /* derivative of m by K; 0: m comes from the inertia, epsilon I / h^2 */
  double weight;       /* dry friction by MuJoCo's law: inverse weight; 0: rigid */
} force_row;

/* Largest number of constraint rows of one island that are searched for implied rows; the search
 * costs n^2 products of n rows. */
#define IMPLIED_ROWS 48

/* Work of all programs of a step, including failed ones. */
typedef struct effort {
  int iterations, factorizations, tries;
} effort;

static inline void effort_add(effort *sum, const qd_cone_info *one) {
  sum->iterations += one->iterations;
  sum->factorizations += one->factorizations;
  sum->tries += one->tries;
}

/* How programs differ from the original step, after an attempt without a solution. */
enum {
  RECOVER_ROUND = 1,   /* equalities may be violated by rounding errors of files */
  RECOVER_RELAX = 2,   /* shallow penetrations may not deepen, but are not resolved */
  RECOVER_NOTHING = 4, /* rows of a program that no method solved may be violated slightly */
  RECOVER_SOFTEN = 8,  /* infeasible islands are softened */
  RECOVER_RESIST = 16, /* joints resist in islands with unbounded motion (force_rows.c) */
  RECOVER_GIVES = RECOVER_ROUND | RECOVER_NOTHING | RECOVER_SOFTEN
};

/* Sizes of the program, over all islands. */
typedef struct problem_counts {
  int rows, cones, limits, equalities;
  int tendon_rows, force_rows, ball_limits, turn_rows, friction_rows;
} problem_counts;

/* Velocities and bias forces of the second-order step. */
typedef struct problem_state {
  double *v;            /* (nv) velocity; with the following, for the second-order step */
  twist_field velocity; /* twists of the bodies under v */
  double *coasting;     /* (nv) v; in coasting trees (coasting.h) the velocity after h */
  double *stirred;      /* (nv) v; in coasting trees 0: the velocity of the bias forces */
  double *rate;         /* (nv) acceleration, -coasting / h */
  body_motion drift;    /* under v with constant rates: for connects and welds by MuJoCo's law */
  body_motion motion_in_time; /* under stirred and rate */
  double *inertial;           /* (nv) force required by these */
} problem_state;

/* Forces and masses that do not depend on contacts. */
typedef struct problem_loads {
  double *epsilon;             /* (nv) mass factor of each DOF's tree */
  double *gravity;             /* (nv) generalised force of gravity */
  double *applied;             /* (nv) generalised force of tau and the wrenches */
  int *tree_first, *tree_last; /* (tree.count) first and last column that the mass matrix couples */
  int are_known;               /* 1: inertia, gravity, applied and epsilon belong to this step */
  double *bounce_share;        /* (tree.count) factors of the coefficients of restitution */
} problem_loads;

/* Data of the cone program. */
typedef struct problem_data {
  double *b;          /* (n) */
  double *spring;     /* (n) springs and dampers on the diagonal of Q, for the second-order step */
  double *row_metric; /* (n) the same of springs and dampers that have rows (metric_share.h) */
  double *g;          /* (count.rows) */
  double *compliance; /* (count.rows) of compliant rows, else 0 */
  double *lower, *upper;       /* (count.rows) of intervals */
  double *by_lower, *by_upper; /* (count.rows) motion of forces with the limits, for derivatives */
  int *cone_kind, *cone_dim;   /* (count.cones) */
  double *target_mu;           /* (count.cones) */
  double *c;                   /* (count.equalities) */
  double *compliance_eq;       /* (count.equalities) */
  double rays[2 * QD_RAYS_MAX];
} problem_data;

/* Solution of the program. */
typedef struct problem_solution {
  double *x, *slack, *dual; /* solution */
  double *dual_eq;          /* (count.equalities) */
  double *constraint_force; /* (constraint.count, 6) */
  double *tendon_force;     /* (tendon.count) */
} problem_solution;

/* Compliance and violation of each row of softened programs (recovery.c), and what held before. */
typedef struct problem_softened {
  double *compliance, *give, *held;          /* (count.rows) */
  double *compliance_eq, *give_eq, *held_eq; /* (count.equalities) */
} problem_softened;

/* Memory for values that are used within one function, or file. */
typedef struct problem_scratch {
  double *variables;        /* (n) */
  double *four_w;           /* (count.rows, 4) of differentiate.c */
  double *saved_rows;       /* (3, count.rows) of sides.c, like the next one */
  double *saved_equalities; /* (2, count.equalities) */
  double *basis;            /* (IMPLIED_ROWS + 3, n + 8) of redundant_rows.c */
  double *sign;             /* (tiles, 4) +1 moves B of a contact, -1 moves A, 0 both or none */
  double *motion;           /* (tiles, MOTION_MAX, 4) relative motion at one contact */
  tile_list list;           /* tiles of one contact or constraint */
  int *tile_place;          /* (tiles) position of a tile in the list */
} problem_scratch;

/* The present attempt of the step. */
typedef struct problem_attempt {
  int coulomb; /* 1: contacts obey Coulomb's law */
  int hurried; /* 1: more contacts may be added, so only methods that are usually fast are tried */
  unsigned recovery; /* RECOVER_... of the present attempt */
  int proven;        /* a DOF of an island that is infeasible, also with more rows; -1: none */
  int failed_island; /* the island that ended the last solve; -1: none */
} problem_attempt;

/* Numbers of contacts that the step tells. */
typedef struct problem_report {
  int relaxed;         /* relaxed contacts (RECOVER_RELAX, or no motion within the linearisation
                          opens them) */
  int bounces, capped; /* contacts that bounce; contacts, limits and constraints that
                          are capped */
  int deep;            /* deep penetrations that the step undoes at once */
  int timed;           /* rows, or contacts, whose offset depends on v */
} problem_report;

typedef struct problem {
  /* the step that it belongs to (workspace_begin) */
  const qd_model *model;
  const qd_step_options *options;
  const qd_step_input *input;
  const kinematics *kinematics;
  const collision *collision;
  const working_set *set;
  int n; /* over all islands */
  islands islands;
  int *variable_of_dof;         /* (nv) -1: held */
  int *dof_of_variable;         /* (n) -1: padding before a block (tree_order.h) */
  friction_row *friction_row;   /* (count.rows) rows of contacts */
  constraint_state *constraint; /* (constraint.count) */
  equality_row *equality;       /* (count.equalities) */
  constraint_law *law;          /* (constraint.count) */
  contact_block *block;         /* (contacts) */
  limit_row *limit;             /* (2 nv) */
  ball_limit *ball_limit;       /* (joint.count) */
  turn_row *turn_row;           /* (TURN_ROWS_MAX joint.count) */
  tendons tendons;
  tendon_row *tendon_row;       /* (TENDON_ROWS_MAX tendon.count + nu) */
  force_row *force_row;         /* (bounded_forces) */
  const unsigned char *bounded; /* (nu) 1: limits in the program (working_set.h) */
  int *row_of_actuator;         /* (nu) into force_row, or tendon_row; -1: no row */
  column_table columns;
  pressure_contact soft;
  effort effort; /* of the step so far, over all attempts, rounds and islands */
  problem_counts count;
  problem_state state;
  problem_loads loads;
  problem_data program;
  problem_solution solution;
  problem_softened softened;
  problem_scratch scratch;
  problem_attempt attempt;
  problem_report report;
} problem;

/* 1 if the program contains the mass of a DOF. */
static inline int dof_has_mass(const qd_model *model, const qd_step_options *o, int dof) {
  return o->dynamic || !model->dof.is_driven[dof];
}

/* 1 if a DOF is one of the three rotations of a ball or free joint. */
static inline int dof_turns(const qd_model *model, int dof) {
  const int joint = model->dof.joint[dof], type = model->joint.type[joint];
  return type == QD_BALL || (type == QD_FREE && dof - model->joint.v[joint] >= 3);
}

/* A command; MuJoCo's law clamps it to its range. */
static inline double actuator_command(const qd_model *model, const qd_step_options *o,
                                      const qd_step_input *input, int actuator) {
  const double *range = model->actuator.range + 2 * actuator, u = input->u[actuator];
  return !contacts_yield_in_time(o) ? u : u < range[0] ? range[0] : u > range[1] ? range[1] : u;
}

/* rate.d of a tendon */
static inline double tendon_displacement(const problem *p, int tendon, const double *delta) {
  double sum = 0.0;
  for (int d = p->model->tendon.dof_start[tendon]; d < p->model->tendon.dof_start[tendon + 1];
       ++d) {
    sum += p->tendons.rate[d] * delta[p->model->tendon.dof[d]];
  }
  return sum;
}

/* Speed of an actuator's coordinate under v. */
static inline double actuator_speed(const problem *p, int actuator) {
  const int tendon = p->model->actuator.tendon[actuator];
  return tendon >= 0 ? tendon_displacement(p, tendon, p->state.v)
                     : p->state.v[p->model->actuator.dof[actuator]];
}

static inline actuator_point actuator_point_at(const problem *p, int actuator) {
  const int tendon = p->model->actuator.tendon[actuator],
            early = springs_act_early(p->model, p->options);
  return (actuator_point){
      .l = tendon >= 0 ? p->tendons.length[tendon]
                       : p->input->q[p->model->dof.q[p->model->actuator.dof[actuator]]],
      .u = actuator_command(p->model, p->options, p->input, actuator),
      .rate = early ? 0.0 : damping_rate(p->options),
      .speed = early ? actuator_speed(p, actuator) : 0.0,
      .early = early,
  };
}

/* force_rows.c: 1 if MuJoCo's law clamps the actuator's force at the beginning of the step, so its
 * limits have no row; that force, and its derivatives. */
int problem_clamps_force(const qd_model *model, const qd_step_options *o, int actuator);
clamped_force problem_clamped_force(const problem *p, int actuator);
actuator_slopes problem_clamped_slopes(const problem *p, int actuator, double d);

/* limit_rows.c, force_rows.c: derivatives of the row of a limit, or of dry friction, by q, by v and
 * by h under its force. */
void problem_limit_change(double change[3], const problem *p, const limit_row *limit);
void problem_friction_change(double change[3], const problem *p, const force_row *row);

/* turn_rows.c */
void problem_turn_change(turn_change *change, const problem *p, const turn_row *row,
                         const double *delta);

/* tendon_rows.c: the same by the tendon's length, by rate.v and by h, for limits and dry friction.
 */
void problem_tendon_change(double change[3], const problem *p, const tendon_row *row);

/* equality_laws.c: the same for equality `row` of a connect or a weld, by MuJoCo's law or not; and
 * the length of the constraint's violation over all rows. */
anchor_change problem_anchor_change(const problem *p, int row);
double constraint_length(const constraint_state *s);

/* equality_laws.c: the same for equality `row` of a coupling. */
coupling_change problem_coupling_change(const problem *p, int row);

/* 1 if a tendon's row contains its length, not only its change. */
static inline int tendon_row_has_length(const tendon_row *row) { return row->kind <= TENDON_REST; }

/* 1 if a contact's penetration is so small, relative to its shapes, that linearisation errors may
 * have caused it. */
int problem_is_shallow(const qd_model *model, const qd_contact *contact);

void problem_lay_out(problem *p, const qd_model *model, int contact_capacity, arena *a);
/* Numbers the variables by island: the first stage of an assembly. */
void problem_number_variables(problem *p, const qd_model *model, const uint8_t *held);
/* Arrays whose sizes depend on the islands: rows and matrices. */
void problem_lay_out_program(problem *p, arena *a);

/* Row i of a matrix of the island times a motion of DOFs. */
double problem_row_along(const problem *p, const island *one, const tile_rows *rows, int i,
                         const double *way);
/* contact_rows.c: relative motion under v at a contact, in its frame. */
void problem_contact_speed(double out[MOTION_MAX], const problem *p, const qd_contact *contact);
/* 1 if derivatives depend on a contact. A contact without force on a certified active set stays
 * without force, so its rows do not matter. */
int problem_contact_counts(const problem *p, int index, int exact_active_set);

/* never_parts.c, for a contact without normal motion: 1 if no DOF changes that, as for links that
 * touch face to face across the axis of their joint. Their gap does not depend on the
 * configuration, and a friction cone would hold the joint, because sliding would have to open it.
 */
int contact_never_parts(const qd_model *model, const int *variable_of_dof, const kinematics *k,
                        const collision *c, int index);

void problem_assemble(problem *p, inertia *I);

/* The assembled program of one island, and its matrices. */
typedef struct island_program {
  conic_program program;
  sparse_rows Q, G, C;
} island_program;
void problem_program(const problem *p, const island *one, island_program *out);

/* force_rows.c: 1 if the program has joints that problem_resist can change. */
int problem_may_resist(const problem *p);
/* force_rows.c: joints of an assembled island whose actuators have limits resist motion by their
 * inertia (formulation 2). Returns their number. */
int problem_resist(const problem *p, const island *one);

/* force_rows.c: force (2, nu) of every actuator after a displacement, and 1 where it is at a limit.
 */
void problem_actuator_forces(const problem *p, const double *delta, double *force);

/* An island's part of the solution. */
static inline conic_answer answer_of(const problem *p, const island *one) {
  return (conic_answer){p->solution.x + one->variable, p->solution.slack + one->row,
                        p->solution.dual + one->row, p->solution.dual_eq + one->equality};
}

/* Physical forces of a solution: contact forces into the contacts, generalised limit forces (nv).
 */
void problem_forces(const problem *p, collision *c, double *limit_force);

#endif
