#include "dynamics/problem/pressure_friction.h"

#include "base/quat.h"
#include "base/rounding.h"
#include "base/symmetric.h"

double pressure_friction_part(const qd_step_options *o) {
  return o->patch_law == QD_PATCH_BRISTLE ? o->h / (o->h + o->bristle_time) : 0.0;
}

void pressure_friction_stretch(double out[3], double turned[3], const soft_pair *pair,
                               const double x[3]) {
  const body_frame *second = &pair->side[1].moved;
  double arm[3];
  mat3_mul_vec(out, second->rot, pair->stretch);
  mat3_mul_vec(turned, second->rot, pair->stretch + 3);
  vec3_sub(arm, x, second->pos);
  vec3_add_cross(out, 1.0, turned, arm);
}

/* Components along the tangents, and of the rotation about the normal. */
static void along_tangents(double out[3], const pressure_element *at, const double shift[3],
                           const double turned[3]) {
  out[0] = vec3_dot(at->frame + 3, shift);
  out[1] = vec3_dot(at->frame + 6, shift);
  out[2] = at->spin * vec3_dot(at->frame, turned);
}

static void give_way(pressure_element *out, const soft_pair *pair, const qd_step_options *o) {
  double shift[3], turned[3];
  const double part = pressure_friction_part(o);
  vec3_set(out->before, 0.0, 0.0, 0.0);
  out->give = 0.0;
  if (o->patch_law == QD_PATCH_REGULARIZED) {
    out->give = o->h * o->slip_speed / out->radius;
  } else if (o->patch_law == QD_PATCH_BRISTLE) {
    pressure_friction_stretch(shift, turned, pair, out->pos);
    along_tangents(out->before, out, shift, turned);
    vec3_scale(out->before, out->before, part);
    out->give = part / (o->bristle_stiffness * out->force);
  }
}

void pressure_friction_follow(pressure_element *out, const soft_pair *pair,
                              const qd_step_options *o) {
  const screw twist[2] = {pair->side[0].twist, pair->side[1].twist};
  double motion[6], slip[3];
  pressure_relative_motion(motion, pair, out->pos, twist);
  along_tangents(slip, out, motion, motion + 3);
  give_way(out, pair, o);
  vec3_add(slip, slip, out->before);
  out->slid = fmax(0.0, vec3_norm(slip) - out->give * out->radius);
}

/* ---------------------------------------------------------------- the elastic cone */

double pressure_friction_rise(const qd_model *model, const soft_pair *pair,
                              const qd_patch_polygon *at) {
  const int *geom = model->pair.geom + 2 * pair->pair;
  const double *E = model->parameters.geom_modulus;
  const double first = -vec3_dot(at->gradient_a, at->normal);
  const double second = vec3_dot(at->gradient_b, at->normal);
  const double slope = E[geom[0]] == 0.0   ? second
                       : E[geom[1]] == 0.0 ? first
                                           : first * second / (first + second);
  return fmax(0.0, model->parameters.pair_friction[5 * pair->pair] * at->area * slope);
}

void pressure_friction_lift(pressure_contact *s, soft_pair *pair, int polygons) {
  const screw twist[2] = {pair->side[0].twist, pair->side[1].twist};
  for (int i = 0; i < polygons && s->model->pair.dim[pair->pair] > 1; ++i) {
    const qd_patch_polygon *at = s->polygon + i;
    const double force = at->area * at->pressure;
    double motion[6], arm[3], moment[3];
    if (!(force > 0.0)) {
      continue;
    }
    pressure_relative_motion(motion, pair, at->centre, twist);
    vec3_axpy(motion, -vec3_dot(at->normal, motion), at->normal);
    const double more = pressure_friction_rise(s->model, pair, at) * vec3_norm(motion);
    vec3_sub(arm, at->centre, pair->centre);
    vec3_cross(moment, arm, at->normal);
    vec3_axpy(pair->wrench, more, at->normal);
    vec3_axpy(pair->wrench + 3, more, moment);
    s->share[i] += more / force;
  }
}

/* ---------------------------------------------------------------- bristles */

/* Rows of an element for a motion of the second body about the pair's centre, rotations in this
 * unit. */
static int element_rows(double row[3][6], const pressure_element *at, const soft_pair *pair,
                        double unit) {
  const int count = pressure_element_rows(at) - 1;
  double arm[3];
  vec3_sub(arm, at->pos, pair->centre);
  for (int r = 0; r < count; ++r) {
    if (r < 2) {
      vec3_copy(row[r], at->frame + 3 * (r + 1));
      vec3_cross(row[r] + 3, arm, row[r]);
    } else {
      vec3_set(row[r], 0.0, 0.0, 0.0);
      vec3_scale(row[r] + 3, at->frame, at->spin);
    }
    vec3_scale(row[r] + 3, row[r] + 3, 1.0 / unit);
  }
  return count;
}

/* Stiffness of all bristles, for a bristle stiffness of one, and their force. */
static void sum_elements(double K[36], double load[6], const pressure_contact *s,
                         const soft_pair *pair, const double *dual, double unit) {
  memset(K, 0, 36 * sizeof(double));
  memset(load, 0, 6 * sizeof(double));
  for (int e = pair->first; e < pair->first + pair->count; ++e) {
    const pressure_element *at = s->element + e;
    double row[3][6];
    const int count = at->row >= 0 ? element_rows(row, at, pair, unit) : 0;
    for (int r = 0; r < count; ++r) {
      for (int i = 0; i < 6; ++i) {
        load[i] += dual[at->row + 1 + r] * row[r][i];
        for (int j = 0; j < 6; ++j) {
          K[6 * i + j] += at->force * row[r][i] * row[r][j];
        }
      }
    }
  }
}

/* x with K x = load, without components that K does not resist. */
static void stretch_of(double x[6], double K[36], const double load[6]) {
  double V[36], values[6], most = 0.0;
  symmetric_eigen(K, V, values, 6);
  for (int k = 0; k < 6; ++k) {
    most = fmax(most, values[k]);
    x[k] = 0.0;
  }
  for (int k = 0; k < 6; ++k) {
    double along = 0.0;
    for (int i = 0; i < 6; ++i) {
      along += V[6 * i + k] * load[i];
    }
    for (int i = 0; i < 6 && values[k] > HALF_DIGITS * most; ++i) {
      x[i] += along / values[k] * V[6 * i + k];
    }
  }
}

void pressure_friction_settle(double out[QD_BRISTLES], const pressure_contact *s,
                              const soft_pair *pair, const double *dual) {
  const double time = s->options->bristle_time, keep = time / (s->options->h + time);
  const body_frame *second = &pair->side[1].moved;
  double K[36], load[6], x[6], old[6], arm[3];
  memset(out, 0, QD_BRISTLES * sizeof(double));
  if (s->options->patch_law != QD_PATCH_BRISTLE) {
    return;
  }
  if (pair->contact < 0 || !pair->is_active || pair->count == 0) {
    for (int i = 0; i < QD_BRISTLES; ++i) {
      out[i] = keep * pair->stretch[i];
    }
    return;
  }
  sum_elements(K, load, s, pair, dual, pair->length);
  stretch_of(x, K, load);
  vec3_scale(x + 3, x + 3, 1.0 / pair->length);
  pressure_friction_stretch(old, old + 3, pair, pair->centre);
  for (int i = 0; i < QD_BRISTLES; ++i) {
    x[i] = keep * old[i] - (1.0 - keep) * x[i] / s->options->bristle_stiffness;
  }
  vec3_sub(arm, second->pos, pair->centre);
  vec3_add_cross(x, 1.0, x + 3, arm);
  mat3_tmul_vec(out, second->rot, x);
  mat3_tmul_vec(out + 3, second->rot, x + 3);
}
