/* A line carries its share of the string's force: all of it, or the share after a pulley, which
 * also multiplies its length. An arc exerts force only at its two end points: each transmits the
 * force of the straight line there, and both belong to the geometry's body.
 *
 * A taut string has stationary length: when its points slide along a geometry, the length does not
 * change to first order. Only motions of the bodies change it, so strand_change leaves d_slide out.
 * The directions of the lines do change with the slide: if the geometry's body moves its points x
 * by R(x), a point t of the arc moves by R(t) + sum_e slope_e (dx_e - R(x_e)), with x_e the points
 * before and behind the arc. */
#include "geometry/strand.h"

#include "base/vec3.h"

void strand_add(strand *s, int body, double share, const double pos[3]) {
  strand_point *point = s->point + s->count++;
  vec3_copy(point->pos, pos);
  vec3_set(point->along, 0.0, 0.0, 0.0);
  point->distance = 0.0;
  point->share = share;
  point->body = body;
  point->wrap = -1;
}

int strand_add_arc(strand *s, int index, int body, double share, const double to[3],
                   const double *side) {
  strand_wrap *wrap = s->wrap + index;
  if (!wrap_compute(&wrap->course, &wrap->shape, s->point[s->count - 1].pos, to, side)) {
    return 0;
  }
  strand_add(s, body, share, wrap->course.touch[0]);
  s->point[s->count - 1].wrap = index;
  strand_add(s, body, share, wrap->course.touch[1]);
  return 1;
}

void strand_cut(strand *s) {
  if (s->count > 0) {
    s->point[s->count - 1].share = 0.0;
  }
}

double strand_close(strand *s) {
  double length = 0.0;
  strand_cut(s);
  for (int i = 0; i < s->count; ++i) {
    strand_point *here = s->point + i;
    if (here->wrap >= 0) {
      length += here->share * s->wrap[here->wrap].course.length;
    } else if (here->share > 0.0) {
      vec3_sub(here->along, here[1].pos, here->pos);
      here->distance = vec3_normalize(here->along);
      length += here->share * here->distance;
    }
  }
  return length;
}

void strand_pull(double pull[3], const strand *s, int i) {
  const strand_point *here = s->point + i;
  vec3_scale(pull, here->along, -here->share);
  if (i > 0) {
    vec3_axpy(pull, here[-1].share, here[-1].along);
  }
}

void strand_differentiate(const strand *s) {
  for (int i = 0; i < s->count; ++i) {
    const strand_point *here = s->point + i;
    if (here->wrap >= 0) {
      strand_wrap *wrap = s->wrap + here->wrap;
      wrap_differentiate(&wrap->slope, &wrap->course, &wrap->shape, here[-1].pos, here[2].pos);
    }
  }
}

void strand_slide(const strand *s, int i, const double w[3], const double v[3],
                  const double spin[3], double d_radius) {
  static const int ENDS[2] = {-1, 2};
  const wrap_slope *slope = &s->wrap[s->point[i].wrap].slope;
  double relative[2][3], part[3];
  for (int e = 0; e < 2; ++e) {
    vec3_cross(part, w, s->point[i + ENDS[e]].pos);
    vec3_axpy(part, 1.0, v);
    vec3_sub(relative[e], s->motion[i + ENDS[e]].d_pos, part);
  }
  for (int k = 0; k < 2; ++k) {
    strand_motion *m = s->motion + i + k;
    vec3_scale(m->d_slide, slope->by_radius[k], d_radius);
    for (int e = 0; e < 2; ++e) {
      mat3_mul_vec(part, slope->by_end[k][e], relative[e]);
      vec3_axpy(m->d_slide, 1.0, part);
    }
    vec3_axpy(m->d_pos, 1.0, m->d_slide);
    vec3_add_cross(m->d_velocity, 1.0, spin, m->d_slide);
  }
}

void strand_turn(double out[3], const strand_point *point, const double change[3]) {
  vec3_reject(out, change, point->along);
  vec3_scale(out, out, point->distance > 0.0 ? 1.0 / point->distance : 0.0);
}

void strand_change(double out[2], const strand *s) {
  out[0] = out[1] = 0.0;
  for (int i = 0; i < s->count; ++i) {
    vec3_set(s->motion[i].d_pull, 0.0, 0.0, 0.0);
  }
  for (int i = 0; i + 1 < s->count; ++i) {
    const strand_point *point = s->point + i;
    strand_motion *here = s->motion + i, *next = here + 1;
    double d_line[3], d_along[3], way[3], d_way[3], slide[3];
    vec3_sub(d_line, next->d_pos, here->d_pos);
    vec3_sub(slide, next->d_slide, here->d_slide);
    vec3_sub(way, next->velocity, here->velocity);
    vec3_sub(d_way, next->d_velocity, here->d_velocity);
    strand_turn(d_along, point, d_line);
    out[0] += point->share * (vec3_dot(point->along, d_line) - vec3_dot(point->along, slide));
    out[1] += point->share * (vec3_dot(point->along, d_way) + vec3_dot(d_along, way));
    vec3_axpy(here->d_pull, -point->share, d_along);
    vec3_axpy(next->d_pull, point->share, d_along);
  }
}
