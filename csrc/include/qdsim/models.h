/* Models: what they are made of, their parameters, pressure fields. */
#ifndef QDSIM_MODELS_H
#define QDSIM_MODELS_H

#include "qdsim/solvers.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(QD_VISIBLE) && defined(__GNUC__) /* while the shared library is built */
#pragma GCC visibility push(default)
#endif

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
  QD_HFIELD,    /* solid under a surface over a grid; size unused; see hfield_height */
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
  QD_TENDON_SPATIAL,   /* lines from point to point of bodies and around their geometries */
  QD_TENDON_THRUST,    /* no length: a force on a body that moves with it */
  QD_TENDON_REACH      /* how far a point lies from one of another body, along its direction; with
                          five points, and by how much it is turned against that, about its axis */
} qd_tendon_type;

/* What a spatial tendon goes along. A geometry takes two rows, between two points. */
typedef enum qd_tendon_part {
  QD_TENDON_POINT = 0, /* a point of a body; also each joint or point of the other tendons */
  QD_TENDON_WRAP,      /* a sphere, or a cylinder without ends: the tendon goes around it wherever
                          it would pass through */
  QD_TENDON_SIDE,      /* a point on the side where it passes, whatever is shorter; inside: it
                          touches from within */
  QD_TENDON_PULLEY     /* from here to the next pulley lengths, and the force, are divided */
} qd_tendon_part;

#define QD_CONSTRAINT_FORCE 6 /* numbers per bilateral constraint in its force */

/* How the second-order step takes MuJoCo's K and B. */
typedef enum qd_reference_kind {
  QD_REFERENCE_TIMES = 1,   /* solref gives times, which count as no shorter than the step allows */
  QD_REFERENCE_IMPLICIT = 2 /* as MuJoCo's integrator "discrete" does, of the end of the step */
} qd_reference_kind;

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
  const double *body_turn_invweight; /* (body_count) 1/(kg m^2), that of rotations, of welds */

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
  /* MuJoCo's law of limits and dry friction of the second-order step with QD_CONTACTS_MUJOCO; NULL:
   * its defaults. K, B and a sum of qd_reference_kind, as in pair_reference, then solimp */
  const double *joint_limit_solver;    /* (joint_count, 9) the last: margin, m or rad */
  const double *joint_friction_solver; /* (joint_count, 8) */
  const double *joint_invweight;       /* (joint_count) 1/kg or 1/(kg m^2): inverse weight of a DOF
                                          (dof_invweight0), a constant whatever masses are; of free joints
                                          that of translations; negative: computed at reference_q; NULL:
                                          all are */
  const double *joint_turn_invweight;  /* (joint_count) 1/(kg m^2), of the turns of free joints */
  const double *default_q;             /* (nq) configuration at which mass_ratio is evaluated */

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

  const int32_t *geom_hfield; /* (geom_count) its height field, or -1; QD_HFIELD needs one;
                                 NULL: none */
  int hfield_count;           /* height fields, each shared by any number of geometries */
  const int32_t *hfield_grid; /* (hfield_count, 2) rows (along y) and columns (along x), at least 2,
                                 together at most 2^22 points */
  const double *hfield_size;  /* (hfield_count, 3) half lengths of the grid along x and y; z of the
                                 solid's bottom, below all heights; geometry frame */
  int hfield_height_total;
  const double *hfield_height; /* (hfield_height_total) z of the surface, field after field, row
                                  after row, from the corner of least x and y */

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
  const double *pair_reference; /* (pair_count, 4) stiffness K 1/s^2, damping B 1/s, and damping
                                   across the normal, as solref and solimp give them, >= 0; then a
                                   sum of qd_reference_kind */
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
  const double *constraint_torquescale; /* (constraint_count) m, of welds by MuJoCo's law: what a
                                           unit of half the angle counts as; NULL: 1 */
  const double *constraint_solver;      /* (constraint_count, 8) as joint_friction_solver
                                           of joints; NULL: MuJoCo's defaults */

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
  /* MuJoCo's law of limits and dry friction, as of joints */
  const double *tendon_limit_solver;    /* (tendon_count, 9) the last: margin, m */
  const double *tendon_friction_solver; /* (tendon_count, 8) */
  const double *tendon_invweight; /* (tendon_count) 1/kg, as joint_invweight (tendon_invweight0) */
  int tendon_point_total;
  const int32_t *tendon_part;   /* (tendon_point_total) a qd_tendon_part; NULL: all are points */
  const int32_t *tendon_object; /* (tendon_point_total) tendon after tendon: joint, or body; wrap: a
                                   geometry; side: a body, -1: none; pulley: not used */
  const double *tendon_data;    /* (tendon_point_total, 3) coefficient of the joint's q, then zeros;
                                   or the point, body frame; pulley: its divisor; thrust: point, force
                                   and moment of a unit force along it, all of one body, in its frame;
                                   reach: a point, the other body's point and its direction */

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
/* 1 if some pair has a restitution, which second-order steps with QD_CONTACTS_MUJOCO do not know;
 * geom: the first such pair. */
int qd_model_bouncing_pair(const qd_model *model, int geom[2]);
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

#if defined(QD_VISIBLE) && defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
