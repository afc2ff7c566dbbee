#include "dynamics/problem/islands.h"

#include <math.h>

#include "dynamics/problem/yield.h"
#include "mechanics/actuator.h"

#define NO_ISLAND (-1)
/* Models with at most this number of DOFs are one program: two tiles of the solver cost less than
 * two solves. */
#define DOFS_TOGETHER 8
/* Largest tree, in DOFs, of an island that is ordered in blocks: larger trees may be sparse inside
 * (a trunk with many limbs), and are ordered by tiles. */
#define BLOCK_TREE_MOST 48

void islands_lay_out(islands *s, const qd_model *model, int contact_capacity, arena *a) {
  const size_t trees = (size_t)model->tree.count, contacts = (size_t)contact_capacity;
  const size_t constraints = (size_t)model->constraint.count;
  s->island = arena_take(a, trees * sizeof(island));
  ARENA_INTS(a, trees, &s->parent, &s->tree_order, &s->tree_place, &s->tree_seen, &s->tree_list,
             &s->tree_width);
  ARENA_INTS(a, contacts, &s->contact_order, &s->of_contact);
  ARENA_INTS(a, constraints, &s->constraint_order, &s->of_constraint);
  ARENA_INTS(a, (size_t)model->tendon.count, &s->tendon_order, &s->of_tendon);
  s->tree_opens = arena_take(a, trees);
  tree_graph_lay_out(&s->graph, model->tree.count, a);
}

/* ---------------------------------------------------------------- connections */

static int root_of(int *parent, int tree) {
  while (parent[tree] != tree) {
    parent[tree] = parent[parent[tree]];
    tree = parent[tree];
  }
  return tree;
}

/* The first free tree that changes a tendon's length; -1: none. */
static int tendon_tree(const islands *s, const qd_model *model, int tendon) {
  for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
    const int tree = model->dof.tree[model->tendon.dof[d]];
    if (model->tendon.dof_counts[d] && s->parent[tree] >= 0) {
      return tree;
    }
  }
  return -1;
}

/* The trees of the two objects of a constraint, -1 for none. */
static void constraint_trees(const islands *s, const qd_model *model, int constraint, int tree[2]) {
  const int *object = model->constraint.object + 2 * constraint;
  for (int side = 0; side < 2; ++side) {
    if (model->constraint.type[constraint] == QD_TENDON_COUPLING) {
      tree[side] = object[side] < 0 ? -1 : tendon_tree(s, model, object[side]);
    } else if (model->constraint.type[constraint] != QD_COUPLING) {
      tree[side] = model->body.tree[object[side]];
    } else {
      tree[side] = object[side] < 0 ? -1 : model->dof.tree[model->joint.v[object[side]]];
    }
  }
}

/* Connects two free trees; returns one that is free, or -1. */
static int connect(islands *s, int a, int b) {
  const int a_moves = a >= 0 && s->parent[a] >= 0, b_moves = b >= 0 && s->parent[b] >= 0;
  if (a_moves && b_moves && a != b) {
    const int root_a = root_of(s->parent, a), root_b = root_of(s->parent, b);
    if (root_a < root_b) {
      s->parent[root_b] = root_a;
    } else {
      s->parent[root_a] = root_b;
    }
  }
  return a_moves ? a : (b_moves ? b : -1);
}

double contact_compliance(const qd_model *model, const qd_step_options *o, int pair) {
  const double own = model->parameters.pair_compliance[pair];
  return own > 0.0 ? own : o->contact_compliance;
}

static int gives_way(const qd_model *model, const qd_step_options *o, int constraint) {
  return contacts_yield_in_time(o) || o->soft_constraints == QD_SOFT_ALL ||
         (o->soft_constraints == QD_SOFT_MOCAP && model->constraint.is_mocap[constraint]);
}

double constraint_row_compliance(const qd_model *model, const qd_step_options *o, int constraint,
                                 int component) {
  return gives_way(model, o, constraint)
             ? model->constraint.compliance[2 * constraint + (component >= 3)]
             : 0.0;
}

int tendon_row_bound(const qd_model *model, const qd_step_options *o, int tendon, int *compliant,
                     int *intervals) {
  const double *range = model->tendon.range + 2 * tendon, *rest = model->tendon.rest + 2 * tendon;
  const int has_spring = model->parameters.tendon_stiffness[tendon] > 0.0;
  const int springs = has_spring ? 1 + (rest[0] < rest[1]) : 0;
  const int friction = model->tendon.friction[tendon] > 0.0;
  const int damper = damping_rate(o) * model->tendon.damping[tendon] > 0.0;
  const int limits = o->joint_limits ? (isfinite(range[0]) != 0) + (isfinite(range[1]) != 0) : 0;
  const int actuators = tendon_actuators(model, tendon).count;
  if (compliant != NULL) {
    *compliant = springs + damper + actuators + (contacts_yield_in_time(o) ? limits + friction : 0);
    *intervals = friction + damper + (springs > 0) + actuators; /* early: one for all springs */
  }
  return limits + springs + damper + friction + actuators;
}

/* Connects the trees of all DOFs that change a tendon's length; returns a free one, or -1. */
static int connect_tendon(islands *s, const qd_model *model, const uint8_t *held, int tendon) {
  int found = -1, moves = 0;
  for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
    const int dof = model->tendon.dof[d];
    if (model->tendon.dof_counts[d]) {
      found = connect(s, found, model->dof.tree[dof]);
      moves |= held == NULL || !held[dof];
    }
  }
  return moves ? found : -1;
}

static void connect_all(islands *s, const qd_model *model) {
  int first = NO_ISLAND;
  for (int tree = 0; tree < model->tree.count; ++tree) {
    first = connect(s, first, s->parent[tree] >= 0 ? tree : NO_ISLAND);
  }
}

/* of_contact and of_constraint first hold a tree each, and its island after numbering. */
static void connect_trees(islands *s, const qd_model *model, const qd_step_options *options,
                          const collision *c, const working_set *set) {
  const uint8_t *held = options->held;
  for (int tree = 0; tree < model->tree.count; ++tree) {
    s->parent[tree] = held != NULL ? -1 : tree;
  }
  for (int dof = 0; dof < model->nv && held != NULL; ++dof) {
    if (!held[dof]) {
      s->parent[model->dof.tree[dof]] = model->dof.tree[dof];
    }
  }
  if (model->nv <= DOFS_TOGETHER) {
    connect_all(s, model);
  }
  for (int i = 0; i < c->count; ++i) {
    const qd_contact *contact = c->contact + i;
    s->of_contact[i] =
        working_set_has_contact(set, i)
            ? connect(s, model->body.tree[contact->body_a], model->body.tree[contact->body_b])
            : -1;
  }
  for (int i = 0; i < model->constraint.count; ++i) {
    int tree[2];
    constraint_trees(s, model, i, tree);
    s->of_constraint[i] = connect(s, tree[0], tree[1]);
  }
  for (int i = 0; i < model->tendon.count; ++i) {
    const int counts =
        model->tendon.is_coupled[i] || tendon_row_bound(model, options, i, NULL, NULL) > 0;
    s->of_tendon[i] = counts ? connect_tendon(s, model, options->held, i) : -1;
  }
}

/* ---------------------------------------------------------------- numbering and sizes */

static void number_islands(islands *s, const qd_model *model) {
  s->count = 0;
  for (int tree = 0; tree < model->tree.count; ++tree) { /* a root is the first tree of its set */
    if (s->parent[tree] == tree) {
      island *one = s->island + s->count;
      memset(one, 0, sizeof *one);
      s->tree_seen[tree] = s->count++;
    } else if (s->parent[tree] >= 0) {
      s->tree_seen[tree] = s->tree_seen[root_of(s->parent, tree)];
    } else {
      s->tree_seen[tree] = NO_ISLAND;
    }
  }
  memcpy(s->parent, s->tree_seen, (size_t)model->tree.count * sizeof(int));
}

/* Upper bound of a contact's rows. */
static int contact_row_bound(const qd_model *model, const qd_contact *contact,
                             const qd_step_options *o) {
  if (contact->dim == 1) {
    return 1;
  }
  if (o->friction_model == QD_PYRAMID) {
    return o->ray_count + 2 * (contact->dim > 3 ? contact->dim - 3 : 0);
  }
  const int per_tangent = o->dynamic ? 2 : 4;
  return contact_yields_by_edges(model, o, contact) ? per_tangent * (contact->dim - 1)
                                                    : contact->dim;
}

static int limit_rows(const qd_model *model, int dof) {
  const double *range = model->joint.range + 2 * model->dof.joint[dof];
  return model->dof.q[dof] < 0 ? 0 : (isfinite(range[0]) != 0) + (isfinite(range[1]) != 0);
}

/* A cone over three DOFs, which may lie in two tiles. */
static void count_ball_limits(islands *s, const qd_model *model, const qd_step_options *o) {
  for (int joint = 0; o->joint_limits && joint < model->joint.count; ++joint) {
    const int dof = model->joint.v[joint], index = s->parent[model->dof.tree[dof]];
    if (index >= 0 && joint_ball_range(model, joint) > 0.0) {
      island *one = s->island + index;
      one->size.rows += BALL_ROWS;
      one->size.compliant += contacts_yield_in_time(o);
      one->G_tiles += 2 * BALL_ROWS;
      ++one->ball_limit_count;
    }
  }
}

static int body_tile_bound(const qd_model *model, const islands *s, int index, int body) {
  const int tree = model->body.tree[body];
  return tree < 0 || s->parent[tree] != index ? 0 : model->body.tile_bound[body];
}

/* Bounds a number of tiles by that of the island. */
static size_t in_island(const island *one, int tiles) {
  const int all = (one->variable_count + 3) / 4;
  return (size_t)(tiles < all ? tiles : all);
}

static int constraint_tile_bound(const qd_model *model, const islands *s, int index,
                                 int constraint) {
  const int *object = model->constraint.object + 2 * constraint;
  if (model->constraint.type[constraint] == QD_COUPLING) {
    return 2;
  }
  if (model->constraint.type[constraint] == QD_TENDON_COUPLING) {
    int dofs = 0;
    for (int k = 0; k < 2; ++k) {
      const int tendon = object[k];
      dofs +=
          tendon < 0 ? 0 : model->tendon.dof_start[tendon + 1] - model->tendon.dof_start[tendon];
    }
    return dofs;
  }
  return body_tile_bound(model, s, index, object[0]) + body_tile_bound(model, s, index, object[1]);
}

static void count_variables(islands *s, const qd_model *model, const qd_step_options *o) {
  for (int dof = 0; dof < model->nv; ++dof) {
    if (o->held == NULL || !o->held[dof]) {
      const int limits = o->joint_limits ? limit_rows(model, dof) : 0;
      island *one = s->island + s->parent[model->dof.tree[dof]];
      ++one->variable_count;
      one->size.rows += limits;
      one->size.compliant += contacts_yield_in_time(o) ? limits : 0;
      one->G_tiles += (size_t)limits;
    }
  }
  for (int tree = 0; tree < model->tree.count; ++tree) {
    if (s->parent[tree] >= 0) {
      island *one = s->island + s->parent[tree];
      const int dofs = model->tree.dof_start[tree + 1] - model->tree.dof_start[tree];
      one->Q_tiles += (size_t)dofs * in_island(one, model->tree.tile_bound[tree]);
    }
  }
}

static void count_rows(islands *s, const qd_model *model, const qd_step_options *o,
                       const collision *c) {
  for (int i = 0; i < c->count; ++i) {
    const qd_contact *contact = c->contact + i;
    const int tree = s->of_contact[i], index = tree < 0 ? NO_ISLAND : s->parent[tree];
    s->of_contact[i] = index;
    if (index >= 0) {
      island *one = s->island + index;
      const int rows = contact_row_bound(model, contact, o);
      ++one->contact_count;
      one->contact_cones +=
          contact_yields_by_edges(model, o, contact) && !o->dynamic ? 2 * (contact->dim - 1) : 1;
      one->size.rows += rows;
      one->size.compliant += contact_yields(model, o, contact->pair)
                                 ? rows
                                 : contact_compliance(model, o, contact->pair) > 0.0;
      const int tiles = body_tile_bound(model, s, index, contact->body_a) +
                        body_tile_bound(model, s, index, contact->body_b);
      one->G_tiles += (size_t)rows * in_island(one, tiles);
    }
  }
  for (int i = 0; i < model->constraint.count; ++i) {
    const int tree = s->of_constraint[i], index = tree < 0 ? NO_ISLAND : s->parent[tree];
    s->of_constraint[i] = index;
    if (index >= 0) {
      island *one = s->island + index;
      const int rows = constraint_row_count(model->constraint.type[i]);
      ++one->constraint_count;
      one->size.equalities += rows;
      one->size.compliant += gives_way(model, o, i) ? rows : 0;
      one->C_tiles += (size_t)rows * in_island(one, constraint_tile_bound(model, s, index, i));
    }
  }
}

static void count_tendon_rows(islands *s, const qd_model *model, const qd_step_options *o) {
  for (int i = 0; i < model->tendon.count; ++i) {
    const int tree = s->of_tendon[i], index = tree < 0 ? NO_ISLAND : s->parent[tree];
    s->of_tendon[i] = index;
    if (index >= 0) {
      island *one = s->island + index;
      int compliant, intervals;
      const int rows = tendon_row_bound(model, o, i, &compliant, &intervals);
      const int dofs = model->tendon.dof_start[i + 1] - model->tendon.dof_start[i];
      ++one->tendon_count;
      one->size.rows += rows;
      one->size.compliant += compliant;
      one->size.intervals += intervals;
      one->G_tiles += (size_t)rows * in_island(one, dofs);
    }
  }
}

/* Patches couple all variables of their island. */
static void count_soft_rows(islands *s, const qd_model *model, const pressure_contact *soft) {
  for (int i = 0; i < model->pair.soft_count; ++i) {
    const soft_pair *pair = soft->pair + i;
    const int index = pair->contact >= 0 && pair->is_active ? s->of_contact[pair->contact] : -1;
    if (index < 0) {
      continue;
    }
    island *one = s->island + index;
    const size_t tiles = ((size_t)one->variable_count + 3) / 4;
    one->Q_tiles = (size_t)one->variable_count * tiles;
    one->soft_pairs += 1;
    one->pressure_elements += pair->count;
    for (int e = pair->first; e < pair->first + pair->count; ++e) {
      const int rows = pressure_element_rows(soft->element + e);
      one->size.compliant += soft->element[e].give > 0.0 ? rows : 1;
      one->size.rows += rows;
      one->G_tiles += (size_t)rows * tiles;
    }
  }
}

/* One row for each DOF with dry friction and for each actuator with a limit. */
static void count_force_rows(islands *s, const qd_model *model, const qd_step_options *o) {
  for (int dof = 0; model->bounded_forces > 0 && dof < model->nv; ++dof) {
    const int index = s->parent[model->dof.tree[dof]];
    const int rigid = model->parameters.joint_friction[model->dof.joint[dof]] > 0.0;
    const int_list actuators = dof_actuators(model, dof);
    int rows = rigid;
    for (int k = 0; o->force_limits && k < actuators.count; ++k) {
      rows += actuator_is_bounded(model, actuators.at[k]);
    }
    if (index >= 0) {
      island *one = s->island + index;
      one->size.rows += rows;
      one->size.intervals += rows;
      one->size.compliant += contacts_yield_in_time(o) ? rows : rows - rigid;
      one->G_tiles += (size_t)(rows + rigid); /* rows about axes of bodies may lie in two tiles */
    }
  }
}

/* order = indices sorted by island, without those that have no island. */
static void sort_contacts(islands *s, const collision *c) {
  for (int i = 0; i < c->count; ++i) {
    if (s->of_contact[i] >= 0) {
      island *one = s->island + s->of_contact[i];
      s->contact_order[one->contact + one->contact_count++] = i;
    }
  }
}

static void sort_constraints(islands *s, const qd_model *model) {
  for (int i = 0; i < model->constraint.count; ++i) {
    if (s->of_constraint[i] >= 0) {
      island *one = s->island + s->of_constraint[i];
      s->constraint_order[one->constraint + one->constraint_count++] = i;
    }
  }
}

static void sort_tendons(islands *s, const qd_model *model) {
  for (int i = 0; i < model->tendon.count; ++i) {
    if (s->of_tendon[i] >= 0) {
      island *one = s->island + s->of_tendon[i];
      s->tendon_order[one->tendon + one->tendon_count++] = i;
    }
  }
}

/* ---------------------------------------------------------------- order */

/* Connects two trees of an island in its graph, by their index within the island (tree_seen); -1:
 * none. */
static void connect_in_graph(islands *s, int index, int a, int b) {
  if (a >= 0 && b >= 0 && s->parent[a] == index && s->parent[b] == index) {
    tree_graph_connect(&s->graph, s->tree_seen[a], s->tree_seen[b]);
  }
}

static void connect_tendon_in_graph(islands *s, const qd_model *model, int index, int tendon) {
  const int start = model->tendon.dof_start[tendon], end = model->tendon.dof_start[tendon + 1];
  for (int d = start; d < end; ++d) {
    for (int e = start; e < d; ++e) {
      connect_in_graph(s, index, model->dof.tree[model->tendon.dof[d]],
                       model->dof.tree[model->tendon.dof[e]]);
    }
  }
}

static void fill_graph(islands *s, const qd_model *model, const collision *c, int index) {
  const island *one = s->island + index;
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const qd_contact *contact = c->contact + s->contact_order[i];
    connect_in_graph(s, index, model->body.tree[contact->body_a],
                     model->body.tree[contact->body_b]);
  }
  for (int i = one->constraint; i < one->constraint + one->constraint_count; ++i) {
    int tree[2];
    constraint_trees(s, model, s->constraint_order[i], tree);
    connect_in_graph(s, index, tree[0], tree[1]);
  }
  for (int i = one->tendon; i < one->tendon + one->tendon_count; ++i) {
    connect_tendon_in_graph(s, model, index, s->tendon_order[i]);
  }
}

/* Counts the free DOFs of the trees in tree_list; returns 1 if blocks of whole tiles suit the
 * island. */
static int measure_trees(islands *s, const qd_model *model, const uint8_t *held,
                         const island *one) {
  int suits = one->variable_count >= LARGE_PROGRAM && one->soft_pairs == 0;
  for (int k = 0; k < one->tree_count; ++k) {
    const int tree = s->tree_list[one->tree + k];
    s->tree_width[k] = 0;
    for (int d = model->tree.dof_start[tree]; d < model->tree.dof_start[tree + 1]; ++d) {
      s->tree_width[k] += held == NULL || !held[model->tree.dofs[d]];
    }
    suits &= s->tree_width[k] <= BLOCK_TREE_MOST;
  }
  return suits;
}

/* Padding columns before each block, which fill the previous tile and count as variables. */
static void count_padding(islands *s, island *one) {
  int column = 0;
  for (int k = 0; k < one->tree_count; ++k) { /* sorts the widths by position */
    s->tree_list[one->tree + s->tree_place[k]] = s->tree_width[k];
  }
  for (int at = one->tree; at < one->tree + one->tree_count; ++at) {
    column = (s->tree_opens[at] ? (column + 3) / 4 * 4 : column) + s->tree_list[at];
  }
  one->Q_tiles += (size_t)(column - one->variable_count);
  one->variable_count = one->size.variables = column;
}

static void order_island(islands *s, const qd_model *model, const qd_step_options *o,
                         const collision *c, int index) {
  island *one = s->island + index;
  if (!tree_graph_fits(&s->graph, one->tree_count)) {
    return;
  }
  one->in_blocks = measure_trees(s, model, o->held, one);
  tree_graph_clear(&s->graph, one->tree_count);
  fill_graph(s, model, c, index);
  tree_graph_order(&s->graph, one->tree_count, s->tree_width, s->tree_place,
                   s->tree_opens + one->tree);
  for (int k = 0; k < one->tree_count; ++k) {
    s->tree_order[one->tree + s->tree_place[k]] = s->tree_list[one->tree + k];
  }
  if (one->in_blocks) {
    count_padding(s, one);
  }
}

/* Orders the trees of each island; held trees come last. */
static void order_trees(islands *s, const qd_model *model, const qd_step_options *o,
                        const collision *c) {
  int placed = 0;
  for (int i = 0; i < s->count; ++i) {
    s->island[i].tree_count = 0;
  }
  for (int tree = 0; tree < model->tree.count; ++tree) {
    if (s->parent[tree] >= 0) {
      s->tree_seen[tree] = s->island[s->parent[tree]].tree_count++;
    }
  }
  for (int i = 0; i < s->count; ++i) {
    s->island[i].tree = placed;
    placed += s->island[i].tree_count;
  }
  for (int tree = 0; tree < model->tree.count; ++tree) {
    const int index = s->parent[tree];
    const int at = index >= 0 ? s->island[index].tree + s->tree_seen[tree] : placed++;
    s->tree_list[at] = s->tree_order[at] = tree;
  }
  for (int i = 0; i < s->count; ++i) {
    order_island(s, model, o, c, i);
  }
}

void islands_find(islands *s, const qd_model *model, const qd_step_options *options,
                  const collision *c, const working_set *set, const pressure_contact *soft) {
  connect_trees(s, model, options, c, set);
  number_islands(s, model);
  count_variables(s, model, options);
  count_ball_limits(s, model, options);
  count_rows(s, model, options, c);
  count_tendon_rows(s, model, options);
  count_force_rows(s, model, options);
  count_soft_rows(s, model, soft);
  int variable = 0, tile = 0, contact = 0, constraint = 0, tendon = 0;
  for (int i = 0; i < s->count; ++i) {
    island *one = s->island + i;
    one->contact = contact;
    one->constraint = constraint;
    one->tendon = tendon;
    contact += one->contact_count;
    constraint += one->constraint_count;
    tendon += one->tendon_count;
    one->size.variables = one->variable_count;
    one->size.largest_cone = MOTION_MAX;
    one->size.row_tiles = one->G_tiles + one->C_tiles;
    /* counted again while sorting */
    one->contact_count = one->constraint_count = one->tendon_count = 0;
  }
  sort_contacts(s, c);
  sort_constraints(s, model);
  sort_tendons(s, model);
  order_trees(s, model, options, c);
  for (int i = 0; i < s->count; ++i) {
    island *one = s->island + i;
    one->variable = variable;
    one->tile = tile;
    variable += one->variable_count;
    tile += (one->variable_count + 3) / 4;
  }
  for (int tree = 0; tree < model->tree.count; ++tree) {
    s->tree_seen[tree] = NO_ISLAND;
  }
}

/* ---------------------------------------------------------------- dependencies of an island */

/* Inserts a tree into the ascending list, unless it is there. */
static void see_tree(islands *s, int tree, int index, int *count) {
  if (tree < 0 || s->tree_seen[tree] == index) {
    return;
  }
  s->tree_seen[tree] = index;
  int at = (*count)++;
  for (; at > 0 && s->tree_list[at - 1] > tree; --at) {
    s->tree_list[at] = s->tree_list[at - 1];
  }
  s->tree_list[at] = tree;
}

int islands_dofs(islands *s, const qd_model *model, const collision *c, int index,
                 const int *variable_dof, int *dofs) {
  const island *one = s->island + index;
  int trees = 0, count = 0;
  for (int i = one->variable; i < one->variable + one->variable_count; ++i) {
    if (variable_dof[i] >= 0) {
      see_tree(s, model->dof.tree[variable_dof[i]], index, &trees);
    }
  }
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const qd_contact *contact = c->contact + s->contact_order[i];
    see_tree(s, model->body.tree[contact->body_a], index, &trees);
    see_tree(s, model->body.tree[contact->body_b], index, &trees);
  }
  for (int i = one->constraint; i < one->constraint + one->constraint_count; ++i) {
    int tree[2];
    constraint_trees(s, model, s->constraint_order[i], tree);
    see_tree(s, tree[0], index, &trees);
    see_tree(s, tree[1], index, &trees);
  }
  for (int i = one->tendon; i < one->tendon + one->tendon_count; ++i) {
    const int tendon = s->tendon_order[i];
    for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
      see_tree(s, model->dof.tree[model->tendon.dof[d]], index, &trees);
    }
  }
  for (int i = 0; i < trees; ++i) {
    const int tree = s->tree_list[i];
    for (int k = model->tree.dof_start[tree]; k < model->tree.dof_start[tree + 1]; ++k) {
      dofs[count++] = model->tree.dofs[k];
    }
    s->tree_seen[tree] = NO_ISLAND; /* reset */
  }
  return count;
}
