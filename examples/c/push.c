/* A smooth finger on a slide pushes a ball over a floor: ten steps, and how the ball answers the
 * command. cc push.c $(pkg-config --cflags --libs qdsim) -o push */
#include "scene.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  char message[200] = "";
  qd_model *model = NULL;
  if (create(&model, message, sizeof message) != QD_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  qd_workspace *workspace = qd_workspace_create(model, 16);
  const qd_step_options options = qd_step_options_default();
  double q[8] = {0, 0, 0, 0.05, 1, 0, 0, 0}, q_next[8], delta[7], limit_force[7], B[7];
  qd_step_result result = {.q_next = q_next, .delta = delta, .limit_force = limit_force};
  qd_status status = workspace ? QD_OK : QD_OUT_OF_MEMORY;
  printf("command  finger    ball  force on it  d(ball)/d(command)\n");
  for (int i = 1; i <= 10 && status == QD_OK; ++i) {
    const double u = 0.01 * i;
    const qd_step_input input = {.q = q, .u = &u};
    status = qd_linearize(model, workspace, &options, &input, &result, NULL, B);
    memcpy(q, q_next, sizeof q);
    printf("%7.3f %7.4f %7.4f %12.3f %19.3f\n", u, q[0], q[1], 500 * (u - q[0]), B[1]);
  }
  printf("%s\n", qd_status_name(status));
  qd_workspace_destroy(workspace);
  qd_model_destroy(model);
  return status != QD_OK;
}
