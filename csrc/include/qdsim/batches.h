/* Many steps and rollouts on several threads, observations for learning, derivatives of MuJoCo's
 * step. */
#ifndef QDSIM_BATCHES_H
#define QDSIM_BATCHES_H

#include "qdsim/steps.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(QD_VISIBLE) && defined(__GNUC__) /* while the shared library is built */
#pragma GCC visibility push(default)
#endif

/* ---------------------------------------------------------------- batches
 * Many steps of one model on several threads. Samples are independent, so results have the same
 * bits for any number of threads. A failed sample keeps its q, has a status, and does not stop the
 * others. */

#define QD_THREADS_MAX 1024

/* Threads that wait for work; the first batch that needs them starts them. One pool serves any
 * number of models and callers. After fork, the pool starts new threads in the child process. */
typedef struct qd_thread_pool qd_thread_pool;

qd_thread_pool *qd_thread_pool_create(void);
/* Joins the threads. The pool must not be in use. */
void qd_thread_pool_destroy(qd_thread_pool *pool);

/* Scratch memory for one batch call at a time: a workspace for each thread, and the contacts of the
 * latest call. Grows as needed. */
typedef struct qd_batch qd_batch;

qd_batch *qd_batch_create(const qd_model *model);
void qd_batch_destroy(qd_batch *batch);
/* Sets a function that can stop a batch. Only the calling thread calls stop(context), between steps
 * and often, so it should be fast. After it returns 1, no further step begins; the call ends after
 * the running steps and returns QD_STOPPED, and its outputs are incomplete. NULL (default): the
 * call runs to its end. */
void qd_batch_set_stop(qd_batch *batch, int (*stop)(void *context), void *context);

/* State feedback in rollouts: step t of sample i has the command
 *
 *     clip(u + x_gain (q [-] q_nominal) + v_gain (v - v_nominal) + u_gain (u of step t - 1),
 *          lower, upper)
 *
 * where q and v are the state at its beginning, and u is that of qd_batch_input. For the feedback
 * law of qd_ocp_solution, pass u_t - x_gain x_t - u_gain u_{t-1} as u. */
typedef struct qd_feedback {
  const double *q_nominal;     /* (step_count, nq), the same for all samples */
  const double *u_before;      /* (nu) command before the first one, likewise */
  const double *x_gain;        /* (sample_count, step_count, nu, nv) */
  const double *u_gain;        /* (sample_count, step_count, nu, nu), NULL: zero */
  const double *v_nominal;     /* (step_count, nv) of the second-order step; else NULL, like
                                  v_gain */
  const double *v_gain;        /* (sample_count, step_count, nu, nv) */
  const double *lower, *upper; /* (sample_count, step_count, nu) */
  double *u; /* out: (sample_count, step_count, nu) the commands; NaN after a failed step */
} qd_feedback;

/* Sample i begins at q + i * q_stride, and so on; with a stride of 0 all samples share one
 * value. */
typedef struct qd_batch_input {
  int64_t sample_count;
  const double *q;       /* (nq) per sample */
  const double *v;       /* (nv) per sample, of the second-order step (options.dynamic); else
                            NULL */
  const double *u;       /* (nu) per sample */
  const double *tau;     /* (nv) per sample, N or Nm; NULL: none */
  const double *wrench;  /* (body_count, 6) per sample, as in qd_step_input; NULL: none */
  const double *mocap;   /* (mocap_count, 7) per sample; NULL: the poses of the model */
  const double *bristle; /* (soft_pair_count, 6) per sample, as in qd_step_input; NULL: zero */
  ptrdiff_t q_stride, v_stride, u_stride, tau_stride,
      wrench_stride;                                   /* doubles from sample to sample */
  ptrdiff_t mocap_stride, bristle_stride;              /* likewise */
  ptrdiff_t u_step, tau_step, wrench_step, mocap_step; /* of rollouts: from step to step */
  const double *parameter[QD_PARAMETER_COUNT];         /* parameters per sample, which must pass
                                                          qd_parameter_check; NULL: those of the
                                                          model */
  ptrdiff_t parameter_stride[QD_PARAMETER_COUNT];
  const qd_step_start *start;  /* warm starts; of a rollout for its first step; NULL: none */
  ptrdiff_t start_stride;      /* 1: one per sample; 0: the same for all */
  int warm_start;              /* of rollouts: 1: each step is warm-started from the previous one */
  const qd_feedback *feedback; /* of rollouts; NULL: the commands do not depend on the state */
  double *v_path; /* out: of rollouts of the second-order step: (sample_count, step_count + 1, nv)
                     velocities, like q; else NULL */
  double *bristle_path; /* out: likewise with QD_PATCH_BRISTLE: (sample_count, step_count + 1,
                           soft_pair_count, 6), else NULL */
} qd_batch_input;

/* Caller's memory; every array except q_next and status may be NULL. */
typedef struct qd_batch_output {
  double *q_next;           /* (sample_count, nq) */
  double *v_next;           /* (sample_count, nv) of the second-order step */
  double *bristle;          /* (sample_count, soft_pair_count, 6) as in qd_step_result; the input if
                               the sample failed */
  double *delta;            /* (sample_count, nv), zero if the sample failed */
  double *limit_force;      /* (sample_count, nv) N or Nm, zero if the sample failed */
  double *constraint_force; /* (sample_count, constraint_count, 6), zero if the sample failed */
  double *tendon_force;     /* (sample_count, tendon_count), zero if the sample failed */
  int32_t *softened;        /* (sample_count) as in qd_step_result, 0 if the sample failed */
  double *actuator_force;   /* (sample_count, 2, nu) as in qd_step_result, zero if it failed */
  double *derivative[QD_ARGUMENT_COUNT]; /* (sample_count, nv, size of the argument) derivative of
                                            q_next, NaN if the sample failed */
  uint8_t *derivative_exact; /* (sample_count) as in qd_step_result, 0 if the sample failed */
  int32_t *status;           /* (sample_count) a qd_status each */
  int64_t *contact_start;    /* (sample_count + 1) sample i has the contacts contact_start[i] to
                                contact_start[i + 1] - 1 of qd_batch_contacts; NULL: contacts are
                                not kept */
} qd_batch_output;

/* The failed sample with the smallest index. */
typedef struct qd_batch_failure {
  int64_t sample; /* -1: none failed */
  int64_t step;   /* of a rollout, from 0 */
  qd_status status;
  qd_cone_info info;
  int row_count, contact_count, missed_pairs; /* of its program */
  qd_culprit culprit[QD_CULPRITS_MAX];
  int culprit_count;
} qd_batch_failure;

/* Calls qd_step for every sample on up to thread_count threads, including that of the caller (pool
 * may be NULL: only the caller). Does not write derivatives. Returns QD_OK if every sample has a
 * status, QD_OUT_OF_MEMORY if the batch could not begin, QD_STOPPED: see qd_batch_set_stop. */
qd_status qd_step_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                        const qd_step_options *options, const qd_batch_input *input,
                        const qd_batch_output *output, qd_batch_failure *failure);
/* The same with qd_linearize, or with qd_differentiate and qd_vjp for derivatives with respect to
 * other arguments than q and u. */
qd_status qd_linearize_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                             const qd_step_options *options, const qd_batch_input *input,
                             const qd_batch_output *output, qd_batch_failure *failure);
/* Copies the contacts of the latest qd_step_batch or qd_linearize_batch, in the order of samples.
 * contact_start (sample_count + 1) comes from that call; contacts has contact_start[sample_count]
 * elements. */
void qd_batch_contacts(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                       int64_t sample_count, const int64_t *contact_start, qd_contact *contacts);

/* Computes step_count steps in sequence from the q of each sample. u, tau and wrench have one value
 * per step, u_step (tau_step, wrench_step) doubles apart; 0: the same in every step. Fills q
 * (sample_count, step_count + 1, nq), which begins with the normalised q, and per sample the status
 * and the number of completed steps; after a failed step the last configuration is repeated. */
qd_status qd_rollout_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                           const qd_step_options *options, const qd_batch_input *input,
                           int64_t step_count, double *q, int32_t *status, int64_t *steps_done,
                           qd_batch_failure *failure);

/* Options of the derivatives of a rollout: of every configuration, with respect to the initial
 * state, the inputs of every step and the parameters of the sample. With a feedback, which must
 * have no u_gain, u is that of qd_batch_input, and clipped commands have zero derivatives. The
 * derivatives use the options of the steps, or other options at the same configurations (for
 * example smoothed options for exact steps). */
typedef struct qd_rollout_way {
  const qd_step_options *options; /* NULL: those of the steps */
  int ambient;                    /* 1: derivatives of f(normalize(q)) with respect to the
                                     components of q (nq), and of those of q[t]; 0: in tangent
                                     coordinates (nv) */
  int path_known;                 /* 1: q, status and steps_done contain the rollout on entry */
  int64_t kept; /* number of last steps whose factors are kept from the rollout; earlier steps are
                   computed again. -1: as many as fit into 128 MB per thread */
  const double *v_cotangent; /* for vjp of second-order steps: (sample_count, step_count + 1, nv)
                                cotangents of all velocities; NULL: zero */
  double *v_out; /* out: for jvp of second-order steps: (sample_count, step_count + 1, nv) tangents
                    of all velocities; NULL: not wanted */
  uint8_t *derivative_exact; /* out: (sample_count) 1: derivative_exact is 1 in every step; 0: not,
                                or the sample failed */
} qd_rollout_way;

/* qd_rollout_batch and its vector-Jacobian products: cotangent (sample_count, step_count + 1, nv or
 * nq) of every configuration, including the first. gradient[i]: NULL, or with respect to q
 * (sample_count, nv or nq), to u, tau and wrench (sample_count, step_count, size), to parameters
 * (sample_count, size); NaN if the sample failed. If u_step and the like are 0, the gradient still
 * has one value per step. */
qd_status qd_rollout_vjp_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                               const qd_step_options *options, const qd_batch_input *input,
                               int64_t step_count, const qd_rollout_way *way,
                               const double *cotangent, double *const gradient[QD_ARGUMENT_COUNT],
                               double *q, int32_t *status, int64_t *steps_done,
                               qd_batch_failure *failure);
/* qd_rollout_batch and its Jacobian-vector products: tangent[i] has the shape of gradient[i] above,
 * NULL: zero; out (sample_count, step_count + 1, nv or nq), NaN if the sample failed. */
qd_status qd_rollout_jvp_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                               const qd_step_options *options, const qd_batch_input *input,
                               int64_t step_count, const qd_rollout_way *way,
                               const double *const tangent[QD_ARGUMENT_COUNT], double *out,
                               double *q, int32_t *status, int64_t *steps_done,
                               qd_batch_failure *failure);

/* qd_body_poses of many configurations, which it normalises: pos (sample_count, body_count, 3), rot
 * (sample_count, body_count, 3, 3), NaN if the status is not QD_OK. */
qd_status qd_body_poses_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                              int64_t sample_count, const double *q, ptrdiff_t q_stride,
                              double *pos, double *rot, int32_t *status);

/* Observation of a policy that moves a body to a goal; its entries are of order one. In this order:
 * position of the goal relative to the body, in the axes of the body, divided by length (3); its
 * direction (3); log(1 + distance / position_tolerance) and the same for the angle; first two
 * columns of the rotation from the body to the goal (6). If with_world: position of the body
 * divided by length (3), first two columns of its rotation (6) and position of the goal relative to
 * the body divided by length (3), in world axes. Positions of the tips relative to the body divided
 * by length (3 each), all in the axes of the body, then all in world axes; joint positions relative
 * to the middle, divided by half of their ranges; more_count numbers of the caller. */
typedef struct qd_view {
  int body;
  int coordinate_count;
  const int32_t *coordinate; /* (coordinate_count) DOFs of the body: indices of a tangent vector */
  const int32_t *turns;      /* of each: 0 translation, m; 1 rotation, rad; 2 rotation modulo full
                                turns */
  int with_world;
  int tip_count;
  const int32_t *tip; /* (tip_count) bodies */
  int joint_count;
  const int32_t *joint;        /* (joint_count) indices in q */
  const double *middle, *half; /* (joint_count) */
  int more_count;
  const int32_t *column; /* (qd_view_size) column of each number, or -1: left out */
  int column_count;
  double length, position_tolerance, rotation_tolerance; /* m, m, rad; > 0 */
  double reach;                                          /* weight of the distance of the tips */
  double home[3];                                        /* a position, m */
} qd_view;

/* Number of all entries, including those left out. */
int qd_view_size(const qd_view *view);

/* Measures of an observation: distance (m) and angle (rad) to the goal; the larger ratio of both to
 * their tolerances, <= 1 if the goal is reached; the potential -e / length - log(1 + e /
 * position_tolerance) - reach max(0, f - 1.2), with e = sqrt(distance^2 + (length angle)^2) and f
 * the mean distance of the tips from the body divided by length; distance of the body from home,
 * m. */
enum {
  QD_VIEW_SHIFT,
  QD_VIEW_TURN,
  QD_VIEW_OFF,
  QD_VIEW_POTENTIAL,
  QD_VIEW_AWAY,
  QD_VIEW_MEASURES
};

/* Rows; strides in doubles. */
typedef struct qd_view_input {
  int64_t sample_count;
  const double *q, *goal; /* (nq), the goal normalised */
  const double *pose;     /* (12) pose of the body at the goal: position and rotation matrix */
  const double *more;     /* (more_count) */
  ptrdiff_t q_stride, goal_stride, pose_stride, more_stride;
} qd_view_input;

/* Computes observation (sample_count, column_count) and measure (sample_count, QD_VIEW_MEASURES) of
 * many configurations; NaN if the status, that of qd_normalize, is not QD_OK. */
qd_status qd_observe_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                           const qd_view *view, const qd_view_input *input, double *observation,
                           double *measure, int32_t *status);

/* Rewards of an episode: reward for reaching the goal, cost of losing the body or of a failed step,
 * cost of every action; distance from home (m) beyond which the body is lost; and the largest
 * number of actions per episode. */
typedef struct qd_game {
  double success, failure, cost, lost;
  int64_t horizon;
} qd_game;

enum { QD_GAME_TERMINATED, QD_GAME_TRUNCATED, QD_GAME_SUCCESS, QD_GAME_LOST, QD_GAME_MARKS };

/* Computes the reward of one action in each of many episodes. measure (count, QD_VIEW_MEASURES):
 * after the action; before (count): potentials before it; done (count): number of actions of the
 * episode, including this one; failed: 1 if the step failed. reward (count): change of the
 * potential plus the rewards of the game; mark[k] (count): 0 or 1. */
void qd_judge(const qd_game *game, int64_t count, const double *measure, const double *before,
              const uint8_t *failed, const int64_t *done, double *reward,
              uint8_t *const mark[QD_GAME_MARKS]);

/* qd_pair_distances of many configurations: sample i is at q + i * q_stride (doubles); its row of
 * distance (sample_count, pair_count) is NaN if its status is not QD_OK. */
qd_status qd_pair_distances_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                                  int64_t sample_count, const double *q, ptrdiff_t q_stride,
                                  double margin, double *distance, int32_t *status);

/* How far configurations go along straight lines until pairs of geometries meet. Those of sample i
 * are q + s rate, q and rate rows of (sample_count, nq), with rate zero where quaternions are.
 * Strides of way[3 i] look for the first s, up to way[3 i + 1], at which a pair is nearer than its
 * own gap (sample_count, pair_count); halvings then find it to within way[3 i + 2]. travel
 * (sample_count): the last s at which none is. distance (sample_count, pair_count): just behind,
 * of those that met, less than their gaps; else not. After many strides travel may end before. */
qd_status qd_meetings_batch(qd_batch *batch, int64_t sample_count, const double *q,
                            const double *rate, const double *way, const double *gap,
                            double *travel, double *distance, int32_t *status);

/* ---------------------------------------------------------------- derivatives of MuJoCo's step
 * Arrays of an mjModel and of its mjData after mj_forward, read in place; qdsim does not link
 * MuJoCo. Names, shapes and meanings are as documented for mjModel, mjOption, mjData and mjContact;
 * booleans are bytes. */

typedef struct qd_mj {
  int64_t nq, nv, nu, na, nbody, ngeom, nactuator, ntendon, nwrap;
  /* mjModel */
  const int32_t *body_parentid, *body_rootid, *body_dofnum, *body_dofadr;
  const int32_t *jnt_type, *jnt_qposadr, *jnt_dofadr, *jnt_bodyid;
  const int32_t *dof_bodyid, *dof_jntid, *dof_parentid;
  const int32_t *geom_type, *geom_bodyid, *geom_dataid, *site_bodyid;
  const int32_t *M_rownnz, *M_rowadr, *M_colind;
  const int32_t *ten_J_rownnz, *ten_J_rowadr, *ten_J_colind;
  const int32_t *tendon_adr, *tendon_num, *wrap_type, *wrap_objid;
  const int32_t *actuator_trntype, *actuator_dyntype, *actuator_gaintype, *actuator_biastype;
  const int32_t *actuator_trnid, *actuator_actadr, *actuator_group;
  const int32_t *eq_type, *eq_obj1id, *eq_obj2id, *eq_objtype;
  const double *body_mass, *body_gravcomp, *jnt_stiffness, *dof_damping, *qpos0, *qpos_spring;
  const double *geom_size, *wrap_prm, *tendon_stiffness, *tendon_damping, *tendon_lengthspring;
  const double *tendon_length0, *actuator_dynprm, *actuator_gainprm, *actuator_biasprm;
  const double *actuator_actrange, *actuator_forcerange, *actuator_ctrlrange, *actuator_gear;
  const double *jnt_actfrcrange, *eq_data;
  const uint8_t *actuator_actlimited, *actuator_actearly, *actuator_forcelimited;
  const uint8_t *actuator_ctrllimited, *jnt_actfrclimited;
  int32_t dynprm_count, gainprm_count, biasprm_count, eqdata_count; /* columns of those tables */
  /* mjOption */
  double timestep;
  const double *gravity;
  int32_t integrator, disableflags, disableactuator;
  /* mjData */
  const double *qpos, *qvel, *act, *ctrl, *act_dot, *xfrc_applied, *qacc;
  const double *xpos, *xquat, *xmat, *xipos, *subtree_com, *cdof, *cinert;
  const double *geom_xpos, *geom_xmat, *site_xpos, *site_xmat;
  const double *ten_J, *ten_length, *actuator_length, *actuator_velocity, *actuator_force;
  const double *qfrc_actuator, *qfrc_smooth, *M;
  /* its arena */
  int64_t nefc, ncon;
  const int32_t *efc_type, *efc_id;
  const int32_t *efc_J_rownnz, *efc_J_rowadr, *efc_J_colind; /* NULL: efc_J is (nefc, nv) */
  const double *efc_J, *efc_pos, *efc_margin, *efc_frictionloss, *efc_KBIP, *efc_R, *efc_aref;
  const char *contact_dist, *contact_pos, *contact_frame, *contact_friction; /* of the first one */
  const char *contact_mu, *contact_dim, *contact_geom, *contact_efc_address;
  int64_t contact_stride; /* bytes from contact to contact */
} qd_mj;

/* Convex meshes of a model, by mesh index. Immutable. */
typedef struct qd_mj_meshes qd_mj_meshes;

/* Mesh i has vertex_count[i] vertices and face_count[i] triangles of its hull, counterclockwise
 * seen from outside, in arrays mesh after mesh; face_count[i] = 0: derivatives of its contacts are
 * unknown. */
qd_mj_meshes *qd_mj_meshes_create(int mesh_count, const int32_t *vertex_count, const double *vertex,
                                  const int32_t *face_count, const int32_t *face);
void qd_mj_meshes_destroy(qd_mj_meshes *meshes);

/* Derivative of a contact that the caller computed: rows are distance, position (3) and normal (3);
 * columns are the twist (omega, v at the position of the contact) of the second geometry relative
 * to the first, in world axes. */
typedef struct qd_mj_change {
  int32_t contact;     /* which */
  double by_twist[42]; /* (7, 6) */
} qd_mj_change;

typedef struct qd_mj_info {
  int unknown_count; /* active contacts with unknown derivative, */
  int unknown[16];   /* and the first ones */
  int iterations;    /* of Newton's method for the forces, starting from MuJoCo's */
  double residual;   /* final residual of qacc, relative to its largest entry */
} qd_mj_info;

typedef struct qd_mj_workspace qd_mj_workspace;

/* Scratch memory of one thread for any models; grows as needed. NULL if memory is exhausted. */
qd_mj_workspace *qd_mj_workspace_create(void);
void qd_mj_workspace_destroy(qd_mj_workspace *workspace);

/* Derivatives of one mj_step, with Euler, implicitfast or "discrete", by the implicit function
 * theorem for MuJoCo's convex program of accelerations: A (2 nv + na, 2 nv + na) and B (2 nv + na,
 * nu) of the state (dq, dv, act) in MuJoCo's tangent coordinates, in the order of mjd_transitionFD.
 * The caller must check that the model is supported. QD_BAD_ARGUMENT: derivatives of contacts are
 * unknown (info). QD_NUMERICAL_TROUBLE: Newton's matrix could not be factored. QD_OUT_OF_MEMORY:
 * the workspace could not grow. */
qd_status qd_mj_linearize(const qd_mj *mj, const qd_mj_meshes *meshes, int change_count,
                          const qd_mj_change *changes, qd_mj_workspace *workspace, double *A,
                          double *B, qd_mj_info *info);

#if defined(QD_VISIBLE) && defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
