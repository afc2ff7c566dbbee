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
 * Many steps of one model on several threads. Samples do not know each other, so results have the
 * same bits whatever the number of threads. A sample that fails keeps its q, has a status, and does
 * not stop the others. */

#define QD_THREADS_MAX 1024

/* Threads that wait for work; the first batch that wants them starts them. One pool serves any
 * number of models and callers. After fork, the child's pool starts threads of its own. */
typedef struct qd_thread_pool qd_thread_pool;

qd_thread_pool *qd_thread_pool_create(void);
/* Ends the threads. The pool must not be in use. */
void qd_thread_pool_destroy(qd_thread_pool *pool);

/* Scratch of one batch call at a time: a workspace for each thread that takes part, and the
 * contacts of the latest call. Grows as needed. */
typedef struct qd_batch qd_batch;

qd_batch *qd_batch_create(const qd_model *model);
void qd_batch_destroy(qd_batch *batch);
/* Lets whoever waits for a batch give it up. stop(context) is asked by the calling thread alone,
 * between steps: often, so it should be quick. After it has returned 1, no step begins any more;
 * the call ends with those under way and returns QD_STOPPED, and its outputs are incomplete. NULL:
 * the call runs to its end, as at first. */
void qd_batch_set_stop(qd_batch *batch, int (*stop)(void *context), void *context);

/* Commands that react, of rollouts: sample i's step t is taken with
 *
 *     clip(u + x_gain (q [-] q_nominal) + v_gain (v - v_nominal) + u_gain (u of step t - 1),
 *          lower, upper)
 *
 * where q and v are where the step begins, and u what qd_batch_input has. What qd_ocp_qp gives is
 * this with u - x_gain x - u_gain (u before it) in place of u. */
typedef struct qd_feedback {
  const double *q_nominal;     /* (step_count, nq), the same for all samples */
  const double *u_before;      /* (nu) command before the first, likewise */
  const double *x_gain;        /* (sample_count, step_count, nu, nv) */
  const double *u_gain;        /* (sample_count, step_count, nu, nu), NULL: zero */
  const double *v_nominal;     /* (step_count, nv) of the second-order step; else NULL, as v_gain */
  const double *v_gain;        /* (sample_count, step_count, nu, nv) */
  const double *lower, *upper; /* (sample_count, step_count, nu) */
  double *u; /* (sample_count, step_count, nu) the commands, filled; NaN after a failed step */
} qd_feedback;

/* Sample i begins at q + i * q_stride, and so on; a stride of 0 gives all samples the same. */
typedef struct qd_batch_input {
  int64_t sample_count;
  const double *q;       /* (nq) a sample */
  const double *v;       /* (nv) a sample, of the second-order step, as options say; else NULL */
  const double *u;       /* (nu) a sample */
  const double *tau;     /* (nv) a sample, N or Nm; NULL: none */
  const double *wrench;  /* (body_count, 6) a sample, as in qd_step_input; NULL: none */
  const double *mocap;   /* (mocap_count, 7) a sample; NULL: where the model has them */
  const double *bristle; /* (soft_pair_count, 6) a sample, as in qd_step_input; NULL: zero */
  ptrdiff_t q_stride, v_stride, u_stride, tau_stride,
      wrench_stride;                                   /* doubles from sample to sample */
  ptrdiff_t mocap_stride, bristle_stride;              /* likewise */
  ptrdiff_t u_step, tau_step, wrench_step, mocap_step; /* of rollouts: from step to step */
  const double *parameter[QD_PARAMETER_COUNT]; /* a sample's own parameters, which have passed
                                                  qd_parameter_check; NULL: the model's */
  ptrdiff_t parameter_stride[QD_PARAMETER_COUNT];
  const qd_step_start *start;  /* guesses, of a rollout for its first step; NULL: none */
  ptrdiff_t start_stride;      /* 1: each sample has its own; 0: all have the same */
  int warm_start;              /* of rollouts: 1: each step starts from the one before */
  const qd_feedback *feedback; /* of rollouts; NULL: the commands as they are */
  double *v_path; /* of rollouts of the second-order step: (sample_count, step_count + 1, nv) the
                     velocities, filled as q is; else NULL */
  double *bristle_path; /* likewise of QD_PATCH_BRISTLE: (sample_count, step_count + 1,
                           soft_pair_count, 6), else NULL */
} qd_batch_input;

/* Caller's memory; every array but q_next and status may be NULL. */
typedef struct qd_batch_output {
  double *q_next;           /* (sample_count, nq) */
  double *v_next;           /* (sample_count, nv) of the second-order step */
  double *bristle;          /* (sample_count, soft_pair_count, 6) as in qd_step_result; where a
                               sample failed, what it began with */
  double *delta;            /* (sample_count, nv), zero where a sample failed */
  double *limit_force;      /* (sample_count, nv) N or Nm, zero where a sample failed */
  double *constraint_force; /* (sample_count, constraint_count, 6), zero where a sample failed */
  double *tendon_force;     /* (sample_count, tendon_count), zero where a sample failed */
  int32_t *softened;        /* (sample_count) as in qd_step_result, 0 where a sample failed */
  double *actuator_force;   /* (sample_count, 2, nu) as in qd_step_result, zero where one failed */
  double *derivative[QD_ARGUMENT_COUNT]; /* (sample_count, nv, size of the argument) dq_next by it,
                                            NaN where a sample failed */
  uint8_t *derivative_exact; /* (sample_count) 1: exact; 0: the path's derivative, or failed */
  int32_t *status;           /* (sample_count) a qd_status each */
  int64_t *contact_start;    /* (sample_count + 1) contacts of sample i are contact_start[i] up to
                                contact_start[i + 1] of qd_batch_contacts; NULL: contacts not kept */
} qd_batch_output;

/* The failed sample of the smallest index. */
typedef struct qd_batch_failure {
  int64_t sample; /* -1: none failed */
  int64_t step;   /* of a rollout, from 0 */
  qd_status status;
  qd_cone_info info;
  int row_count, contact_count, missed_pairs; /* of its program */
  qd_culprit culprit[QD_CULPRITS_MAX];
  int culprit_count;
} qd_batch_failure;

/* qd_step for every sample on up to thread_count threads, the caller's included (pool may be NULL:
 * the caller's alone). The output's derivatives are not touched. Returns QD_OK once every sample
 * has a status, QD_OUT_OF_MEMORY if the batch could not begin, QD_STOPPED: see
 * qd_batch_set_stop. */
qd_status qd_step_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                        const qd_step_options *options, const qd_batch_input *input,
                        const qd_batch_output *output, qd_batch_failure *failure);
/* The same with qd_linearize, or with qd_differentiate and qd_vjp where derivatives by more than q
 * and u are wanted. */
qd_status qd_linearize_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                             const qd_step_options *options, const qd_batch_input *input,
                             const qd_batch_output *output, qd_batch_failure *failure);
/* Copies the contacts of the latest qd_step_batch or qd_linearize_batch, in the order of samples;
 * contact_start (sample_count + 1) is what that call filled, and contacts has room for
 * contact_start[sample_count]. */
void qd_batch_contacts(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                       int64_t sample_count, const int64_t *contact_start, qd_contact *contacts);

/* step_count steps in a row from each sample's q. u, tau and wrench hold one value a step, u_step
 * (tau_step, wrench_step) doubles from step to step; 0: the same in every step. Fills q
 * (sample_count, step_count + 1, nq), which begins with the normalised q, and per sample the status
 * and the number of steps that were done; after a failed step the last configuration is repeated.
 */
qd_status qd_rollout_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                           const qd_step_options *options, const qd_batch_input *input,
                           int64_t step_count, double *q, int32_t *status, int64_t *steps_done,
                           qd_batch_failure *failure);

/* How a rollout is differentiated: every configuration of it, by where it begins, by what every
 * step is given and by the sample's parameters. With a feedback, which must have no u_gain, u is
 * what qd_batch_input has, and commands that are clipped do not change. Under the options of the
 * steps, or at the same configurations under others (smoothed, where the steps are exact). */
typedef struct qd_rollout_way {
  const qd_step_options *options; /* NULL: those of the steps */
  int ambient;                    /* 1: derivatives of f(normalize(q)) by the numbers of q (nq), as
                                     of q[t]; 0: in tangent coordinates (nv) */
  int path_known;                 /* 1: q, status and steps_done hold the rollout already */
  int64_t kept; /* steps, from the last back, whose factors are kept from the rollout itself; the
                   others are taken once more. -1: as many as fit into 128 MB a thread */
  const double *v_cotangent; /* of a pullback of the second-order step: (sample_count, step_count +
                                1, nv) of every velocity; NULL: zero */
  double *v_out; /* of its pushforward: (sample_count, step_count + 1, nv), NULL: not wanted */
  uint8_t *derivative_exact; /* (sample_count) 1: that of every step is exact; 0: not, or failed */
} qd_rollout_way;

/* qd_rollout_batch and its pullback: cotangent (sample_count, step_count + 1, nv or nq) of every
 * configuration, the first included. gradient[i]: NULL, or by q (sample_count, nv or nq), by u, tau
 * and wrench (sample_count, step_count, size), by parameters (sample_count, size); NaN where the
 * sample failed. With 0 in u_step and its like the gradient of every step is given all the same.
 */
qd_status qd_rollout_vjp_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                               const qd_step_options *options, const qd_batch_input *input,
                               int64_t step_count, const qd_rollout_way *way,
                               const double *cotangent, double *const gradient[QD_ARGUMENT_COUNT],
                               double *q, int32_t *status, int64_t *steps_done,
                               qd_batch_failure *failure);
/* The same forwards: tangent[i] as gradient[i] above, NULL: zero; out (sample_count, step_count +
 * 1, nv or nq), NaN where the sample failed. */
qd_status qd_rollout_jvp_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                               const qd_step_options *options, const qd_batch_input *input,
                               int64_t step_count, const qd_rollout_way *way,
                               const double *const tangent[QD_ARGUMENT_COUNT], double *out,
                               double *q, int32_t *status, int64_t *steps_done,
                               qd_batch_failure *failure);

/* qd_body_poses of many configurations, normalised: pos (sample_count, body_count, 3), rot
 * (sample_count, body_count, 3, 3), NaN where the status is not QD_OK. */
qd_status qd_body_poses_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                              int64_t sample_count, const double *q, ptrdiff_t q_stride,
                              double *pos, double *rot, int32_t *status);

/* What a policy is told that moves a body to a goal, as numbers of about one. In this order: the
 * goal from the body in the body's axes, over length (3); its direction (3); log(1 + distance /
 * position_tolerance) and the same of the angle; the goal's rotation from the body's, the first two
 * columns (6). With the world: the body's place over length (3), its rotation (6) and the goal's
 * place from the body's over length (3), in world axes. The tips' places from the body over length,
 * (3) each, all in the body's axes, then all in the world's; joints from the middle over half of
 * their ranges; more_count numbers of the caller's own. */
typedef struct qd_view {
  int body;
  int coordinate_count;
  const int32_t *coordinate; /* (coordinate_count) of the body: indices of a tangent vector */
  const int32_t *turns; /* of each: 0 shifts, m; 1 turns, rad; 2 turns, whole turns uncounted */
  int with_world;
  int tip_count;
  const int32_t *tip; /* (tip_count) bodies */
  int joint_count;
  const int32_t *joint;        /* (joint_count) indices in q */
  const double *middle, *half; /* (joint_count) */
  int more_count;
  const int32_t *column; /* (qd_view_size) of each number its column, or -1: left out */
  int column_count;
  double length, position_tolerance, rotation_tolerance; /* m, m, rad; > 0 */
  double reach;                                          /* weight of the tips' distance */
  double home[3];                                        /* a place, m */
} qd_view;

/* Numbers of all kinds, those left out included. */
int qd_view_size(const qd_view *view);

/* What an observation is judged by: distance (m) and angle (rad) from the goal; the larger of both
 * over their tolerances, <= 1 where the goal is reached; with e the root of distance^2 + (length
 * angle)^2 the potential -e / length - log(1 + e / position_tolerance) - reach max(0, f - 1.2), f
 * the tips' mean distance from the body over length; the body's distance from home, m. */
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
  const double *pose;     /* (12) the body's at the goal: place and rotation matrix */
  const double *more;     /* (more_count) */
  ptrdiff_t q_stride, goal_stride, pose_stride, more_stride;
} qd_view_input;

/* observation (sample_count, column_count) and measure (sample_count, QD_VIEW_MEASURES) of many
 * configurations, NaN where the status, that of qd_normalize, is not QD_OK. */
qd_status qd_observe_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                           const qd_view *view, const qd_view_input *input, double *observation,
                           double *measure, int32_t *status);

/* A game of such configurations: what reaching the goal brings, what losing the body or a failed
 * move costs, and every action; from how far from home (m) the body is lost, and the number of
 * actions that an episode has at most. */
typedef struct qd_game {
  double success, failure, cost, lost;
  int64_t horizon;
} qd_game;

enum { QD_GAME_TERMINATED, QD_GAME_TRUNCATED, QD_GAME_SUCCESS, QD_GAME_LOST, QD_GAME_MARKS };

/* What one action each brought of many players, who have come to measures (count, QD_VIEW_MEASURES)
 * from potentials before (count), by done (count) actions of their episodes, this one included;
 * failed: whose action had no answer. reward (count): the change of the potential and what the game
 * adds; mark[k] (count): 0 or 1. */
void qd_judge(const qd_game *game, int64_t count, const double *measure, const double *before,
              const uint8_t *failed, const int64_t *done, double *reward,
              uint8_t *const mark[QD_GAME_MARKS]);

/* qd_pair_distances of many configurations: sample i at q + i * q_stride (doubles), its row of
 * distance (sample_count, pair_count) NaN where its status is not QD_OK. */
qd_status qd_pair_distances_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                                  int64_t sample_count, const double *q, ptrdiff_t q_stride,
                                  double margin, double *distance, int32_t *status);

/* ---------------------------------------------------------------- derivatives of MuJoCo's step
 * MuJoCo's own arrays, read in place, of a model and of its data after mj_forward; nothing here
 * links MuJoCo. Names, shapes and meanings are those of mjModel, mjOption, mjData and mjContact
 * (their documentation), booleans bytes. */

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
  int32_t integrator, cone, disableflags, disableactuator;
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

/* Convex meshes of a model, by its mesh numbers. Immutable. */
typedef struct qd_mj_meshes qd_mj_meshes;

/* Of mesh i: vertex_count[i] vertices and face_count[i] triangles of its hull, counterclockwise
 * seen from outside, in arrays mesh after mesh; face_count[i] = 0: contacts of it are not known. */
qd_mj_meshes *qd_mj_meshes_create(int mesh_count, const int32_t *vertex_count, const double *vertex,
                                  const int32_t *face_count, const int32_t *face);
void qd_mj_meshes_destroy(qd_mj_meshes *meshes);

/* How a contact changes that the caller differentiated: rows of distance, position (3) and normal
 * (3), columns the twist (omega, v at the contact's position) of the second geometry, world axes,
 * while the first one stands still. */
typedef struct qd_mj_change {
  int32_t contact;     /* which */
  double by_twist[42]; /* (7, 6) */
} qd_mj_change;

typedef struct qd_mj_info {
  int unknown_count; /* contacts that act and whose change is not known, */
  int unknown[16];   /* and the first of them */
  int iterations;    /* of Newton's method on the step's forces, from MuJoCo's */
  double residual;   /* of qacc, beside its largest number, where it ended */
} qd_mj_info;

typedef struct qd_mj_workspace qd_mj_workspace;

/* One thread's scratch for any models; grows with them. NULL if memory is exhausted. */
qd_mj_workspace *qd_mj_workspace_create(void);
void qd_mj_workspace_destroy(qd_mj_workspace *workspace);

/* Derivatives of one mj_step, Euler or implicitfast, by the implicit function theorem on MuJoCo's
 * convex program of accelerations: A (2 nv + na, 2 nv + na) and B (2 nv + na, nu) of the state (dq,
 * dv, act) in MuJoCo's tangent coordinates, as mjd_transitionFD orders them. QD_BAD_ARGUMENT:
 * contacts are unknown (info). QD_NUMERICAL_TROUBLE: Newton's matrix could not be factored.
 * QD_OUT_OF_MEMORY: the workspace could not grow. Of the models that its caller has checked. */
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
