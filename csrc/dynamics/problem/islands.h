/* Contact islands: kinematic trees connected by contacts and bilateral constraints, through DOFs
 * that are free to move. The programs of islands are independent, so a step is one small cone
 * program per island. Variables, contacts and constraints are sorted by island, and keep their
 * order within it; variables of large islands have the order of `tree_order.h`. Islands are
 * numbered by their first free DOF, so the numbers do not depend on the order of contacts. */
#ifndef QD_DYNAMICS_ISLANDS_H
#define QD_DYNAMICS_ISLANDS_H

#include "dynamics/problem/pressure_contact.h"
#include "dynamics/problem/tile_rows.h"
#include "dynamics/problem/tree_order.h"
#include "dynamics/working_set.h"

#include "mechanics/constraint.h"
#include "mechanics/pairs/collision.h"
#include "numerics/coulomb/fixed_point.h"

#define BALL_ROWS 4 /* of the limit of a ball joint */

typedef struct island {
  int variable, variable_count;     /* into the problem's variables, padding included */
  int in_blocks;                    /* 1: in blocks of trees, each of which begins at a new tile */
  int tree, tree_count;             /* into islands.tree_order */
  int tile;                         /* the first tile of its columns */
  int contact, contact_count;       /* into islands.contact_order */
  int contact_cones;                /* upper bound */
  int constraint, constraint_count; /* into islands.constraint_order */
  int tendon, tendon_count;         /* into islands.tendon_order */
  int row, row_count;               /* into the problem's rows; limits come after contacts */
  int cone, cone_count;
  int limit, limit_count;
  int ball_limit, ball_limit_count; /* into the problem's limits of ball joints */
  int turn_row, turn_row_count;     /* into the problem's rows of rotations */
  int tendon_row, tendon_row_count; /* into the problem's rows of tendons */
  int force_row, force_row_count;   /* into the problem's rows of limited forces */
  int equality, equality_count;
  int soft_pairs, pressure_elements; /* pairs with pressure fields, and their friction discs */
  int compliant, intervals;          /* compliant rows (equalities included), and interval rows */
  size_t Q_tiles, G_tiles, C_tiles;  /* upper bounds, summed over rows */
  tile_rows Q, G, C;                 /* over the island's own variables */
  conic_size size;                   /* upper bounds of its program's sizes */
  int bound_count;                   /* number of rows that bound the motion, after the others */
  int softened;                      /* 1: its program was infeasible, and was softened */
  int gave;                          /* 1: rows are violated by more than the tolerance */
  double load;                       /* of its patches, N */
  double length;                     /* size of the smallest body in contact, m */
  qd_cone_workspace *cone_workspace;
  qd_cone_info info;
  int exact;               /* 1: for derivatives, its solution is differentiable and factored */
  fixed_point fixed_point; /* under Coulomb's law, with the report */
  fixed_point_report report;
} island;

typedef struct islands {
  int count;
  island *island; /* (tree_count) */
  int *parent;    /* (tree_count) union-find; then the tree's island, -1: all of the tree is held */
  int *contact_order;         /* (contacts) sorted by island */
  int *constraint_order;      /* (constraints) likewise */
  int *tendon_order;          /* (tendons) likewise */
  int *of_contact;            /* (contacts) -1: not in the working set, or no free DOF moves it */
  int *of_constraint;         /* (constraints) likewise */
  int *of_tendon;             /* (tendons) likewise; -1 also if it exerts no force */
  int *tree_order;            /* (tree_count) order of all trees, which numbers the variables */
  int *tree_seen, *tree_list; /* (tree_count) scratch */
  uint8_t *tree_opens; /* (tree_count) in tree_order, for islands in blocks. 1: a block begins */
  int *tree_place, *tree_width; /* (tree_count) scratch */
  tree_graph graph;             /* scratch */
} islands;

/* Largest number of variables of all islands: DOFs, and padding before each block. */
static inline size_t islands_variable_capacity(const qd_model *model) {
  return (size_t)model->nv + (model->nv < LARGE_PROGRAM ? 0 : 3 * (size_t)model->tree.count);
}

void islands_lay_out(islands *s, const qd_model *model, int contact_capacity, arena *a);
/* Number of entries of tendon_order, over all islands. */
static inline int islands_tendon_count(const islands *s) {
  const island *last = s->island + s->count - 1;
  return s->count > 0 ? last->tendon + last->tendon_count : 0;
}

/* Upper bound of the rows of a tendon; *compliant and *intervals: how many of them are compliant
 * rows and interval rows (NULL: not requested). */
int tendon_row_bound(const qd_model *model, const qd_step_options *options, int tendon,
                     int *compliant, int *intervals);
/* Compliance of a contact along its normal, m/N: that of the pair, or of the options. */
double contact_compliance(const qd_model *model, const qd_step_options *options, int pair);
/* Compliance of one row of a bilateral constraint, m/N or rad/Nm. */
double constraint_row_compliance(const qd_model *model, const qd_step_options *options,
                                 int constraint, int component);
/* Finds the islands for the contacts of the working set, upper bounds of their numbers of
 * variables, contacts, constraints and rows, and the order of the trees. */
void islands_find(islands *s, const qd_model *model, const qd_step_options *options,
                  const collision *c, const working_set *set, const pressure_contact *soft);
/* dofs (nv) = DOFs on which the island's program depends, in ascending order of trees: all of its
 * own trees, and of held trees in contact with it. variable_dof: DOF of each variable. Returns
 * their number. */
int islands_dofs(islands *s, const qd_model *model, const collision *c, int index,
                 const int *variable_dof, int *dofs);

#endif
