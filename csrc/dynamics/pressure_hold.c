#include "dynamics/pressure_hold.h"

/* Largest rotation of a pair, rad, or displacement in sums of both bodies' radii, for which patches
 * to second order are valid. */
#define FAR 0.7
/* If a step separates pairs, the next one becomes shorter by MORE, and a repeated holding stiffness
 * grows at least by MORE. After an accepted step it is multiplied by LESS. */
#define MORE 4.0
#define LESS 0.1

static double both_radii(const qd_model *model, const soft_pair *pair) {
  const int *geom = model->pair.geom + 2 * pair->pair;
  return model->geom.radius[geom[0]] + model->geom.radius[geom[1]];
}

reach pressure_hold_reach(const qd_workspace *w, const double *step) {
  reach out = {0.0, 0.0, 0.0};
  for (int i = 0; i < w->problem.model->pair.soft_count; ++i) {
    const soft_pair *pair = w->problem.soft.pair + i;
    screw twist[2];
    double motion[6];
    if (!pressure_takes_part(w, pair) || !pair->is_active) {
      continue;
    }
    pressure_pair_twists(twist, w->problem.model, &w->kinematics,
                         w->collision.contact + pair->contact, step);
    pressure_relative_motion(motion, pair, pair->centre, twist);
    const double shift = vec3_norm(motion) / pair->length, turn = vec3_norm(motion + 3);
    out.share =
        fmax(out.share, fmax(turn, vec3_norm(motion) / both_radii(w->problem.model, pair)) / FAR);
    out.farthest = fmax(out.farthest, shift + turn);
    out.squares += pair->length * pair->length * (shift * shift + turn * turn);
  }
  return out;
}

/* Chooses the stiffness such that the program's step, with the same forces, becomes shorter by this
 * ratio. */
static void hold(pressure_contact *s, const reach *by, const slope *along, double ratio) {
  const double most = (along->own + along->pairs) * ratio / by->squares;
  for (int i = 0; i < s->model->pair.soft_count && by->squares > 0.0; ++i) {
    s->pair[i].hold = fmax(most, MORE * s->pair[i].hold);
  }
  ++s->holds;
}

int pressure_hold_far(pressure_contact *s, const reach *by, const slope *along) {
  if (by->share <= 1.0) {
    return 0;
  }
  hold(s, by, along, by->share);
  return 1;
}

void pressure_hold_parted(pressure_contact *s, const reach *by, const slope *along) {
  hold(s, by, along, MORE);
}

void pressure_hold_less(pressure_contact *s) {
  for (int i = 0; i < s->model->pair.soft_count; ++i) {
    s->pair[i].hold *= LESS;
  }
}
