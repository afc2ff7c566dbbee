/* Models, queries, pressure fields, the step and its derivatives. */
#ifndef QDSIM_STEPS_H
#define QDSIM_STEPS_H

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
  const double *joint_invweight; /* (joint_count) 1/kg or 1/(kg m^2), of hinges, slides and ball
                                    joints: inverse weight of a DOF (dof_invweight0), a constant
                                    whatever masses are; negative: computed at reference_q; NULL:
                                    all are */
  const double *default_q;       /* (nq) configuration at which mass_ratio is evaluated */

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
  const double *constraint_solver; /* (constraint_count, 8) as joint_friction_solver, of couplings
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

#if defined(QD_VISIBLE) && defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
