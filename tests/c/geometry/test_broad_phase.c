/* Both broad phases against asking every pair: the same contacts in the same order, bit by bit, the
 * same missed pairs and the same steps, for scenes of all shapes, crowded and sparse, any margin.
 */
#include "base/block.h"
#include "geometry_scenes.h"
#include "mechanics/model.h"
#include "mechanics/pairs/missed_pairs.h"

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

/* One model with the scratch of its collision stage. */
typedef struct stage {
  const qd_model *model;
  char *block;
  kinematics k, next;
  collision c;
} stage;

static void stage_make(stage *s, const qd_model *model) {
  arena a = {NULL, 0};
  s->model = model;
  for (int pass = 0; pass < 2; ++pass) {
    kinematics_lay_out(&s->k, model, &a);
    kinematics_lay_out(&s->next, model, &a);
    collision_lay_out(&s->c, model, CAPACITY, &a);
    if (pass == 0) {
      s->block = block_allocate(a.offset);
      CHECK(s->block != NULL);
      a = (arena){s->block, 0};
    }
  }
}

static void stage_run(stage *s, const double *q, double margin) {
  kinematics_compute(s->model, q, NULL, &s->k);
  CHECK(collision_compute(s->model, &s->k, margin, &s->c) == QD_OK);
}

/* The same, pair by pair. */
static void stage_ask_each(stage *s, const double *q, double margin) {
  const qd_model *m = s->model;
  collision *c = &s->c;
  kinematics_compute(m, q, NULL, &s->k);
  collision_place_shapes(c->shape, m, &s->k);
  c->count = 0;
  c->left_out = m->pair.count;
  memset(c->counts, 0, (size_t)m->pair.count);
  for (int i = 0; i < m->pair.count; ++i) {
    const double range = fmax(margin, m->pair.margin[i]);
    if (!collision_out_of_range(c, m, m->pair.geom[2 * i], m->pair.geom[2 * i + 1], range)) {
      collision_add_pair(c, m, i, range);
    }
  }
}

/* The model, the same one as if it were small, and each pair asked. */
typedef struct twins {
  qd_model *model;
  qd_model plain;
  stage swept, spheres, asked;
} twins;

static void twins_make(twins *t, const scene *s) {
  char message[256] = "";
  CHECK_SAY(qd_model_create(&s->spec, &t->model, message, sizeof message) == QD_OK, "%s", message);
  t->plain = *t->model;
  t->plain.pair.table.in_use = 0;
  stage_make(&t->swept, t->model);
  stage_make(&t->spheres, &t->plain);
  stage_make(&t->asked, &t->plain);
}

static void twins_destroy(twins *t) {
  block_free(t->swept.block);
  block_free(t->spheres.block);
  free(t->asked.block);
  qd_model_destroy(t->model);
}

/* Returns the number of contacts. */
static int same_contacts(const collision *found, const collision *expected) {
  CHECK_SAY(found->count == expected->count, "%d contacts, expected %d", found->count,
            expected->count);
  CHECK(found->left_out == expected->left_out);
  if (found->count == expected->count && found->count > 0) {
    const size_t count = (size_t)found->count;
    CHECK(memcmp(found->contact, expected->contact, count * sizeof(qd_contact)) == 0);
    CHECK(memcmp(found->feature, expected->feature, count * sizeof *found->feature) == 0);
  }
  return found->count;
}

static int compare_contacts(twins *t, const double *q, double margin) {
  stage_run(&t->swept, q, margin);
  stage_run(&t->spheres, q, margin);
  stage_ask_each(&t->asked, q, margin);
  same_contacts(&t->spheres.c, &t->asked.c);
  return same_contacts(&t->swept.c, &t->asked.c);
}

static int find_missed(stage *s, const double *q, const double *delta, double margin,
                       const double *q_next) {
  return missed_pairs_find(&s->c, s->model, q, delta, NULL, margin, &s->next, q_next, 1);
}

/* The one that asks each pair is told that shapes may have gone anywhere, so it rules no pair out
 * by its travel. */
static int compare_missed(twins *t, const double *q, const double *q_next, double margin) {
  double delta[6 * GEOMS_MAX], anywhere[6 * GEOMS_MAX];
  qd_difference(t->model, q_next, q, delta);
  for (int i = 0; i < t->model->nv; ++i) {
    anywhere[i] = 1e9;
  }
  compare_contacts(t, q, margin);
  const int missed = find_missed(&t->swept, q, delta, margin, q_next);
  CHECK(missed == find_missed(&t->asked, q, anywhere, margin, q_next));
  CHECK(missed == find_missed(&t->spheres, q, delta, margin, q_next));
  same_contacts(&t->spheres.c, &t->asked.c);
  same_contacts(&t->swept.c, &t->asked.c);
  return missed;
}

/* Margins: penetrating ones only, touching, small, large, all. */
static const double MARGINS[] = {-0.05, 1e-3, 0.05, 0.7, INFINITY, 0.0};

static void test_same_contacts(void) {
  static const double SPREADS[] = {0.1, 1.0, 3.0, 10.0, 1e4};
  int contacts = 0, in_use = 0, swept = 0;
  for (int k = 0; k < 40; ++k) {
    scene *s = scene_make(40 + 6 * (k % 8), k % 3, 0.3, SPREADS[k % 5], k % 4 ? 1.0 : 0.4);
    twins t;
    twins_make(&t, s);
    double q[7 * GEOMS_MAX], v[6 * GEOMS_MAX];
    memcpy(q, s->default_q, sizeof q);
    in_use += t.model->pair.table.in_use;
    for (int repeat = 0; repeat < 2; ++repeat) {
      for (int m = 0; m < 6; ++m) {
        contacts += compare_contacts(&t, q, MARGINS[m]);
        CHECK(isfinite(MARGINS[m]) || t.swept.c.broad.every);
      }
      for (int i = 0; i < t.model->nv; ++i) {
        v[i] = uniform(-0.3, 0.3);
      }
      qd_integrate(t.model, q, v, q);
    }
    swept += !t.swept.c.broad.every;
    twins_destroy(&t);
    free(s);
  }
  CHECK(contacts > 10000 && in_use > 20 && swept > 10);
}

static void test_same_missed_pairs(void) {
  int missed = 0, short_ways = 0;
  for (int k = 0; k < 12 || (short_ways <= 20 && k < 60); ++k) { /* until there are enough */
    scene *s = scene_make(60, 1, 0.3, 3.0, 1.0);
    twins t;
    twins_make(&t, s);
    double v[6 * GEOMS_MAX], q_next[7 * GEOMS_MAX];
    for (int i = 0; i < t.model->nv; ++i) {
      v[i] = uniform(-3.0, 3.0);
    }
    qd_integrate(t.model, s->default_q, v, q_next);
    missed += compare_missed(&t, s->default_q, q_next, 0.0);
    missed += compare_missed(&t, s->default_q, s->default_q, -0.1);
    for (int i = 0; i < t.model->nv; ++i) {
      v[i] *= 0.02 * (k % 12 + 1); /* shorter or longer than the margin */
    }
    qd_integrate(t.model, s->default_q, v, q_next);
    short_ways += compare_missed(&t, s->default_q, q_next, 0.3);
    t.model->pair.table.in_use = 0;
    short_ways += compare_missed(&t, s->default_q, q_next, 0.3);
    twins_destroy(&t);
    free(s);
  }
  CHECK_SAY(missed > 100, "%d missed pairs", missed);
  CHECK_SAY(short_ways > 20, "%d missed pairs on short ways", short_ways);
}

/* One shape far away, all in one place, side by side along one line, and numbers that overflow. */
static void test_extreme_places(void) {
  scene *s = scene_make(64, 1, 0.3, 1.0, 1.0);
  twins t;
  twins_make(&t, s);
  double q[7 * GEOMS_MAX];
  CHECK(t.model->pair.table.in_use);
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
    vec3_set(q + 7 * j, 0.0, 0.1 * j, 1.0);
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
  twins t;
  twins_make(&t, s);
  for (double margin = -3e-16; margin < 4e-16; margin += 1e-16) {
    int expected = 0;
    const int count = compare_contacts(&t, s->default_q, margin);
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
