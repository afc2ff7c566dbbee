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

/* Bodies, nb of them. */
typedef struct model_bodies {
  int count;
  int *parent;      /* (nb) */
  int *joint_start; /* (nb + 1) joints of body b: [start[b], start[b + 1]) */
  double *pos;      /* (nb, 3) in the parent's frame */
  double *quat;     /* (nb, 4) */
  double *fall;     /* (nb) share of gravity that acts on it */
  int *mocap;       /* (nb) index among the mocap bodies, -1: none */
  int *tree;        /* (nb) the tree that moves the body; -1: none */
  int *tile_bound;  /* (nb) largest number of tiles of four variables that contain the DOFs of its
                       path */
  double *turn_invweight; /* (nb) of rotations (body_invweight0), 1/(kg m^2) */
  double *invweight;      /* (nb) MuJoCo's inverse weight at the reference configuration, 1/kg */
  double *least_weight;   /* (nb, 2) of a force and a torque on it, in rows */
  double *arm; /* (nb) distance from the first joint that rotates it (or the origin) to the last one
                  that rotates its parent (or its origin) */
} model_bodies;

/* Joints. */
typedef struct model_joints {
  int count;
  int *type, *body, *q, *v; /* (joint.count) */
  double *pos, *axis;       /* (joint.count, 3) */
  double *ref;              /* (joint.count) */
  double *range;            /* (joint.count, 2) */
  double *arm; /* (joint.count) distance from a joint that rotates its body to the previous one of
                  the same body; 0: none */
  double *limit_solver;    /* (joint.count, 9) of MuJoCo's rows: K, B, kind, solimp, margin */
  double *friction_solver; /* (joint.count, 8) */
} model_joints;

/* Degrees of freedom, nv of them. */
typedef struct model_dofs {
  int *joint, *body;   /* (nv) */
  int *block_start;    /* (nv) first DOF of the block */
  int *block_last;     /* (nv) last DOF of the block */
  int *is_driven;      /* (nv) 1: the spring of an actuator holds it */
  int *is_limited;     /* (nv) 1: it is driven, and all its springs have force limits */
  int *actuator_start; /* (nv + 1) into dof.actuators */
  int *actuators;      /* (nu) ascending for each DOF */
  int *tree;           /* (nv) kinematic tree */
  int *q;              /* (nv) index in q of a scalar joint, -1 otherwise */
  double *invweight;   /* (nv) MuJoCo's inverse weight of a DOF, 1/kg or 1/(kg m^2) */
} model_dofs;

/* Kinematic trees: the DOFs that the mass matrix couples. */
typedef struct model_trees {
  int count;
  int *dof_start;  /* (tree.count + 1) into tree.dofs */
  int *dofs;       /* (nv) DOFs tree by tree, ascending */
  int *tile_bound; /* (tree.count) tiles that contain all DOFs of a tree, as tile_bound of bodies */
  int *is_driven;  /* (tree.count) 1: every DOF is driven */
  double *inertia; /* (tree.count) largest mass diagonal of DOFs not driven, at default q */
} model_trees;

/* Actuators, nu of them. */
typedef struct model_actuators {
  int are_springs;    /* 1: no gain, bias or damping anywhere */
  int *dof;           /* (nu) -1: it pulls along a tendon */
  int *tendon;        /* (nu) -1: it pulls at a DOF */
  int *is_spring;     /* (nu) 1: made with a stiffness > 0 */
  double *gear;       /* (nu) */
  double *gain_slope; /* (nu, 2) */
  double *range;      /* (nu, 2) of u */
  double *own_range;  /* (nu, 2) lower > upper: actuator_force_range */
  double *inertia; /* (nu) mass diagonal of a limited DOF at default q, divided among its springs; 0
                      for other actuators */
} model_actuators;

/* Geometries. */
typedef struct model_geoms {
  int count;
  int *type, *body; /* (geom.count) */
  int *mesh;        /* (geom.count) -1: none */
  int *cloud;       /* (geom.count) -1: none */
  int *hfield;      /* (geom.count) -1: none */
  double *pos;      /* (geom.count, 3) body frame; the centre of meshes and clouds */
  double *rot;      /* (geom.count, 9) */
  double *radius;   /* (geom.count) of the bounding sphere, infinite for planes */
  double *arm;      /* (geom.count) distance from its centre to the last joint that rotates its body
                       (without one: to the body's origin) */
  int *field;       /* (geom.count) -1: none */
  double *field_pos;   /* (geom.count, 3) of the field's frame in the body's; axes: geom.rot */
  double *dissipation; /* (geom.count) s/m */
} model_geoms;

/* Pairs of geometries that may be in contact. */
typedef struct model_pairs {
  int count;
  int probed_count; /* pairs with a cloud or a height field, see missed_pairs.h */
  int soft_count;
  int give;            /* 1: some pair has a compliance */
  int *soft;           /* (pair.count) index among the soft pairs, -1: not soft */
  int *of_soft;        /* (pair.soft_count) */
  int *geom;           /* (pair.count, 2) */
  int *dim;            /* (pair.count) */
  double *margin;      /* (pair.count) */
  double *restitution; /* (pair.count) negative: the option's */
  double *reference;   /* (pair.count, 4) MuJoCo's contacts: K, B, tangential B, kind */
  double *impedance;   /* (pair.count, 5) solimp */
  double *impratio;    /* (pair.count) */
  int *edges;          /* (pair.count) of MuJoCo's pyramid; 0: elliptic */
  double *weight;      /* (pair.count) inverse weights of both bodies, 1/kg */
  int undamped;        /* the first pair without damping in its reference, -1: none */
  int bouncing;        /* the first pair with its own restitution, -1: none */
  int act_apart;       /* 1: MuJoCo's contacts of some pair act at a distance */
  pair_table table;
} model_pairs;

/* Bilateral constraints. */
typedef struct model_constraints {
  int count;
  int row_count;       /* rows of all bilateral constraints */
  int *type;           /* (constraint.count) */
  int *object;         /* (constraint.count, 2) */
  double *data;        /* (constraint.count, 10) */
  double *compliance;  /* (constraint.count, 2) */
  double *torquescale; /* (constraint.count) of welds by MuJoCo's law, m */
  double *solver;      /* (constraint.count, 8) of MuJoCo's rows: K, B, kind, solimp */
  uint8_t *is_mocap;   /* (constraint.count) 1: on a mocap body */
} model_constraints;

/* Tendons, and the DOFs that move them. */
typedef struct model_tendons {
  int count, point_total, dof_total, wrap_count;
  int *actuator_start; /* (tendon.count + 1) into tendon.actuators */
  int *actuators;      /* (nu) ascending for each tendon */
  int *type;           /* (tendon.count) */
  int *start;          /* (tendon.count + 1) its joints or points are [start[i], start[i + 1]) */
  int *part;           /* (tendon.point_total) a qd_tendon_part */
  int *object;         /* (tendon.point_total) joint, body, or geometry that it wraps around */
  double *data;     /* (tendon.point_total, 3) coefficient, point in the body's frame, or divisor */
  double *range;    /* (tendon.count, 2) */
  double *rest;     /* (tendon.count, 2) rest lengths of its spring */
  double *friction; /* (tendon.count) N */
  double *damping;  /* (tendon.count) Ns/m */
  double *limit_solver;    /* (tendon.count, 9) as of joints */
  double *friction_solver; /* (tendon.count, 8) */
  double *invweight;       /* (tendon.count) MuJoCo's inverse weight, 1/kg */
  int *is_coupled;         /* (tendon.count) 1: a bilateral constraint holds it */
  int *dof_start;          /* (tendon.count + 1) into the next two */
  int *dof;                /* (tendon.dof_total) DOFs that move any of its points, ascending */
  int *dof_counts; /* (tendon.dof_total) 0: it moves all of them together, without effect on the
                      length */
} model_tendons;

/* DOF j "moves" DOF k if it rotates or translates k's axis: j is on k's path to the world, before
 * k's block. A block is a set of DOFs whose axes do not move each other: the three of a ball joint,
 * the three rotations of a free joint; every other DOF is its own block. */
struct qd_model {
  int nq, nv, nu;
  int mesh_count;
  int cloud_count, hfield_count;
  int field_count;
  int mocap_count;
  int compensates;           /* 1: some body has gravity compensation */
  int planar;                /* 1: all joints move in one plane */
  double planar_normal[3];   /* its unit normal, world */
  int contact_capacity;      /* default room of a workspace */
  int *chain_start;          /* (nb + 1) */
  int *chain;                /* DOFs on the path world -> body b, ascending */
  int *mocap_body;           /* (mocap_count) */
  double *default_q;         /* (nq) normalised */
  int integration;           /* a qd_integration */
  int bounded_forces;        /* DOFs with dry friction, and actuators with a limit */
  double smallest_stiffness; /* of the actuators' springs; 0 without any */
  double smallest_size;      /* smallest geom.radius; without a geometry the longest arm; 0: none */
  convex_mesh **mesh;        /* (mesh_count) a block each */
  point_cloud **cloud;       /* (cloud_count) likewise */
  height_field **hfield;     /* (hfield_count) likewise */
  qd_field **field;          /* (field_count) likewise; pressures relative to the modulus */
  model_parameters parameters;
  model_bodies body;
  model_joints joint;
  model_dofs dof;
  model_trees tree;
  model_actuators actuator;
  model_geoms geom;
  model_pairs pair;
  model_constraints constraint;
  model_tendons tendon;
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
  return j < model->dof.block_start[k];
}

/* The largest angle of a ball joint; 0 without a limit, or for one that no rotation can reach. */
static inline double joint_ball_range(const qd_model *model, int joint) {
  const double most = model->joint.range[2 * joint + 1];
  return model->joint.type[joint] == QD_BALL && most < HALF_TURN ? most : 0.0;
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
