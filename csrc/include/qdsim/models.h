/* Models: their description, their parameters, pressure fields. */
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

/* Contacts of two geometries. */
#define QD_CONTACTS_PER_PAIR_MAX 8

/* Grid points: contact features number the parts of the grid. */
#define QD_HFIELD_POINTS_MAX (1 << 22)

typedef enum qd_joint_type { QD_HINGE = 0, QD_SLIDE = 1, QD_BALL = 2, QD_FREE = 3 } qd_joint_type;

typedef enum qd_shape_type {
  QD_PLANE = 0, /* half space z <= 0 of the geometry frame; no size */
  QD_SPHERE,    /* size: radius */
  QD_CAPSULE,   /* size: radius, half length; along z of the geometry frame */
  QD_BOX,       /* size: half lengths */
  QD_CYLINDER,  /* size: radius, half length; along z of the geometry frame */
  QD_ELLIPSOID, /* size: half axes */
  QD_MESH,      /* convex; see mesh_vertex_count; no size */
  QD_CLOUD,     /* size: radius of the points, may be zero; see cloud_point */
  QD_HFIELD,    /* solid below a surface over a grid; see hfield_height; no size */
  QD_SHAPE_TYPE_COUNT
} qd_shape_type;

/* 1 if contacts between the two shapes can be computed, in either order. */
int qd_shape_pair_supported(int type_a, int type_b);

typedef enum qd_constraint_type {
  QD_CONNECT = 0,    /* two points of two bodies coincide */
  QD_WELD,           /* two frames of two bodies coincide */
  QD_COUPLING,       /* a scalar joint is a polynomial of another one */
  QD_TENDON_COUPLING /* the length of a tendon is a polynomial of that of another one */
} qd_constraint_type;

typedef enum qd_tendon_type {
  QD_TENDON_FIXED = 0, /* its length is a weighted sum of hinge and slide positions */
  QD_TENDON_SPATIAL,   /* segments between points of bodies and around geometries */
  QD_TENDON_THRUST,    /* no length: a force and moment fixed to a body */
  QD_TENDON_REACH      /* distance of a point from a point of another body, along a direction of
                          that body; with five points, also its rotation relative to that body about
                          an axis of it */
} qd_tendon_type;

/* Parts of a spatial tendon. A geometry takes two rows, between two points. */
typedef enum qd_tendon_part {
  QD_TENDON_POINT = 0, /* a point of a body; also each joint or point of the other tendons */
  QD_TENDON_WRAP,      /* a sphere or infinite cylinder: the tendon wraps around it if the straight
                          line would intersect it */
  QD_TENDON_SIDE,      /* a point on the side where the tendon passes, even if the other side is
                          shorter; if it is inside, the tendon touches the geometry from inside */
  QD_TENDON_PULLEY     /* lengths and force are divided from here to the next pulley */
} qd_tendon_part;

#define QD_WRENCH 6           /* numbers of a wrench: force N, moment Nm */
#define QD_POSE 7             /* numbers of a pose: position m, quaternion */
#define QD_CONSTRAINT_FORCE 6 /* numbers per bilateral constraint in constraint_force */

/* How the second-order step uses MuJoCo's K and B. */
typedef enum qd_reference_kind {
  QD_REFERENCE_TIMES = 1,   /* solref contains time constants, which are bounded below by the time
                               step */
  QD_REFERENCE_IMPLICIT = 2 /* implicit, as in MuJoCo's integrator "discrete" */
} qd_reference_kind;

/* When springs and dampers act in the second-order step with MuJoCo's contacts. Contact forces are
 * those of a step without dampers in its metric, if these act early. */
typedef enum qd_integration {
  QD_INTEGRATE_LATE = 0,  /* all at the end of the step, as in MuJoCo's integrator "discrete" */
  QD_INTEGRATE_EULER = 1, /* all at its beginning, but dampers of joints again at its end */
  QD_INTEGRATE_FAST = 2   /* likewise, with those of tendons and actuators: "implicitfast" */
} qd_integration;

/* Input of qd_model_create: flat arrays, copied. Body 0 is the world; parents come before children.
 * Joints are listed in q order: sorted by body, and in their order on the body. */
typedef struct qd_model_spec {
  int body_count;
  const int32_t *body_parent; /* (body_count), body_parent[0] = 0 */
  const double *body_pos;     /* (body_count, 3) body frame in the parent's frame, all joints at
                                 zero */
  const double *body_quat;    /* (body_count, 4) */
  const double *body_mass;    /* (body_count) kg */
  const double *body_com;     /* (body_count, 3) centre of mass, body frame */
  const double *body_inertia; /* (body_count, 3, 3) about the centre of mass, body axes, kg m^2 */

  const double *body_gravcomp;  /* (body_count) share of gravity that is compensated; NULL: none */
  const double *body_invweight; /* (body_count) 1/kg, inverse weight of translations in MuJoCo's law
                                   (body_invweight0), which stays constant when body_mass varies;
                                   negative: computed at reference_q; NULL: all are computed */
  const double *body_turn_invweight; /* (body_count) 1/(kg m^2), the same for rotations, used by
                                        welds */

  int mocap_count;           /* bodies whose pose is an input of a step */
  const int32_t *mocap_body; /* (mocap_count) children of the world without joints, each once;
                                body_pos and body_quat are their default poses */

  int joint_count;
  const int32_t *joint_type;     /* (joint_count) a qd_joint_type */
  const int32_t *joint_body;     /* (joint_count) */
  const double *joint_pos;       /* (joint_count, 3) anchor, body frame */
  const double *joint_axis;      /* (joint_count, 3) unit, body frame; hinge and slide */
  const double *joint_ref;       /* (joint_count) q for which body_pos and body_quat hold; hinge and
                                    slide */
  const double *joint_range;     /* (joint_count, 2) lower, upper; -inf, inf if unlimited. Ball
                                    joints: angle of rotation, lower 0 or -inf */
  const double *joint_stiffness; /* (joint_count) spring, N/m or Nm/rad; 0 = none */
  const double *joint_springref; /* (joint_count) rest position of the springs of hinges and slides;
                                    springs of ball and free joints rest at body_pos, body_quat */
  const double *joint_damping;   /* (joint_count) Ns/m or Nms/rad, for each DOF, used with
                                    qd_step_options.damping; NULL: none */
  const double *joint_armature;  /* (joint_count) kg or kg m^2, added to the mass of each DOF of the
                                    joint, in second-order steps only; NULL: none */
  const double *joint_friction;  /* (joint_count) N or Nm, limit of the dry friction of each DOF;
                                    NULL: none */
  /* Limits and dry friction under MuJoCo's law, in second-order steps with QD_CONTACTS_MUJOCO: K, B
   * and a sum of qd_reference_kind, as in pair_reference, then solimp. NULL: MuJoCo's defaults */
  const double *joint_limit_solver;    /* (joint_count, 9) the last number is the margin, m or
                                          rad */
  const double *joint_friction_solver; /* (joint_count, 8) */
  const double *joint_invweight;       /* (joint_count) 1/kg or 1/(kg m^2): inverse weight of a DOF
                                          (dof_invweight0), constant when masses vary; for free
                                          joints of translations; negative: computed at reference_q;
                                          NULL: all are computed */
  const double *joint_turn_invweight;  /* (joint_count) 1/(kg m^2), for rotations of free joints */
  const double *default_q;             /* (nq) configuration at which mass_ratio is evaluated */

  /* The force of an actuator on its joint is k (u / gear - q) + (gain + slope . (q, qdot)) u + bias
   * - damping qdot, N or Nm. Joints with an actuator with k > 0 have no mass in the quasi-dynamic
   * program; all others move like objects. */
  int actuator_count;            /* nu */
  const int32_t *actuator_joint; /* (nu) a hinge or slide joint; several actuators may share it. -1:
                                    a tendon */
  const int32_t *actuator_tendon;   /* (nu) the tendon along which it acts, with its length in place
                                       of q; -1: none; NULL: all none */
  const double *actuator_stiffness; /* (nu) k >= 0 in joint units */
  const double *actuator_gear;      /* (nu) != 0; infinite: the spring does not depend on the
                                       command */
  const double *actuator_gain;      /* (nu) N or Nm per unit of u, besides the spring; NULL: none,
                                       also below */
  const double *actuator_gain_slope;  /* (nu, 2) derivatives of the gain with respect to q and
                                         qdot */
  const double *actuator_bias;        /* (nu) N or Nm */
  const double *actuator_damping;     /* (nu) >= 0, Ns/m or Nms/rad, used with the option damping */
  const double *actuator_range;       /* (nu, 2) of u, infinite if unlimited: MuJoCo's law clamps
                                         commands to it; NULL: none is limited */
  const double *actuator_force_range; /* (nu, 2) N or Nm on the joint, lower <= upper, infinite if
                                         unlimited; NULL: none is limited */
  const double *actuator_own_range;   /* (nu, 2) where the joint limits the force, too: the
                                         actuator's own limits, beyond which its stiffness does not
                                         act in MuJoCo's law; lower > upper: actuator_force_range;
                                         NULL: all */

  int geom_count;
  const int32_t *geom_type; /* (geom_count) a qd_shape_type */
  const int32_t *geom_body; /* (geom_count) */
  const double *geom_pos;   /* (geom_count, 3) body frame */
  const double *geom_quat;  /* (geom_count, 4) */
  const double *geom_size;  /* (geom_count, 3) */
  const int32_t
      *geom_mesh; /* (geom_count) its mesh, or -1; each QD_MESH in a pair needs one; NULL: none */

  int mesh_count;                   /* convex hulls, each shared by any number of geometries */
  const int32_t *mesh_vertex_count; /* (mesh_count) vertices of each mesh */
  const int32_t *mesh_face_count;   /* (mesh_count) triangles of each mesh */
  int mesh_vertex_total;
  const double *mesh_vertex; /* (mesh_vertex_total, 3) mesh after mesh, geometry frame */
  int mesh_face_total;
  const int32_t *mesh_face; /* (mesh_face_total, 3) mesh after mesh; vertices counted from the first
                               of the mesh, counterclockwise seen from outside */

  const int32_t *geom_cloud; /* (geom_count) its cloud, or -1; QD_CLOUD needs one; NULL: none */
  int cloud_count;           /* rigid point clouds; any number of geometries may share one */
  const int32_t *cloud_point_count;   /* (cloud_count) points of each, at least one */
  const int32_t *cloud_contact_count; /* (cloud_count) largest number of contacts with one other
                                         geometry, at the nearest points, 1 to
                                         QD_CONTACTS_PER_PAIR_MAX */
  int cloud_point_total;
  const double *cloud_point; /* (cloud_point_total, 3) cloud after cloud, geometry frame */

  const int32_t *geom_hfield; /* (geom_count) its height field, or -1; QD_HFIELD needs one;
                                 NULL: none */
  int hfield_count;           /* height fields; any number of geometries may share one */
  const int32_t *hfield_grid; /* (hfield_count, 2) rows (along y) and columns (along x), at least 2,
                                 together at most QD_HFIELD_POINTS_MAX points */
  const double *hfield_size;  /* (hfield_count, 3) half lengths of the grid along x and y; z of the
                                 solid's bottom, below all heights; geometry frame */
  int hfield_height_total;
  const double *hfield_height; /* (hfield_height_total) z of the surface, field after field, row
                                  after row, from the corner with the smallest x and y */

  const int32_t *geom_field;  /* (geom_count) its pressure field or rigid surface, or -1; both
                                 geometries of a pair need one if either is soft; NULL: none */
  const double *geom_modulus; /* (geom_count) Pa, factor of the pressure of the field; 0 if it is
                                 rigid or has no field. NULL: all 0 */
  const double *geom_dissipation;     /* (geom_count) s/m, >= 0, of soft geometries; NULL: none */
  int field_count;                    /* each shared by any number of geometries */
  const int32_t *field_kind;          /* (field_count) a qd_field_kind */
  const double *field_slope;          /* (field_count) 1/m, of soft half spaces */
  const int32_t *field_vertex_count;  /* (field_count) vertices of each */
  const int32_t *field_element_count; /* (field_count) tetrahedra or triangles of each */
  int field_vertex_total;
  const double *field_vertex;   /* (field_vertex_total, 3) field after field, geometry frame */
  const double *field_pressure; /* (field_vertex_total) share of the modulus; only for tetrahedra */
  int field_index_total;
  const int32_t *field_index; /* (field_index_total) vertices of the elements, 4 per tetrahedron, 3
                                 per triangle, counted from the first vertex of the field */

  int pair_count;              /* candidate pairs, filtered by the caller */
  const int32_t *pair_geom;    /* (pair_count, 2) */
  const int32_t *pair_dim;     /* (pair_count) contact dimension 1, 3, 4 or 6 */
  const double *pair_friction; /* (pair_count, 5) two tangential, torsional (m), two rolling (m) */
  const double *pair_margin;   /* (pair_count) m; the larger one of this and the option applies */
  const double *pair_compliance;  /* (pair_count) m/N, along the normal; 0: rigid. NULL: all
                                     rigid */
  const double *pair_restitution; /* (pair_count) of the second-order step, 0 to 1; negative: that
                                     of the options; NULL: all negative */
  /* Contacts under MuJoCo's law (QD_CONTACTS_MUJOCO), which act within pair_margin; NULL: MuJoCo's
   * defaults. */
  const double *pair_reference; /* (pair_count, 4) stiffness K 1/s^2, damping B 1/s, and damping in
                                   tangential directions, from solref and solimp, >= 0; then a sum
                                   of qd_reference_kind */
  const double *pair_impedance; /* (pair_count, 5) solimp */
  const double *pair_impratio;  /* (pair_count) > 0 */
  const int32_t *pair_edges;    /* (pair_count) 2 (dim - 1) edges of a friction pyramid; 0: elliptic
                                   cone */
  const double *reference_q;    /* (nq) MuJoCo's qpos0; NULL: default_q */

  int constraint_count;             /* bilateral constraints */
  const int32_t *constraint_type;   /* (constraint_count) a qd_constraint_type */
  const int32_t *constraint_object; /* (constraint_count, 2) bodies; coupling: the dependent joint
                                       and the other one, -1: none; tendon coupling: likewise two
                                       tendons */
  const double *constraint_data;    /* (constraint_count, 10) connect and weld: anchor in the first
                                       body's frame (3), in the second's (3), weld: rotation of the
                                       second body in the first's frame (4). Coupling: a0..a4 of
                                       q1 - ref1 = sum a_i (q2 - ref2)^i; of tendons with their
                                       lengths, ref1 and ref2 in the next two numbers */
  const double *constraint_compliance; /* (constraint_count, 2) of forces, m/N (coupling: rad/Nm for
                                          hinges), and of the moments of welds, rad/Nm; used as
                                          qd_step_options.soft_constraints says. NULL: all rigid */
  const double *constraint_torquescale; /* (constraint_count) m, torquescale of welds under MuJoCo's
                                           law, which multiplies their half angles; NULL: 1 */
  const double *constraint_solver;      /* (constraint_count, 8) as joint_friction_solver; NULL:
                                           MuJoCo's defaults */

  int tendon_count;
  const int32_t *tendon_type;        /* (tendon_count) a qd_tendon_type */
  const int32_t *tendon_point_count; /* (tendon_count) joints or points of each; spatial: 2 at least
                                      */
  const double *tendon_range;        /* (tendon_count, 2) of the length, infinite if unlimited */
  const double *tendon_stiffness;    /* (tendon_count) spring, N/m, 0 = none; NULL: none, also
                                        below */
  const double *tendon_springrange;  /* (tendon_count, 2) lengths between which the spring is
                                        slack */
  const double *tendon_frictionloss; /* (tendon_count) N, dry friction along it */
  const double *tendon_damping;      /* (tendon_count) Ns/m along it, used with the option
                                        damping */
  /* limits and dry friction under MuJoCo's law, as for joints */
  const double *tendon_limit_solver;    /* (tendon_count, 9) the last number is the margin, m */
  const double *tendon_friction_solver; /* (tendon_count, 8) */
  const double *tendon_invweight; /* (tendon_count) 1/kg, as joint_invweight (tendon_invweight0) */
  int tendon_point_total;
  const int32_t *tendon_part;   /* (tendon_point_total) a qd_tendon_part; NULL: all are points */
  const int32_t *tendon_object; /* (tendon_point_total) tendon after tendon: joint, or body; wrap: a
                                   geometry; side: a body, -1: none; pulley: not used */
  const double *tendon_data;    /* (tendon_point_total, 3) coefficient of the joint's q, then zeros;
                                   or the point, body frame; pulley: its divisor; thrust: point,
                                   force and moment per unit of force, all in the frame of one body;
                                   reach: a point, the point and the direction of the other body */

  double gravity[3];   /* m/s^2, world */
  int32_t integration; /* a qd_integration */
} qd_model_spec;

typedef struct qd_model qd_model;

/* Checks and copies the spec. On failure *model is NULL and message (message_size bytes) names the
 * array, the index and the reason. */
qd_status qd_model_create(const qd_model_spec *spec, qd_model **model, char *message,
                          size_t message_size);
void qd_model_destroy(qd_model *model);
int qd_model_nq(const qd_model *model);
int qd_model_nv(const qd_model *model);
int qd_model_nu(const qd_model *model);
int qd_model_constraint_count(const qd_model *model);
int qd_model_tendon_count(const qd_model *model);
int qd_model_mocap_count(const qd_model *model);
/* 1 if some pair has no damping in pair_reference; QD_CONTACTS_MUJOCO requires damping, because
 * such contacts would creep without bound. geom: the first such pair. */
int qd_model_undamped_pair(const qd_model *model, int geom[2]);
/* 1 if some pair has a restitution, which second-order steps with QD_CONTACTS_MUJOCO do not
 * support; geom: the first such pair. */
int qd_model_bouncing_pair(const qd_model *model, int geom[2]);
/* (body_count) body_invweight as given or computed. */
const double *qd_model_body_invweights(const qd_model *model);
int qd_model_body_count(const qd_model *model);
/* Number of candidate pairs with a soft geometry, which press by pressure fields. */
int qd_model_soft_pair_count(const qd_model *model);
/* 1 if every joint moves in one plane; then normal (3) is the unit normal of that plane. */
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
  QD_PARAMETER_GEOM_SIZE,    /* cannot vary if the geometry has a field */
  QD_PARAMETER_GEOM_MODULUS, /* positive for soft geometries, zero for others */
  QD_PARAMETER_PAIR_FRICTION,
  QD_PARAMETER_PAIR_COMPLIANCE,
  QD_PARAMETER_TENDON_STIFFNESS,
  QD_PARAMETER_GRAVITY,
  QD_PARAMETER_COUNT
} qd_parameter;

/* The name of the array. */
const char *qd_parameter_name(qd_parameter parameter);
/* Its size and its values in this model. */
int qd_parameter_size(const qd_model *model, qd_parameter parameter);
const double *qd_parameter_values(const qd_model *model, qd_parameter parameter);
/* Checks whether a model can have these values. On failure *index is the first wrong element and
 * *reason is the reason. */
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

/* Immutable: gradients, faces and a tree of bounding boxes. */
typedef struct qd_field qd_field;

/* On failure *field is NULL and message names the array, the row and the reason. */
qd_status qd_field_create(const qd_field_spec *spec, qd_field **field, char *message,
                          size_t message_size);
void qd_field_destroy(qd_field *field);
/* Number of elements in contact computations: tetrahedra with pressure, triangles; 1 for a half
 * space. */
int qd_field_element_count(const qd_field *field);
/* 1 if at least one of the two is soft, and at most one is a half space. */
int qd_field_pair_supported(qd_field_kind a, qd_field_kind b);

typedef struct qd_patch_polygon {
  double area;          /* m^2 */
  double pressure;      /* mean, Pa */
  double centre[3];     /* of pressure, m */
  double normal[3];     /* unit, out of a, into b */
  double gradient_a[3]; /* of the pressure, Pa/m; for a rigid body its inward normal */
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
  double tangent[36];    /* (6, 6) derivative of force and moment with respect to a motion of a:
                            linear velocity at the world's origin, then angular velocity */
  int polygon_count, vertex_count; /* number found; may exceed the capacity */
} qd_patch;

/* Options of a patch; NULL: all zero. */
typedef struct qd_patch_options {
  double filter_angle; /* polygons are left out if the angle between their normal and a gradient
                          exceeds this (rad; Drake uses 5 pi / 8, which violates conservation of
                          energy); 0: none is left out */
  int without_tangent; /* 1: tangent is not computed and stays zero */
} qd_patch_options;

/* Contact patch of two bodies. Poses (7): position and unit quaternion w x y z in the world. The
 * capacities for polygons and their corners may be 0. QD_OUT_OF_CAPACITY: they were too small; all
 * other outputs are correct. QD_BAD_ARGUMENT: the pair is not supported. Does not allocate. */
qd_status qd_field_patch(const qd_field *a, const qd_field *b, const double pose_a[7],
                         const double pose_b[7], const qd_patch_options *options, qd_patch *patch,
                         qd_patch_polygon *polygons, int polygon_capacity, double *vertices,
                         int vertex_capacity);
/* Energy of the contact, J: the smaller one of the two pressures, integrated over the overlap.
 * Force and moment on b are minus its derivative with respect to motions of b. A rigid surface must
 * be closed. Does not allocate. */
qd_status qd_field_energy(const qd_field *a, const qd_field *b, const double pose_a[7],
                          const double pose_b[7], double *energy);

#if defined(QD_VISIBLE) && defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
