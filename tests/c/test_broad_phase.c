/* The broad phase against asking every pair: the same contacts in the same order, bit by bit, the
 * same missed pairs and the same steps, for scenes of all shapes, crowded and sparse, any margin.
 */
#include "geometry_scenes.h"
#include "mechanics/missed_pairs.h"
#include "mechanics/model.h"

#include <stdlib.h>

enum { GEOMS_MAX = 160, PAIRS_MAX = GEOMS_MAX * GEOMS_MAX, CAPACITY = 40000 };

typedef struct scene {
  int32_t parent[GEOMS_MAX + 1], joint_type[GEOMS_MAX], joint_body[GEOMS_MAX];
  double body_pos[3 * GEOMS_MAX + 3], body_quat[4 * GEOMS_MAX + 4], mass[GEOMS_MAX + 1];
  double com[3 * GEOMS_MAX + 3], inertia[9 * GEOMS_MAX + 9];
  double joint_pos[3 * GEOMS_MAX], joint_axis[3 * GEOMS_MAX], joint_ref[GEOMS_MAX];
  double joint_range[2 * GEOMS_MAX], joint_stiffness[GEOMS_MAX], joint_springref[GEOMS_MAX];
  double default_q[7 * GEOMS_MAX];
  int32_t geom_type[GEOMS_MAX], geom_body[GEOMS_MAX];
  double geom_pos[3 * GEOMS_MAX], geom_quat[4 * GEOMS_MAX], geom_size[3 * GEOMS_MAX];
  int32_t pair_geom[2 * PAIRS_MAX], pair_dim[PAIRS_MAX];
  double pair_friction[5 * PAIRS_MAX], pair_margin[PAIRS_MAX];
  qd_model_spec spec;
} scene;

static void random_quat(double quat[4]) {
  double norm = 0.0;
  for (int i = 0; i < 4; ++i) {
    quat[i] = uniform(-1, 1);
    norm += quat[i] * quat[i];
  }
  for (int i = 0; i < 4; ++i) {
    quat[i] /= sqrt(norm);
  }
}

/* Every geometry on a free body of its own, but planes, on the world. */
static void add_geom(scene *s, int type, double scale, double spread) {
  qd_model_spec *p = &s->spec;
  const int g = p->geom_count++;
  s->geom_type[g] = type;
  for (int i = 0; i < 3; ++i) {
    s->geom_size[3 * g + i] = scale * log_uniform(0.1, 1.0);
    s->geom_pos[3 * g + i] = type == QD_PLANE ? -spread * uniform(0.5, 1.0) : uniform(-0.1, 0.1);
  }
  random_quat(s->geom_quat + 4 * g);
  if (type == QD_PLANE) {
    s->geom_body[g] = 0;
    return;
  }
  const int b = p->body_count++, j = p->joint_count++;
  s->geom_body[g] = b;
  s->mass[b] = 1.0;
  s->inertia[9 * b] = s->inertia[9 * b + 4] = s->inertia[9 * b + 8] = 0.1;
  s->joint_type[j] = QD_FREE;
  s->joint_body[j] = b;
  s->joint_range[2 * j] = -INFINITY;
  s->joint_range[2 * j + 1] = INFINITY;
  s->body_quat[4 * b] = 1.0;
  for (int i = 0; i < 3; ++i) {
    s->default_q[7 * j + i] = spread * uniform(-1, 1);
  }
  random_quat(s->default_q + 7 * j + 3);
}

/* Pairs in no order, sides exchanged, some twice, some left out, some with margins of their own. */
static void add_pairs(scene *s, double kept) {
  qd_model_spec *p = &s->spec;
  for (int a = 0; a < p->geom_count; ++a) {
    for (int b = 0; b < a; ++b) {
      const int planes = (s->geom_type[a] == QD_PLANE) + (s->geom_type[b] == QD_PLANE);
      const int times = planes == 2 || uniform(0, 1) > kept ? 0 : uniform(0, 1) < 0.03 ? 2 : 1;
      for (int k = 0; k < times; ++k) {
        const int i = p->pair_count++, exchanged = uniform(0, 1) < 0.5;
        s->pair_geom[2 * i] = exchanged ? a : b;
        s->pair_geom[2 * i + 1] = exchanged ? b : a;
        s->pair_dim[i] = 3;
        s->pair_margin[i] = uniform(0, 1) < 0.05 ? uniform(-0.1, 0.3) : 0.0;
      }
    }
  }
  for (int i = p->pair_count - 1; i > 0; --i) {
    const int k = (int)uniform(0, i + 1);
    for (int c = 0; c < 2; ++c) {
      const int32_t swap = s->pair_geom[2 * i + c];
      s->pair_geom[2 * i + c] = s->pair_geom[2 * k + c];
      s->pair_geom[2 * k + c] = swap;
    }
  }
}

static scene *scene_make(int shapes, int planes, double scale, double spread, double kept) {
  scene *s = calloc(1, sizeof *s);
  qd_model_spec *p = &s->spec;
  p->body_count = 1;
  s->body_quat[0] = 1.0;
  for (int i = 0; i < shapes + planes; ++i) {
    const int type = QD_SPHERE + (int)uniform(0, 5);
    add_geom(s, i < planes ? QD_PLANE : type, i % 17 == 16 ? 5.0 * scale : scale, spread);
  }
  add_pairs(s, kept);
  p->body_parent = s->parent, p->body_pos = s->body_pos, p->body_quat = s->body_quat;
  p->body_mass = s->mass, p->body_com = s->com, p->body_inertia = s->inertia;
  p->joint_type = s->joint_type, p->joint_body = s->joint_body, p->joint_pos = s->joint_pos;
  p->joint_axis = s->joint_axis, p->joint_ref = s->joint_ref, p->joint_range = s->joint_range;
  p->joint_stiffness = s->joint_stiffness, p->joint_springref = s->joint_springref;
  p->default_q = s->default_q;
  p->geom_type = s->geom_type, p->geom_body = s->geom_body, p->geom_pos = s->geom_pos;
  p->geom_quat = s->geom_quat, p->geom_size = s->geom_size;
  p->pair_geom = s->pair_geom, p->pair_dim = s->pair_dim;
  p->pair_friction = s->pair_friction, p->pair_margin = s->pair_margin;
  return s;
}

/* The model, and the same one that asks every pair. */
typedef struct twins {
  qd_model *model;
  qd_model plain;
  qd_workspace *workspace, *plain_workspace;
} twins;

static twins twins_make(const scene *s) {
  twins t;
  char message[256] = "";
  CHECK_SAY(qd_model_create(&s->spec, &t.model, message, sizeof message) == QD_OK, "%s", message);
  t.plain = *t.model;
  t.plain.pair_table.in_use = 0;
  t.workspace = qd_workspace_create(t.model, CAPACITY);
  t.plain_workspace = qd_workspace_create(&t.plain, CAPACITY);
  CHECK(t.workspace != NULL && t.plain_workspace != NULL);
  return t;
}

static void twins_destroy(twins *t) {
  qd_workspace_destroy(t->workspace);
  qd_workspace_destroy(t->plain_workspace);
  qd_model_destroy(t->model);
}

/* Returns the number of contacts. */
static int compare_contacts(twins *t, const double *q, double margin) {
  const qd_contact *found, *expected;
  int found_count, expected_count;
  CHECK(qd_collide(t->model, t->workspace, q, margin, &found, &found_count) == QD_OK);
  CHECK(qd_collide(&t->plain, t->plain_workspace, q, margin, &expected, &expected_count) == QD_OK);
  CHECK_SAY(found_count == expected_count, "%d contacts, expected %d, margin %g", found_count,
            expected_count, margin);
  if (found_count == expected_count && found_count > 0) {
    CHECK(memcmp(found, expected, (size_t)found_count * sizeof *found) == 0);
  }
  return found_count;
}

static int compare_missed(const twins *t, const double *q, const double *q_next, double margin) {
  const qd_model *models[2] = {t->model, &t->plain};
  collision c[2];
  char *blocks[2];
  int missed[2];
  for (int i = 0; i < 2; ++i) {
    kinematics k;
    arena a = {NULL, 0};
    for (int pass = 0; pass < 2; ++pass) {
      kinematics_lay_out(&k, models[i], &a);
      collision_lay_out(c + i, models[i], CAPACITY, &a);
      if (pass == 0) {
        blocks[i] = aligned_alloc(ARENA_ALIGNMENT, a.offset);
        a = (arena){blocks[i], 0};
      }
    }
    kinematics_compute(models[i], q, &k);
    CHECK(collision_compute(models[i], &k, margin, c + i) == QD_OK);
    missed[i] = missed_pairs_find(c + i, models[i], &k, q_next, 1);
  }
  CHECK(missed[0] == missed[1] && c[0].count == c[1].count && c[0].left_out == c[1].left_out);
  if (c[0].count == c[1].count && c[0].count > 0) {
    CHECK(memcmp(c[0].contact, c[1].contact, (size_t)c[0].count * sizeof(qd_contact)) == 0);
    CHECK(memcmp(c[0].feature, c[1].feature, (size_t)c[0].count * sizeof(int)) == 0);
  }
  free(blocks[0]);
  free(blocks[1]);
  return missed[0];
}

/* 1 if the boxes were no help and every pair was asked. */
static int sweep_gave_up(const twins *t, const double *q, double margin) {
  kinematics k;
  collision c;
  arena a = {NULL, 0};
  kinematics_lay_out(&k, t->model, &a);
  collision_lay_out(&c, t->model, CAPACITY, &a);
  char *block = aligned_alloc(ARENA_ALIGNMENT, a.offset);
  a = (arena){block, 0};
  kinematics_lay_out(&k, t->model, &a);
  collision_lay_out(&c, t->model, CAPACITY, &a);
  kinematics_compute(t->model, q, &k);
  CHECK(collision_compute(t->model, &k, margin, &c) == QD_OK);
  free(block);
  return c.broad.every;
}

/* Margins: penetrating ones only, touching, small, large, all. */
static const double MARGINS[] = {-0.05, 0.0, 1e-3, 0.05, 0.7, INFINITY};

static void test_same_contacts(void) {
  static const double SPREADS[] = {0.1, 1.0, 3.0, 10.0, 1e4};
  int contacts = 0, in_use = 0, swept = 0;
  for (int k = 0; k < 40; ++k) {
    scene *s = scene_make(40 + 6 * (k % 8), k % 3, 0.3, SPREADS[k % 5], k % 4 ? 1.0 : 0.4);
    twins t = twins_make(s);
    double q[7 * GEOMS_MAX], v[6 * GEOMS_MAX];
    memcpy(q, s->default_q, sizeof q);
    in_use += t.model->pair_table.in_use;
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (int m = 0; m < 6; ++m) {
        contacts += compare_contacts(&t, q, MARGINS[m]);
      }
      for (int i = 0; i < t.model->nv; ++i) {
        v[i] = uniform(-0.3, 0.3);
      }
      qd_integrate(t.model, q, v, q);
    }
    swept += !sweep_gave_up(&t, q, 0.0);
    twins_destroy(&t);
    free(s);
  }
  CHECK(contacts > 10000 && in_use > 20 && swept > 10);
}

static void test_same_missed_pairs(void) {
  int missed = 0;
  for (int k = 0; k < 12; ++k) {
    scene *s = scene_make(60, 1, 0.3, 3.0, 1.0);
    twins t = twins_make(s);
    double v[6 * GEOMS_MAX], q_next[7 * GEOMS_MAX];
    for (int i = 0; i < t.model->nv; ++i) {
      v[i] = uniform(-3.0, 3.0);
    }
    qd_integrate(t.model, s->default_q, v, q_next);
    missed += compare_missed(&t, s->default_q, q_next, 0.0);
    missed += compare_missed(&t, s->default_q, s->default_q, -0.1);
    twins_destroy(&t);
    free(s);
  }
  CHECK_SAY(missed > 100, "%d missed pairs", missed);
}

/* One shape far away, all in one place, side by side along one line, and numbers that overflow. */
static void test_extreme_places(void) {
  scene *s = scene_make(64, 1, 0.3, 1.0, 1.0);
  twins t = twins_make(s);
  double q[7 * GEOMS_MAX];
  CHECK(t.model->pair_table.in_use);
  memcpy(q, s->default_q, sizeof q);
  q[0] = 1e9;
  CHECK(compare_contacts(&t, q, 0.1) > 0);
  q[0] = 1e200;
  compare_contacts(&t, q, 0.1);
  for (int j = 0; j < 64; ++j) {
    vec3_set(q + 7 * j, 0.0, 0.0, 1.0);
  }
  CHECK(compare_contacts(&t, q, 0.0) > 1000);
  for (int j = 0; j < 64; ++j) {
    vec3_set(q + 7 * j, 0.0, 0.2 * j, 1.0);
  }
  CHECK(compare_contacts(&t, q, 0.0) > 50);
  twins_destroy(&t);
  free(s);
}

/* Spheres that touch to rounding, on a grid: the verdict is the narrow phase's. */
static void test_knife_edge(void) {
  scene *s = scene_make(64, 0, 0.3, 1.0, 1.0);
  for (int g = 0; g < 64; ++g) {
    s->geom_type[g] = QD_SPHERE;
    s->geom_size[3 * g] = 0.1;
    vec3_set(s->geom_pos + 3 * g, 0.0, 0.0, 0.0);
    vec3_set(s->default_q + 7 * g, 0.2 * (g % 4), 0.2 * (g / 4 % 4), 0.2 * (g / 16));
  }
  for (int i = 0; i < s->spec.pair_count; ++i) {
    s->pair_margin[i] = 0.0;
  }
  twins t = twins_make(s);
  for (double margin = -3e-16; margin < 4e-16; margin += 1e-16) {
    const qd_contact *found;
    int count, expected = 0;
    CHECK(qd_collide(t.model, t.workspace, s->default_q, margin, &found, &count) == QD_OK);
    for (int i = 0; i < s->spec.pair_count; ++i) {
      contact_point contact;
      placed_shape ball[2];
      for (int k = 0; k < 2; ++k) {
        const int g = s->pair_geom[2 * i + k];
        ball[k] = (placed_shape){.type = QD_SPHERE, .size = s->geom_size + 3 * g};
        vec3_copy(ball[k].pos, s->default_q + 7 * g);
      }
      expected += shapes_collide(ball, ball + 1, fmax(margin, 0.0), &contact);
    }
    CHECK_SAY(count == expected, "%d touch, expected %d", count, expected);
  }
  twins_destroy(&t);
  free(s);
}

int main(void) {
  test_same_contacts();
  test_same_missed_pairs();
  test_extreme_places();
  test_knife_edge();
  return check_report();
}
