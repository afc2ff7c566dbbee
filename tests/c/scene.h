/* Scenes for C tests: bodies on one joint each, below the world, with their shapes and pairs. */
#ifndef QD_TEST_SCENE_H
#define QD_TEST_SCENE_H

#include <stdlib.h>

#include "check.h"
#include "qdsim.h"

#define SCENE_BODIES 100
#define SCENE_GEOMS 420
#define SCENE_PAIRS 420

typedef struct scene {
  int bodies, coordinates, actuators, geoms, pairs; /* bodies: the world included */
  int32_t parent[SCENE_BODIES], joint_type[SCENE_BODIES], joint_body[SCENE_BODIES];
  double pos[3 * SCENE_BODIES], quat[4 * SCENE_BODIES], mass[SCENE_BODIES];
  double inertia[9 * SCENE_BODIES], axis[3 * SCENE_BODIES], range[2 * SCENE_BODIES];
  double q[7 * SCENE_BODIES], zeros[3 * SCENE_GEOMS];
  int32_t actuator_joint[SCENE_BODIES];
  double actuator_stiffness[SCENE_BODIES], actuator_gear[SCENE_BODIES];
  int32_t geom_type[SCENE_GEOMS], geom_body[SCENE_GEOMS];
  double geom_pos[3 * SCENE_GEOMS], geom_quat[4 * SCENE_GEOMS], geom_size[3 * SCENE_GEOMS];
  int32_t pair[2 * SCENE_PAIRS], dim[SCENE_PAIRS];
  double friction[5 * SCENE_PAIRS];
} scene;

/* The world alone. */
static inline scene *scene_create(void) {
  scene *s = calloc(1, sizeof *s);
  s->bodies = 1;
  s->quat[0] = 1.0;
  return s;
}

/* A body at (x, y, z) with the same inertia about every axis, free or on a slide along x; its
 * number. A free one starts there, a slide at zero. */
static inline int scene_add_body(scene *s, qd_joint_type joint, double x, double y, double z,
                                 double mass, double inertia) {
  const int body = s->bodies++, at = body - 1;
  double *q = s->q + s->coordinates;
  s->joint_type[at] = (int32_t)joint;
  s->joint_body[at] = body;
  s->axis[3 * at] = joint == QD_SLIDE ? 1.0 : 0.0;
  s->range[2 * at] = -INFINITY;
  s->range[2 * at + 1] = INFINITY;
  s->mass[body] = mass;
  s->quat[4 * body] = 1.0;
  s->pos[3 * body] = x;
  s->pos[3 * body + 1] = y;
  s->pos[3 * body + 2] = z;
  for (int k = 0; k < 3; ++k) {
    s->inertia[9 * body + 4 * k] = inertia;
  }
  if (joint == QD_FREE) {
    q[0] = x;
    q[1] = y;
    q[2] = z;
    q[3] = 1.0;
  }
  s->coordinates += joint == QD_FREE ? 7 : 1;
  return body;
}

static inline void scene_add_actuator(scene *s, int body, double stiffness) {
  s->actuator_joint[s->actuators] = body - 1;
  s->actuator_gear[s->actuators] = 1.0;
  s->actuator_stiffness[s->actuators++] = stiffness;
}

/* A plane, or a sphere of a radius, at (x, y, 0) of its body; its number. */
static inline int scene_add_geom(scene *s, qd_shape_type type, int body, double x, double y,
                                 double radius) {
  const int geom = s->geoms++;
  s->geom_type[geom] = (int32_t)type;
  s->geom_body[geom] = body;
  s->geom_pos[3 * geom] = x;
  s->geom_pos[3 * geom + 1] = y;
  s->geom_quat[4 * geom] = 1.0;
  s->geom_size[3 * geom] = radius;
  return geom;
}

/* dim 1 or 3 */
static inline void scene_add_pair(scene *s, int a, int b, int dim, double friction) {
  const int pair = s->pairs++;
  s->pair[2 * pair] = a;
  s->pair[2 * pair + 1] = b;
  s->dim[pair] = dim;
  s->friction[5 * pair] = s->friction[5 * pair + 1] = friction;
}

/* The model; the scene is gone. */
static inline qd_model *scene_finish(scene *s) {
  const qd_model_spec spec = {.body_count = s->bodies,
                              .body_parent = s->parent,
                              .body_pos = s->pos,
                              .body_quat = s->quat,
                              .body_mass = s->mass,
                              .body_com = s->zeros,
                              .body_inertia = s->inertia,
                              .joint_count = s->bodies - 1,
                              .joint_type = s->joint_type,
                              .joint_body = s->joint_body,
                              .joint_pos = s->zeros,
                              .joint_axis = s->axis,
                              .joint_ref = s->zeros,
                              .joint_range = s->range,
                              .joint_stiffness = s->zeros,
                              .joint_springref = s->zeros,
                              .default_q = s->q,
                              .actuator_count = s->actuators,
                              .actuator_joint = s->actuator_joint,
                              .actuator_stiffness = s->actuator_stiffness,
                              .actuator_gear = s->actuator_gear,
                              .geom_count = s->geoms,
                              .geom_type = s->geom_type,
                              .geom_body = s->geom_body,
                              .geom_pos = s->geom_pos,
                              .geom_quat = s->geom_quat,
                              .geom_size = s->geom_size,
                              .pair_count = s->pairs,
                              .pair_geom = s->pair,
                              .pair_dim = s->dim,
                              .pair_friction = s->friction,
                              .pair_margin = s->zeros,
                              .gravity = {0, 0, -9.81}};
  qd_model *model = NULL;
  char message[200] = "";
  const qd_status status = qd_model_create(&spec, &model, message, sizeof message);
  CHECK(status == QD_OK);
  if (status != QD_OK) {
    fprintf(stderr, "%s\n", message);
  }
  free(s);
  return model;
}

#endif
