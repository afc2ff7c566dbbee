/* Queries of models, the step and its derivatives. */
#ifndef QDSIM_STEPS_H
#define QDSIM_STEPS_H

#include "qdsim/models.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(QD_VISIBLE) && defined(__GNUC__) /* while the shared library is built */
#pragma GCC visibility push(default)
#endif

/* ---------------------------------------------------------------- queries */

typedef struct qd_workspace qd_workspace;

/* One thread's scratch memory for a model, for at least contact_capacity contacts (0: a default).
 */
qd_workspace *qd_workspace_create(const qd_model *model, int contact_capacity);
void qd_workspace_destroy(qd_workspace *workspace);
/* Makes room for at least this many contacts (the capacity doubles, so that few calls are needed),
 * and for the programs of the step that returned QD_OUT_OF_CAPACITY. Contents are lost. Allocates
 * memory; steps never call it. QD_OUT_OF_MEMORY: the workspace is unchanged. */
qd_status qd_workspace_reserve(const qd_model *model, qd_workspace *workspace,
                               int contact_capacity);
size_t qd_workspace_bytes(const qd_workspace *workspace);

/* Normalises quaternions within 1e-3 of unit length. QD_BAD_ARGUMENT: a quaternion differs by more;
 * QD_NOT_FINITE: NaN or infinity; *joint is the joint. q_out (nq) may be q itself. */
qd_status qd_normalize(const qd_model *model, const double *q, double *q_out, int *joint);
/* mocap (mocap_count, 7) = the poses of the mocap bodies in the model */
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
/* Lengths (tendon_count) of all tendons, their derivatives (tendon_count, nv) with respect to
 * tangent coordinates, and the generalised forces (tendon_count, nv) of a unit force along each
 * tendon, which differ from the derivatives for rotational reaches; NULL: not wanted. */
void qd_tendon_lengths(const qd_model *model, qd_workspace *workspace, const double *q,
                       double *length, double *jacobian, double *moment);
/* Joint-space mass matrix M (nv, nv) of the bodies, without the armature of joints, which adds to
 * its diagonal. */
void qd_mass_matrix(const qd_model *model, qd_workspace *workspace, const double *q, double *M);
/* Generalised bias force (nv) of Coriolis, centrifugal and gyroscopic effects: (M(q) + armature)
 * dv/dt + bias = applied forces. Armature does not contribute to it. */
void qd_bias_force(const qd_model *model, qd_workspace *workspace, const double *q, const double *v,
                   double *force);
/* For each body (body_count, 6) the sum of all forces (N) and moments (Nm, about its centre of
 * mass) on it, in world axes, at velocities v (nv) and accelerations a (nv). */
void qd_inertial_wrenches(const qd_model *model, qd_workspace *workspace, const double *q,
                          const double *v, const double *a, double *out);
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
  double softened; /* after softening of an infeasible step: violation of its rows, metres along the
                      normal; else 0 */
} qd_contact;

/* Contacts with dist <= max(margin, the pair's own margin). *contacts points into the workspace and
 * is valid until its next use. QD_NOT_FINITE if q contains NaN or infinity. */
qd_status qd_collide(const qd_model *model, qd_workspace *workspace, const double *q, double margin,
                     const qd_contact **contacts, int *contact_count);
/* Signed distance (pair_count) of every candidate pair, m: the smallest one of its contacts, or
 * margin if the pair is farther apart. QD_OUT_OF_CAPACITY: *contact_count is the required
 * capacity. */
qd_status qd_pair_distances(const qd_model *model, qd_workspace *workspace, const double *q,
                            double margin, double *distance, int *contact_count);

/* The patch on which the geometries of a soft pair press on each other at q (normalised), in world
 * axes, moments about the world's origin; *pair: index of the candidate pair. Otherwise as
 * qd_field_patch. */
qd_status qd_pressure_surface(const qd_model *model, qd_workspace *workspace, const double *q,
                              int soft_pair, int *pair, qd_patch *patch, qd_patch_polygon *polygons,
                              int polygon_capacity, double *vertices, int vertex_capacity);

/* ---------------------------------------------------------------- the quasi-dynamic step */

typedef enum qd_friction_model { QD_CONE = 0, QD_PYRAMID = 1 } qd_friction_model;

/* Which bilateral constraints are compliant. */
typedef enum qd_soft_constraints {
  QD_SOFT_NONE = 0,
  QD_SOFT_ALL = 1,
  QD_SOFT_MOCAP = 2 /* those on mocap bodies */
} qd_soft_constraints;

/* The law of contacts without a stiffness of their own. Rigid, except for contact_compliance; or
 * MuJoCo's law at rest: contacts yield and creep as pair_reference, pair_impedance, pair_impratio
 * and the inverse weights of the bodies determine. In quasi-dynamic steps only with cones and the
 * convex law. */
typedef enum qd_contacts { QD_CONTACTS_RIGID = 0, QD_CONTACTS_MUJOCO = 1 } qd_contacts;

/* Convex: a sliding contact opens by the friction coefficient times the sliding distance (one
 * program per step). Coulomb: a sliding contact stays closed and its friction force opposes the
 * sliding; a fixed point of convex programs. */
typedef enum qd_friction_law { QD_LAW_CONVEX = 0, QD_LAW_COULOMB = 1 } qd_friction_law;

/* How the second-order step rotates single bodies on a free or ball joint: by the implicit midpoint
 * rule for Euler's equation, which conserves energy, or with the gyroscopic force at the beginning
 * of the step, which adds energy. */
typedef enum qd_gyroscopic { QD_GYROSCOPIC_IMPLICIT = 0, QD_GYROSCOPIC_EXPLICIT = 1 } qd_gyroscopic;

/* Friction of patches acts on each polygon, or on the patch as a whole with an ellipsoid as limit
 * surface of force and torque. */
typedef enum qd_patch_friction {
  QD_FRICTION_POLYGONS = 0,
  QD_FRICTION_ELLIPSOID = 1
} qd_patch_friction;

/* Law of the friction of patches. */
typedef enum qd_patch_law {
  QD_PATCH_DISC = 0,         /* sticks up to mu times the force */
  QD_PATCH_ELASTIC_CONE = 1, /* likewise, and sliding by s lifts the body by mu s: the cone of
                                convex programs. Only with QD_FRICTION_POLYGONS; without
                                derivatives */
  QD_PATCH_REGULARIZED = 2,  /* only exact second-order steps: friction grows with the speed up to
                                slip_speed */
  QD_PATCH_BRISTLE = 3       /* likewise: a tangential spring for each patch, whose stretch is a
                                state; without derivatives */
} qd_patch_law;

#define QD_RAYS_MAX 64 /* of a friction pyramid */

typedef struct qd_step_options {
  double h;                /* step, s, > 0 */
  int friction_model;      /* a qd_friction_model */
  int law;                 /* a qd_friction_law; Coulomb's law only in exact steps */
  int stop_after;          /* > 0: under Coulomb's law, solve at most this number of convex programs
                              per island and accept the best one for any law_residual. 0: an error
                              if law_residual exceeds ten times the tolerance times the size of the
                              smallest object in contact */
  int ray_count;           /* pyramid: rays per contact, 3 to QD_RAYS_MAX, or 2 for planar
                              models */
  double kappa;            /* log-barrier weight, 1/J; infinity: the exact step */
  double epsilon;          /* mass factor, >= 0; used if mass_ratio is 0 */
  double mass_ratio;       /* > 0: epsilon per object from stiffness and mass (formulation 2) */
  double margin;           /* m; pairs within it are contacts; may be infinite */
  int add_missed_pairs;    /* 1: an exact step adds pairs beyond the margin that it would
                              penetrate */
  int joint_limits;        /* 1: limits are constraints of the program */
  int gravity_on_actuated; /* 1: gravity acts on actuated joints too */
  int damping;             /* 1: dampers of joints and actuators act, with velocity = displacement /
                              h */
  int soft_constraints;    /* a qd_soft_constraints; other constraints are rigid */
  double contact_compliance; /* m/N along the normal, for pairs without their own; needs cones, or
                                two rays. 0: rigid */
  int contacts;              /* a qd_contacts */
  int force_limits;          /* 1: actuator_force_range limits the forces of actuators */
  int patch_friction;        /* a qd_patch_friction, of soft geometries */
  int patch_law;             /* a qd_patch_law, likewise */
  double slip_speed;         /* m/s, > 0, of QD_PATCH_REGULARIZED: speed from which the full
                                friction acts */
  double bristle_stiffness;  /* 1/m, > 0, of QD_PATCH_BRISTLE: stiffness per newton of pressure */
  double bristle_time;       /* s, >= 0, likewise: damping time; time times speed adds to the
                                stretch */
  const uint8_t *held;       /* (nv) 1: the DOF does not move; NULL: none */
  int soften;                /* 1: if the step is infeasible, constraints are violated as little as
                                possible: first the sum of squared violations is minimised, for
                                motions of at most a radian and ten times the largest initial
                                violation, then the cost of the step with this violation. (An angle
                                counts as its arc at the size of the smallest object in contact, a
                                bilateral constraint as a hundredth.) 0: an error */
  double recovery_speed; /* m/s, for rotations rad/s, >= 0: largest speed at which penetrations and
                            violations of limits and constraints are corrected; 0: never; infinity:
                            in one step */
  double tolerance;      /* of the cone solver */
  int iteration_limit;
  /* 1: the second-order step, with velocities (formulation 7): every DOF has its mass, and epsilon
   * and mass_ratio are not used. 0: the quasi-dynamic step, which does not use the following
   * options */
  int dynamic;
  int gyroscopic;      /* a qd_gyroscopic */
  double restitution;  /* 0 to 1; for pairs without their own */
  double bounce_speed; /* m/s: contacts with a lower closing speed do not bounce; negative: the
                          speed of a free fall from rest over two steps */
} qd_step_options;

qd_step_options qd_step_options_default(void);

/* The cause of a failed step: contacts, limits and constraints that contradict each other (those
 * with the largest multipliers in the proof of infeasibility), or an undetermined motion
 * (unbounded, not unique). */
typedef enum qd_culprit_kind {
  QD_CULPRIT_PAIR = 0,   /* index: a candidate pair; its contacts */
  QD_CULPRIT_LIMIT,      /* index: a DOF; the limit of its joint */
  QD_CULPRIT_CONSTRAINT, /* index: a bilateral constraint */
  QD_CULPRIT_TENDON,     /* index: a tendon */
  QD_CULPRIT_MOTION      /* index: a DOF */
} qd_culprit_kind;

typedef struct qd_culprit {
  int32_t kind;           /* a qd_culprit_kind */
  int32_t index;          /* as the kind says */
  int32_t body_a, body_b; /* the two bodies; for a DOF, the same body twice */
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
  double *tendon_force; /* (tendon_count) out, caller's memory, may be NULL without any: force along
                           each tendon, N, positive if it lengthens the tendon */
  double *actuator_force; /* (2, nu) out, caller's memory, may be NULL: force of each actuator on
                             its joint, N or Nm, then 1 if it is at a limit, else 0 */
  double *bristle; /* (soft_pair_count, 6) out, caller's memory, may be NULL: as in the input, at
                      the end of the step; zero under other laws */
  qd_trace *trace; /* out, caller's memory, NULL: not wanted: trace of a single step and its
                      derivatives */
  const qd_contact *contacts; /* out, inside the workspace, valid until its next use */
  int contact_count;          /* out */
  int row_count;              /* out: rows of the cone program; of exact steps: those of the working
                                 set */
  int missed_pairs;           /* out: pairs beyond the margin (or with points of a cloud beyond the
                                 nearest ones) that the step penetrates: added in exact steps (if
                                 the option is set), ignored otherwise */
  int dropped_pairs;          /* out: missed pairs that an exact step ignores, because the step
                                 would be infeasible with them. They exert no force and may end at
                                 any depth; everything else holds, including the friction law */
  int relaxed_contacts; /* out: contacts whose row only forbids deeper penetration (in smoothed
                           steps: whose distance is replaced by a gap of 0.1 %). These are contacts
                           that penetrate by less than 5 % of the size of their shapes, if resolving
                           all of them would be infeasible, and contacts of any depth that only a
                           motion of 3 rad (m) or more would open, at dead centres of a chain */
  int deep_contacts;  /* out: contacts that penetrate by at least 5 % of the size of their shapes at
                         q, and that the step resolves at once, even by a large motion */
  int softened;       /* out: contacts, limits and rows of constraints violated by more than the
                         tolerance times the size of the smallest object, with the option soften.
                         Without the option: by at most 1e-4 of that size, if no method finds finite
                         forces otherwise; constraints that contradict the others by at most that
                         much also count */
  int soft_programs;  /* out: programs solved for soft geometries; 0: none was in range */
  int soft_converged; /* out: 0 if these programs have not converged, or a pair reached the largest
                         penetration of a step; else 1 */
  int bounces;        /* out: contacts that bounce (restitution) */
  double bounce_share; /* out: smallest factor, over all islands, on the coefficients of
                          restitution: less than 1 if the bounces of an island would add energy, or
                          would be infeasible together */
  int capped_rows; /* out: contacts, limits and parts of constraints whose correction recovery_speed
                      limited */
  /* out, under Coulomb's law; 0, 0 and 1 under the convex law */
  int convex_programs; /* convex programs solved in the last round, of the island that needed
                          most */
  double law_residual; /* largest difference between the sliding of a loaded contact (weighted by
                          its friction) and the shift of its normal row for this sliding, and
                          largest closing of an unloaded contact, m */
  int unique; /* 1: the motion is unique (convex law). Under Coulomb's law -1: no other solution is
                 close, distant ones are not excluded; 0: other solutions may be close, or too many
                 contacts slide to know */
  int derivative_exact; /* out of qd_linearize: 1 unless the derivative is that of a point of the
                           central path, relaxed_contacts or softened is not 0, or a contact is so
                           close to a kink (it hardly slips or presses) that the error of the
                           solution changes the derivative by more than 1e-6 of it. It does not
                           account for contact manifolds that change with an arbitrarily small
                           motion */
  qd_cone_info info;    /* out, always filled */
  qd_culprit culprit[QD_CULPRITS_MAX]; /* out of a failed step, largest first */
  int culprit_count;                   /* out, 0 if the cause is unknown */
} qd_step_result;

/* Warm start: the solution of an earlier step of this model, under any options. It is a copy of the
 * fields of qd_step_result, because contacts are in the workspace. Contacts are matched by pair and
 * position; new contacts start open. Any numbers are valid: a good guess saves time, a bad one
 * costs little, and the solution has the same certificate. It agrees with the solution without a
 * guess to the tolerance, not in its last bits; forces that are not unique depend on the guess. */
typedef struct qd_step_start {
  int contact_count;
  const qd_contact *contacts;     /* (contact_count) pair, pos, frame and force count */
  const double *delta;            /* (nv) */
  const double *limit_force;      /* (nv) */
  const double *constraint_force; /* (constraint_count, 6), may be NULL */
  const double *tendon_force;     /* (tendon_count), may be NULL */
} qd_step_start;

/* Numbers per pair in the stretch of bristles. */
#define QD_BRISTLES 6

/* Inputs of a step, besides the model and the options. Applied forces on actuated DOFs add to those
 * of their springs (tau_a of formulation 2). */
typedef struct qd_step_input {
  const double *q;      /* (nq) normalised */
  const double *u;      /* (nu) commands */
  const double *tau;    /* (nv) applied generalised force, N or Nm; NULL: none */
  const double *wrench; /* (body_count, 6) applied to the bodies: force N at the centre of mass,
                           then moment Nm, world axes; the row of the world has no effect. NULL:
                           none */
  const double *mocap;  /* (mocap_count, 7) poses of the mocap bodies: position m, quaternion,
                           normalised. NULL: those of the model */
  const qd_step_start *start; /* a guess; NULL: none */
  const double *v;            /* (nv) velocity, of the second-order step; NULL: zero */
  const double *bristle;      /* (soft_pair_count, 6) stretch of the bristles of each pair under
                                 QD_PATCH_BRISTLE: displacement of the second body relative to the
                                 first, m at the origin of its frame, then rad, in its axes. NULL:
                                 zero */
} qd_step_input;

/* q_next = f(q, u, tau, wrench, mocap), or of the second-order step f(q, v, u, tau, wrench, mocap).
 * QD_NOT_FINITE if an input contains NaN or infinity. */
qd_status qd_step(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
                  const qd_step_input *input, qd_step_result *result);
/* The same step (quasi-dynamic only) and A = dq_next/dq (nv, nv), B = dq_next/du (nv, nu) in
 * tangent coordinates; NULL: not wanted. */
qd_status qd_linearize(const qd_model *model, qd_workspace *workspace,
                       const qd_step_options *options, const qd_step_input *input,
                       qd_step_result *result, double *A, double *B);
/* ---------------------------------------------------------------- derivatives of a step
 * A step also depends on forces and on the parameters of the model. Derivatives with respect to
 * all arguments are exact, like A and B, for the active set (or point of the central path) that the
 * step found. Configurations are differentiated in tangent coordinates. Values that qd_model_create
 * computes from parameters are held constant: the epsilon of mass_ratio, inertias of a shape. */

typedef enum qd_argument {
  QD_BY_Q = 0,     /* (nv) */
  QD_BY_U,         /* (nu) */
  QD_BY_TAU,       /* (nv) */
  QD_BY_WRENCH,    /* (body_count, 6) */
  QD_BY_MOCAP,     /* (mocap_count, 6) translation, then rotation vector in world axes */
  QD_BY_V,         /* (nv); the derivatives of quasi-dynamic steps are zero */
  QD_BY_H,         /* (1) the time step */
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

/* Its name ("q", "u", ...), and its size in this model. */
const char *qd_argument_name(int argument);
int qd_argument_size(const qd_model *model, int argument);

/* Computes a step and keeps its factors in the workspace for the next functions, until the next use
 * of the workspace. These take the same model, options, input and result, and allocate nothing. */
qd_status qd_differentiate(const qd_model *model, qd_workspace *workspace,
                           const qd_step_options *options, const qd_step_input *input,
                           qd_step_result *result);
/* Jacobian-vector products: out (count, nv) = derivative of q_next times the tangents (count, size
 * of the argument); a tangent of NULL is zero. v_out (count, nv): likewise for v_next, NULL: not
 * wanted. */
void qd_jvp(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *const tangent[QD_ARGUMENT_COUNT], double *out, double *v_out);
/* Vector-Jacobian products: gradient[i] (count, size of argument i), NULL: not wanted, = derivative
 * of cotangent'q_next + v_cotangent'v_next; both (count, nv), NULL: zero. If both are NULL,
 * cotangent is the identity (count is nv), so that the result is the Jacobian. */
void qd_vjp(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *cotangent, const double *v_cotangent,
            double *const gradient[QD_ARGUMENT_COUNT]);
/* Jacobians of q_next and v_next, (nv, size of argument i) each, NULL: not wanted, with the number
 * of solves that qd_vjp needs for one of them. */
void qd_jacobians(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
                  const qd_step_input *input, const qd_step_result *result,
                  double *const of_q[QD_ARGUMENT_COUNT], double *const of_v[QD_ARGUMENT_COUNT]);
/* The second-order step with its Jacobians with respect to q, v and u in one sweep, which is much
 * faster than qd_jacobians; NULL: not wanted. All other arguments must be NULL. */
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
