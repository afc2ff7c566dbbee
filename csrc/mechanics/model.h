/* The immutable model: topology, index tables, and one block of parameters. */
#ifndef QD_MECHANICS_MODEL_H
#define QD_MECHANICS_MODEL_H

#include "base/arena.h"
#include "base/vec3.h"
#include "geometry/clouds/cloud.h"
#include "geometry/height_fields/height_field.h"
#include "geometry/meshes/mesh.h"
#include "geometry/pressure_fields/field.h"
#include "mechanics/pairs/pair_table.h"
#include "qdsim.h"

/* The numbers that may differ between two models of one topology: all doubles, in one contiguous
 * block. */
typedef struct model_parameters {
  double *gravity;              /* (3) */
  double *body_mass;            /* (nb) */
  double *body_com;             /* (nb, 3) */
  double *body_inertia;         /* (nb, 3, 3) */
  double *joint_stiffness;      /* (joint_count) */
  double *joint_springref;      /* (joint_count) */
  double *joint_damping;        /* (joint_count) */
  double *joint_armature;       /* (joint_count) */
  double *joint_friction;       /* (joint_count) */
  double *actuator_stiffness;   /* (nu) */
  double *actuator_gain;        /* (nu) */
  double *actuator_bias;        /* (nu) */
  double *actuator_damping;     /* (nu) */
  double *actuator_force_range; /* (nu, 2) */
  double *geom_size;            /* (geom_count, 3) */
  double *geom_modulus;         /* (geom_count) Pa */
  double *pair_friction;        /* (pair_count, 5) */
  double *pair_compliance;      /* (pair_count) */
  double *tendon_stiffness;     /* (tendon_count) */
} model_parameters;

/* DOF j "moves" DOF k if it rotates or translates k's axis: j is on k's path to the world, before
 * k's block. A block is a set of DOFs whose axes do not move each other: the three of a ball joint,
 * the three rotations of a free joint; every other DOF is its own block. */
struct qd_model {
  int nq, nv, nu;
  int body_count, joint_count, geom_count, pair_count, tree_count, mesh_count;
  int cloud_count, hfield_count;
  int probed_pair_count; /* pairs with a cloud or a height field, see missed_pairs.h */
  int field_count, soft_pair_count;
  int constraint_count;
  int constraint_row_count; /* rows of all bilateral constraints */
  int tendon_count, tendon_point_total, tendon_dof_total, tendon_wrap_count;
  int mocap_count;
  int compensates;         /* 1: some body has gravity compensation */
  int planar;              /* 1: all joints move in one plane */
  double planar_normal[3]; /* its unit normal, world */
  int contact_capacity;    /* default room of a workspace */

  int *body_parent;      /* (nb) */
  int *body_joint_start; /* (nb + 1) joints of body b: [start[b], start[b + 1]) */
  int *chain_start;      /* (nb + 1) */
  int *chain;            /* DOFs on the path world -> body b, ascending */
  double *body_pos;      /* (nb, 3) in the parent's frame */
  double *body_quat;     /* (nb, 4) */
  double *body_fall;     /* (nb) share of gravity that acts on it */
  int *body_mocap;       /* (nb) index among the mocap bodies, -1: none */
  int *mocap_body;       /* (mocap_count) */

  int *joint_type, *joint_body, *joint_q, *joint_v; /* (joint_count) */
  double *joint_pos, *joint_axis;                   /* (joint_count, 3) */
  double *joint_ref;                                /* (joint_count) */
  double *joint_range;                              /* (joint_count, 2) */

  int *dof_joint, *dof_body; /* (nv) */
  int *dof_block_start;      /* (nv) first DOF of the block */
  int *dof_block_last;       /* (nv) last DOF of the block */
  int *dof_is_driven;        /* (nv) 1: the spring of an actuator holds it */
  int *dof_is_limited;       /* (nv) 1: it is driven, and all its springs have force limits */
  int *dof_actuator_start;   /* (nv + 1) into dof_actuators */
  int *dof_actuators;        /* (nu) ascending for each DOF */
  int *dof_tree;             /* (nv) kinematic tree */
  int *body_tree;            /* (nb) the tree that moves the body; -1: none */
  int *tree_dof_start;       /* (tree_count + 1) into tree_dofs */
  int *tree_dofs;            /* (nv) DOFs tree by tree, ascending */
  int *body_tile_bound; /* (nb) largest number of tiles of four variables that contain the DOFs of
                           its path */
  int *tree_tile_bound; /* (tree_count) likewise all DOFs of a tree */
  int *tree_is_driven;  /* (tree_count) 1: every DOF is driven */
  int *dof_q;           /* (nv) index in q of a scalar joint, -1 otherwise */
  double *default_q;    /* (nq) normalised */
  double *tree_inertia; /* (tree_count) largest mass diagonal of DOFs not driven, at default q */
  int pairs_give;       /* 1: some pair has a compliance */
  int actuators_are_springs; /* 1: no gain, bias or damping anywhere */
  int integration;           /* a qd_integration */
  int bounded_forces;        /* DOFs with dry friction, and actuators with a limit */
  double smallest_stiffness; /* of the actuators' springs; 0 without any */
  double smallest_size;      /* smallest geom_radius; without a geometry the longest arm; 0: none */

  int *actuator_dof;           /* (nu) -1: it pulls along a tendon */
  int *actuator_tendon;        /* (nu) -1: it pulls at a DOF */
  int *tendon_actuator_start;  /* (tendon_count + 1) into tendon_actuators */
  int *tendon_actuators;       /* (nu) ascending for each tendon */
  int *actuator_is_spring;     /* (nu) 1: made with a stiffness > 0 */
  double *actuator_gear;       /* (nu) */
  double *actuator_gain_slope; /* (nu, 2) */
  double *actuator_range;      /* (nu, 2) of u */
  double *actuator_own_range;  /* (nu, 2) lower > upper: actuator_force_range */
  double *actuator_inertia; /* (nu) mass diagonal of a limited DOF at default q, divided among its
                               springs; 0 for other actuators */

  int *geom_type, *geom_body; /* (geom_count) */
  int *geom_mesh;             /* (geom_count) -1: none */
  int *geom_cloud;            /* (geom_count) -1: none */
  int *geom_hfield;           /* (geom_count) -1: none */
  double *geom_pos;           /* (geom_count, 3) body frame; the centre of meshes and clouds */
  double *geom_rot;           /* (geom_count, 9) */
  double *geom_radius;        /* (geom_count) of the bounding sphere, infinite for planes */
  double *geom_arm; /* (geom_count) distance from its centre to the last joint that rotates its body
                       (without one: to the body's origin) */
  double *joint_arm; /* (joint_count) distance from a joint that rotates its body to the previous
                        one of the same body; 0: none */
  double *joint_limit_solver;    /* (joint_count, 9) of MuJoCo's rows: K, B, kind, solimp, margin */
  double *joint_friction_solver; /* (joint_count, 8) */
  double *dof_invweight;         /* (nv) MuJoCo's inverse weight of a DOF, 1/kg or 1/(kg m^2) */
  double *body_turn_invweight;   /* (nb) of rotations (body_invweight0), 1/(kg m^2) */
  double *body_invweight;    /* (nb) MuJoCo's inverse weight at the reference configuration, 1/kg */
  double *body_least_weight; /* (nb, 2) of a force and a torque on it, in rows */
  double *body_arm; /* (nb) distance from the first joint that rotates it (or the origin) to the
                       last one that rotates its parent (or its origin) */

  convex_mesh **mesh;    /* (mesh_count) a block each */
  point_cloud **cloud;   /* (cloud_count) likewise */
  height_field **hfield; /* (hfield_count) likewise */
  qd_field **field;      /* (field_count) likewise; pressures relative to the modulus */

  int *geom_field;          /* (geom_count) -1: none */
  double *geom_field_pos;   /* (geom_count, 3) of the field's frame in the body's; axes: geom_rot */
  double *geom_dissipation; /* (geom_count) s/m */
  int *pair_soft;           /* (pair_count) index among the soft pairs, -1: not soft */
  int *soft_pair;           /* (soft_pair_count) */

  int *pair_geom;           /* (pair_count, 2) */
  int *pair_dim;            /* (pair_count) */
  double *pair_margin;      /* (pair_count) */
  double *pair_restitution; /* (pair_count) negative: the option's */
  double *pair_reference;   /* (pair_count, 4) MuJoCo's contacts: K, B, tangential B, kind */
  double *pair_impedance;   /* (pair_count, 5) solimp */
  double *pair_impratio;    /* (pair_count) */
  int *pair_edges;          /* (pair_count) of MuJoCo's pyramid; 0: elliptic */
  double *pair_weight;      /* (pair_count) inverse weights of both bodies, 1/kg */
  int undamped_pair;        /* the first pair without damping in its reference, -1: none */
  int bouncing_pair;        /* the first pair with its own restitution, -1: none */
  int pairs_act_apart;      /* 1: MuJoCo's contacts of some pair act at a distance */
  pair_table pair_table;

  int *constraint_type;           /* (constraint_count) */
  int *constraint_object;         /* (constraint_count, 2) */
  double *constraint_data;        /* (constraint_count, 10) */
  double *constraint_compliance;  /* (constraint_count, 2) */
  double *constraint_torquescale; /* (constraint_count) of welds by MuJoCo's law, m */
  double *constraint_solver;      /* (constraint_count, 8) of MuJoCo's rows: K, B, kind, solimp */
  uint8_t *constraint_is_mocap;   /* (constraint_count) 1: on a mocap body */

  int *tendon_type;   /* (tendon_count) */
  int *tendon_start;  /* (tendon_count + 1) its joints or points are [start[i], start[i + 1]) */
  int *tendon_part;   /* (tendon_point_total) a qd_tendon_part */
  int *tendon_object; /* (tendon_point_total) joint, body, or geometry that it wraps around */
  double
      *tendon_data; /* (tendon_point_total, 3) coefficient, point in the body's frame, or divisor */
  double *tendon_range;           /* (tendon_count, 2) */
  double *tendon_rest;            /* (tendon_count, 2) rest lengths of its spring */
  double *tendon_friction;        /* (tendon_count) N */
  double *tendon_damping;         /* (tendon_count) Ns/m */
  double *tendon_limit_solver;    /* (tendon_count, 9) as of joints */
  double *tendon_friction_solver; /* (tendon_count, 8) */
  double *tendon_invweight;       /* (tendon_count) MuJoCo's inverse weight, 1/kg */
  int *tendon_is_coupled;         /* (tendon_count) 1: a bilateral constraint holds it */
  int *tendon_dof_start;          /* (tendon_count + 1) into the next two */
  int *tendon_dof;        /* (tendon_dof_total) DOFs that move any of its points, ascending */
  int *tendon_dof_counts; /* (tendon_dof_total) 0: it moves all of them together, without effect on
                             the length */

  model_parameters parameters;
};

/* Part of an array of indices. */
typedef struct int_list {
  const int *at;
  int count;
} int_list;

/* all[start[i]] to all[start[i + 1] - 1] */
static inline int_list list_part(const int *all, const int *start, int i) {
  return (int_list){all + start[i], start[i + 1] - start[i]};
}

static inline int list_has(int_list list, int value) {
  for (int i = 0; i < list.count; ++i) {
    if (list.at[i] == value) {
      return 1;
    }
  }
  return 0;
}

/* The DOFs on the path from the world to a body, ascending. */
static inline int_list body_chain(const qd_model *model, int body) {
  return list_part(model->chain, model->chain_start, body);
}

/* 1 if the DOF moves the body. */
static inline int body_is_behind(const qd_model *model, int body, int dof) {
  return list_has(body_chain(model, body), dof);
}

/* 1 if DOF j moves the axis of DOF k. Both must lie on one path; j may come after k. */
static inline int dof_moves(const qd_model *model, int j, int k) {
  return j < model->dof_block_start[k];
}

/* The largest angle of a ball joint; 0 without a limit, or for one that no rotation can reach. */
static inline double joint_ball_range(const qd_model *model, int joint) {
  const double most = model->joint_range[2 * joint + 1];
  return model->joint_type[joint] == QD_BALL && most < HALF_TURN ? most : 0.0;
}

/* Lays out arrays for the parameters of a model with these counts. */
void model_parameters_lay_out(qd_model *model, arena *a);

static inline int joint_q_count(int joint_type) {
  static const int counts[] = {1, 1, 4, 7};
  return counts[joint_type];
}

static inline int joint_v_count(int joint_type) {
  static const int counts[] = {1, 1, 3, 6};
  return counts[joint_type];
}

#endif
