#include "dynamics/step.h"

#include <math.h>
#include <string.h>

#include "dynamics/workspace.h"

qd_step_options qd_step_options_default(void) {
  qd_step_options o;
  memset(&o, 0, sizeof o);
  o.h = 0.1;
  o.friction_model = QD_CONE;
  o.ray_count = 4;
  o.kappa = INFINITY;
  o.epsilon = 1.0;
  o.margin = 0.1;
  o.add_missed_pairs = 1;
  o.joint_limits = 1;
  o.soft_constraints = QD_SOFT_MOCAP;
  o.force_limits = 1;
  o.tolerance = 1e-9;
  o.iteration_limit = 100;
  o.bounce_speed = -1.0;
  o.recovery_speed = INFINITY;
  o.slip_speed = 0.01;
  o.bristle_stiffness = 1e4;
  o.bristle_time = 0.05;
  return o;
}

static int rays_fit(const qd_step_options *o, const qd_model *model) {
  const int least = model->planar ? 2 : 3;
  return o->friction_model == QD_CONE ||
         (o->friction_model == QD_PYRAMID && o->ray_count <= QD_RAYS_MAX && o->ray_count >= least);
}

/* Each ray of a pyramid has its own force, so a compliant normal does not give a cone. */
static int compliance_fits(const qd_step_options *o, const qd_model *model) {
  const int gives = o->contact_compliance > 0.0 || model->pair.give;
  const int is_cone = o->friction_model == QD_CONE || o->ray_count == 2;
  return o->contact_compliance >= 0.0 && isfinite(o->contact_compliance) && (!gives || is_cone);
}

/* MuJoCo's contacts are a cone with compliances. In the quasi-dynamic step they creep at a rate
 * given by damping; in the second-order step they neither bounce nor act at a distance. */
static int contacts_fit(const qd_step_options *o, const qd_model *model) {
  return o->contacts == QD_CONTACTS_RIGID ||
         (o->contacts == QD_CONTACTS_MUJOCO && o->friction_model == QD_CONE &&
          o->law == QD_LAW_CONVEX && o->contact_compliance == 0.0 &&
          (o->dynamic ? o->restitution == 0.0 && isinf(o->kappa) && model->pair.bouncing < 0
                      : model->pair.undamped < 0));
}

static int bounces_fit(const qd_step_options *o) {
  return o->recovery_speed >= 0.0 &&
         (!o->dynamic ||
          (o->restitution >= 0.0 && o->restitution <= 1.0 && !isnan(o->bounce_speed)));
}

static int law_fits(const qd_step_options *o) {
  return o->law == QD_LAW_CONVEX ||
         (o->law == QD_LAW_COULOMB && isinf(o->kappa) && o->stop_after >= 0);
}

/* Regularised friction and bristles depend on speeds, and are laws of exact steps; the elastic cone
 * lifts polygons. */
static int patches_fit(const qd_step_options *o) {
  switch (o->patch_law) {
  case QD_PATCH_DISC:
    return 1;
  case QD_PATCH_ELASTIC_CONE:
    return o->patch_friction == QD_FRICTION_POLYGONS;
  case QD_PATCH_REGULARIZED:
    return o->dynamic && isinf(o->kappa) && o->slip_speed > 0.0 && isfinite(o->slip_speed);
  case QD_PATCH_BRISTLE:
    return o->dynamic && isinf(o->kappa) && o->bristle_stiffness > 0.0 &&
           isfinite(o->bristle_stiffness) && o->bristle_time >= 0.0 && isfinite(o->bristle_time);
  default:
    return 0;
  }
}

int options_make_sense(const qd_step_options *o, const qd_model *model) {
  const int ratio_fits =
      o->mass_ratio == 0.0 || (o->mass_ratio > 0.0 && model->smallest_stiffness > 0.0);
  return bounces_fit(o) && law_fits(o) && compliance_fits(o, model) && contacts_fit(o, model) &&
         o->h > 0.0 && isfinite(o->h) && o->kappa > 0.0 && o->epsilon >= 0.0 &&
         isfinite(o->epsilon) && !isnan(o->margin) && o->tolerance > 0.0 &&
         o->iteration_limit > 0 && rays_fit(o, model) && ratio_fits && patches_fit(o);
}
