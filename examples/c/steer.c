/* A loop of its own with derivatives: the finger steers the ball to a goal by Newton's method on
 * the command of each step. cc steer.c $(pkg-config --cflags --libs qdsim) -lm -o steer */
#include "scene.h"

#include <stdio.h>
#include <string.h>

enum { NQ = 8, NV = 7, BALL = 1 }; /* q: slide, then place and quaternion of the ball */

/* The command whose step brings the ball to where it is wanted, at most so far from the last one.
 * Derivatives are those of the exact step; where that does not touch the ball they are zero, and
 * those of the smoothed step say where it is. */
static qd_status steer(const qd_model *model, qd_workspace *workspace, double wanted, double most,
                       const double *q, double *u, double *q_next) {
  qd_step_options options[2] = {qd_step_options_default(), qd_step_options_default()};
  options[1].kappa = 1e3; /* 1/J: a log barrier, felt at a distance */
  const double first = *u;
  double delta[NV], limit_force[NV], B[NV];
  qd_step_result result = {.q_next = q_next, .delta = delta, .limit_force = limit_force};
  const qd_step_input input = {.q = q, .u = u};
  qd_status status = QD_OK;
  for (int i = 0; i < 5 && status == QD_OK; ++i) {
    B[BALL] = 0.0;
    for (int smooth = 0; smooth < 2 && status == QD_OK && B[BALL] < 0.05; ++smooth) {
      status = qd_linearize(model, workspace, &options[smooth], &input, &result, NULL, B);
    }
    const double newton = *u + (wanted - q_next[BALL]) / fmax(B[BALL], 0.05);
    *u = fmin(fmax(newton, first - most), first + most);
  }
  return status == QD_OK ? qd_step(model, workspace, &options[0], &input, &result) : status;
}

int main(void) {
  char message[200] = "";
  qd_model *model = NULL;
  if (create(&model, message, sizeof message) != QD_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  qd_workspace *workspace = qd_workspace_create(model, 16);
  double q[NQ] = {0, 0, 0, 0.05, 1, 0, 0, 0}, q_next[NQ], u = 0.0;
  qd_status status = workspace ? QD_OK : QD_OUT_OF_MEMORY;
  for (int i = 0; i < 30 && status == QD_OK; ++i) {
    status = steer(model, workspace, 0.08, 0.01, q, &u, q_next);
    memcpy(q, q_next, sizeof q);
  }
  printf("the ball is at %.4f m, wanted 0.0800 m: %s\n", q[BALL], qd_status_name(status));
  qd_workspace_destroy(workspace);
  qd_model_destroy(model);
  return status != QD_OK;
}
