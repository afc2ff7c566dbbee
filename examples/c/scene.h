/* A smooth finger on a slide, and a ball on a floor before it. */
#include <math.h>
#include <qdsim.h>

/* Bodies: the world, a finger along x, a ball of 0.2 kg. Geometries: floor, fingertip, ball. */
static qd_status create(qd_model **model, char *message, size_t message_size) {
  const double zeros[9] = {0}, I = 0.4 * 0.2 * 0.05 * 0.05;
  const qd_model_spec spec = {
      .body_count = 3,
      .body_parent = (const int32_t[]){0, 0, 0},
      .body_pos = (const double[]){0, 0, 0, -0.095, 0, 0.05, 0, 0, 0.05},
      .body_quat = (const double[]){1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0},
      .body_mass = (const double[]){0, 0.1, 0.2},
      .body_com = zeros,
      .body_inertia = (const double[27]){[9] = I, [13] = I, [17] = I, [18] = I, [22] = I, [26] = I},
      .joint_count = 2,
      .joint_type = (const int32_t[]){QD_SLIDE, QD_FREE},
      .joint_body = (const int32_t[]){1, 2},
      .joint_pos = zeros,
      .joint_axis = (const double[]){1, 0, 0, 0, 0, 0},
      .joint_ref = zeros,
      .joint_range = (const double[]){-INFINITY, INFINITY, -INFINITY, INFINITY},
      .joint_stiffness = zeros,
      .joint_springref = zeros,
      .default_q = (const double[]){0, 0, 0, 0.05, 1, 0, 0, 0},
      .actuator_count = 1,
      .actuator_joint = (const int32_t[]){0},
      .actuator_stiffness = (const double[]){500},
      .actuator_gear = (const double[]){1},
      .geom_count = 3,
      .geom_type = (const int32_t[]){QD_PLANE, QD_SPHERE, QD_SPHERE},
      .geom_body = (const int32_t[]){0, 1, 2},
      .geom_pos = zeros,
      .geom_quat = (const double[]){1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0},
      .geom_size = (const double[]){0, 0, 0, 0.03, 0, 0, 0.05, 0, 0},
      .pair_count = 2,
      .pair_geom = (const int32_t[]){0, 2, 1, 2},
      .pair_dim = (const int32_t[]){3, 1},
      .pair_friction = (const double[]){0.8, 0.8, 0, 0, 0, 0, 0, 0, 0, 0},
      .pair_margin = zeros,
      .gravity = {0, 0, -9.81},
  };
  return qd_model_create(&spec, model, message, message_size);
}
