#include "mechanics/pairs/distant_pairs.h"

#include <math.h>

/* Pairs are put off beyond so many times what they can close by in the motion that is commanded. */
#define MOTIONS 1.0
/* Where that is more than this share of the range, a bound would hardly put any off. */
#define WORTH 0.5
/* And beyond this share of the smaller geometry's size, where nothing moves. */
#define SHARE_OF_SIZE 1e-2

int distant_pairs_most(const qd_model *model) {
  int most = 0;
  for (int pair = 0; pair < model->pair_count; ++pair) {
    most += shapes_have_bound(model->geom_type[model->pair_geom[2 * pair]],
                              model->geom_type[model->pair_geom[2 * pair + 1]]);
  }
  return most;
}

/* Midway between the shapes; returns the angular speed. */
static double relative_motion(double velocity[3], const collision *c, const qd_model *model, int a,
                              int b, const screw *twist) {
  screw relative;
  double middle[3];
  const screw *of_a = twist + model->geom_body[a], *of_b = twist + model->geom_body[b];
  vec3_sub(relative.w, of_b->w, of_a->w);
  vec3_sub(relative.v, of_b->v, of_a->v);
  vec3_add(middle, c->shape[a].pos, c->shape[b].pos);
  vec3_scale(middle, middle, 0.5);
  screw_point_velocity(velocity, &relative, middle);
  return vec3_norm(relative.w);
}

double distant_pair_speed(const collision *c, const qd_model *model, int pair, const screw *twist) {
  double velocity[3];
  relative_motion(velocity, c, model, model->pair_geom[2 * pair], model->pair_geom[2 * pair + 1],
                  twist);
  return vec3_norm(velocity);
}

/* Contacts lie midway between points of the shapes, so no farther from the middle than half the sum
 * of the radii; and a fifth, since manifolds take hexagons about caps. There a motion v closes the
 * gap by n.v, and sliding opens the cone by friction times the rest of v: together less than
 * sqrt(1 + f^2) |v|. */
double distant_pair_closing(const collision *c, const qd_model *model, int pair,
                            const screw *twist) {
  const int a = model->pair_geom[2 * pair], b = model->pair_geom[2 * pair + 1];
  const double *f = model->parameters.pair_friction + 5 * pair;
  const double along = f[0] > f[1] ? f[0] : f[1];
  double velocity[3];
  const double turn = relative_motion(velocity, c, model, a, b, twist);
  const double arm = 0.6 * (model->geom_radius[a] + model->geom_radius[b]);
  const double speed = vec3_norm(velocity) + turn * arm;
  return sqrt(1.0 + along * along) * speed + (f[2] + f[3] + f[4]) * turn;
}

void distant_pair_take_back(collision *c, int i, int count) {
  const int pair = c->distant[i].pair;
  c->count = count;
  if (c->counts[pair] == PAIR_LISTED) {
    c->counts[pair] = PAIR_DISTANT;
    ++c->left_out;
  }
}

void distant_pair_keep(collision *c, int i) { c->distant[i] = c->distant[--c->distant_count]; }

int distant_pairs_add(collision *c, const qd_model *model, int pair, double range,
                      const screw *twist) {
  const int a = model->pair_geom[2 * pair], b = model->pair_geom[2 * pair + 1];
  if (!shapes_have_bound(c->shape[a].type, c->shape[b].type)) {
    return 0;
  }
  const double size = fmin(model->geom_radius[a], model->geom_radius[b]);
  const double near =
      fmax(MOTIONS * distant_pair_closing(c, model, pair, twist), SHARE_OF_SIZE * size);
  const double bound =
      near < WORTH * range ? shapes_bound(c->shape + a, c->shape + b, near) : -INFINITY;
  if (bound > near) {
    c->distant[c->distant_count++] = (distant_pair){pair, bound};
    c->counts[pair] = PAIR_DISTANT;
    return 1;
  }
  return 0;
}
