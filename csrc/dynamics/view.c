#include "dynamics/view.h"

#include <math.h>

#include "dynamics/workspace.h"

#define WHOLE_TURN (HALF_TURN * 2.0)
#define NEAR_LENGTHS 1.2 /* of `length`; a tip within this distance is near */

int qd_view_size(const qd_view *view) {
  return 14 + (view->with_world ? 12 : 0) + 6 * view->tip_count + view->joint_count +
         view->more_count;
}

/* Writes numbers in turn to the view's columns, if they are wanted. */
typedef struct writer {
  double *observation;
  const int32_t *column;
} writer;

static void put(writer *w, double number) {
  const int32_t column = *w->column++;
  if (column >= 0) {
    w->observation[column] = number;
  }
}

static void put_vector(writer *w, const double v[3], double scale) {
  for (int i = 0; i < 3; ++i) {
    put(w, scale * v[i]);
  }
}

/* The first two columns of a rotation matrix, which are continuous and unique. */
static void put_rotation(writer *w, const double R[9]) {
  for (int i = 0; i < 3; ++i) {
    put(w, R[3 * i]);
    put(w, R[3 * i + 1]);
  }
}

/* Distance and angle from the goal. */
static void errors_compute(const qd_model *model, const qd_view *view, const view_sample *s,
                           double *displacement, double *shift, double *turn) {
  double squares[2] = {0.0, 0.0};
  qd_difference(model, s->goal, s->q, displacement);
  for (int i = 0; i < view->coordinate_count; ++i) {
    double e = displacement[view->coordinate[i]];
    if (view->turns[i] == 2) {
      e -= WHOLE_TURN * rint(e / WHOLE_TURN);
    }
    squares[view->turns[i] != 0] += e * e;
  }
  *shift = sqrt(squares[0]);
  *turn = sqrt(squares[1]);
}

/* Numbers of the body, its goal and their relative pose. */
static void put_body(writer *w, const qd_view *view, const view_sample *s, const double *pos,
                     const double *rot, double shift, double turn) {
  double gap[3], away[3], column[3], relative[9];
  vec3_sub(gap, s->pose, pos);
  mat3_tmul_vec(away, rot, gap);
  put_vector(w, away, 1.0 / view->length);
  put_vector(w, away, 1.0 / fmax(vec3_norm(away), 1e-12));
  put(w, log1p(shift / view->position_tolerance));
  put(w, log1p(turn / view->rotation_tolerance));
  for (int j = 0; j < 2; ++j) {
    const double *goal = s->pose + 3;
    double turned[3];
    mat3_column(column, goal, j);
    mat3_tmul_vec(turned, rot, column);
    for (int i = 0; i < 3; ++i) {
      relative[3 * i + j] = turned[i];
    }
  }
  put_rotation(w, relative);
  if (view->with_world) {
    put_vector(w, pos, 1.0 / view->length);
    put_rotation(w, rot);
    put_vector(w, gap, 1.0 / view->length);
  }
}

/* Positions of the tips relative to the body, in its axes and then in the world's. Returns their
 * mean distance. */
static double put_tips(writer *w, const qd_view *view, const double *body_pos, const double *pos,
                       const double *rot) {
  double far = 0.0, gap[3], near[3];
  for (int i = 0; i < view->tip_count; ++i) {
    vec3_sub(gap, body_pos + 3 * view->tip[i], pos);
    mat3_tmul_vec(near, rot, gap);
    put_vector(w, near, 1.0 / view->length);
    far += vec3_norm(gap);
  }
  for (int i = 0; i < view->tip_count; ++i) {
    vec3_sub(gap, body_pos + 3 * view->tip[i], pos);
    put_vector(w, gap, 1.0 / view->length);
  }
  return view->tip_count > 0 ? far / view->tip_count : 0.0;
}

void view_compute(const qd_model *model, qd_workspace *workspace, const qd_view *view,
                  const view_sample *sample, double *displacement, double *observation,
                  double measure[QD_VIEW_MEASURES]) {
  const kinematics *k = &workspace->kinematics;
  writer w = {observation, view->column};
  double shift, turn, away[3];
  kinematics_compute(model, sample->q, NULL, &workspace->kinematics);
  errors_compute(model, view, sample, displacement, &shift, &turn);
  const double *pos = k->body_pos + 3 * view->body, *rot = k->body_rot + 9 * view->body;
  put_body(&w, view, sample, pos, rot, shift, turn);
  const double far = put_tips(&w, view, k->body_pos, pos, rot) / view->length;
  for (int i = 0; i < view->joint_count; ++i) {
    put(&w, (sample->q[view->joint[i]] - view->middle[i]) / view->half[i]);
  }
  for (int i = 0; i < view->more_count; ++i) {
    put(&w, sample->more[i]);
  }
  const double error = hypot(shift, view->length * turn);
  vec3_sub(away, pos, view->home);
  measure[QD_VIEW_SHIFT] = shift;
  measure[QD_VIEW_TURN] = turn;
  measure[QD_VIEW_OFF] = fmax(shift / view->position_tolerance, turn / view->rotation_tolerance);
  measure[QD_VIEW_POTENTIAL] = -error / view->length - log1p(error / view->position_tolerance) -
                               view->reach * fmax(0.0, far - NEAR_LENGTHS);
  measure[QD_VIEW_AWAY] = vec3_norm(away);
}

void qd_judge(const qd_game *game, int64_t count, const double *measure, const double *before,
              const uint8_t *failed, const int64_t *done, double *reward,
              uint8_t *const mark[QD_GAME_MARKS]) {
  for (int64_t i = 0; i < count; ++i) {
    const double *m = measure + i * QD_VIEW_MEASURES;
    const int lost = !(m[QD_VIEW_AWAY] <= game->lost), ended = lost || failed[i];
    const int success = !ended && m[QD_VIEW_OFF] <= 1.0;
    reward[i] = m[QD_VIEW_POTENTIAL] - before[i] + (success ? game->success : 0.0) -
                (ended ? game->failure : 0.0) - game->cost;
    mark[QD_GAME_TERMINATED][i] = ended || success;
    mark[QD_GAME_TRUNCATED][i] = !ended && !success && done[i] >= game->horizon;
    mark[QD_GAME_SUCCESS][i] = (uint8_t)success;
    mark[QD_GAME_LOST][i] = (uint8_t)lost;
  }
}
