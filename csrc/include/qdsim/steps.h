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
/* Per body (body_count, 6) the force N and the moment Nm about its centre of mass, world axes, that
 * it moves by at velocities v (nv) which change by a (nv): what acts on it adds up to this. */
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
