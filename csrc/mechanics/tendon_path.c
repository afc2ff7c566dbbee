/* Spatial tendons. A line carries its share of the force: all of it, or what a pulley before it
 * leaves, by which lengths are divided, too. An arc pulls nothing but on its two points: each
 * carries the straight line there, both on the geometry's body.
 *
 * A taut tendon is as short as it can be: where it touches slides along the geometry without
 * changing the length to first order, so that only the bodies' motions count for that (path_change
 * leaves d_slide out). The directions of the lines change with the slide: where a geometry's body
 * moves its points x by R(x), a point t of the arc moves by R(t) + sum_e slope_e (dx_e - R(x_e)),
 * x_e the points before and behind the arc. */
#include "mechanics/tendon_path.h"

int body_is_behind(const qd_model *model, int body, int dof) {
  int count;
  const int *chain = body_chain(model, body, &count);
  for (int c = 0; c < count; ++c) {
    if (chain[c] == dof) {
      return 1;
    }
  }
  return 0;
}

/* The pull of a unit force on the body of point i: towards neither neighbour. */
static void pull_at(double pull[3], const tendons *t, const qd_model *model, int i) {
  vec3_scale(pull, t->point[i].along, -t->point[i].share);
  if (!model->tendon_point_first[i]) {
    vec3_axpy(pull, t->point[i - 1].share, t->point[i - 1].along);
  }
}

/* ---------------------------------------------------------------- where it lies */

static void place_on(double pos[3], const kinematics *k, int body, const double at[3]) {
  mat3_mul_vec(pos, k->body_rot + 9 * body, at);
  vec3_axpy(pos, 1.0, k->body_pos + 3 * body);
}

static void place_shape(wrap_shape *shape, const qd_model *model, const kinematics *k, int geom) {
  const int body = model->geom_body[geom];
  double axis[3];
  place_on(shape->centre, k, body, model->geom_pos + 3 * geom);
  mat3_column(axis, model->geom_rot + 9 * geom, 2);
  mat3_mul_vec(shape->axis, k->body_rot + 9 * body, axis);
  vec3_normalize(shape->axis);
  mat3_column(axis, model->geom_rot + 9 * geom, 0);
  mat3_mul_vec(shape->front, k->body_rot + 9 * body, axis);
  shape->radius = model->parameters.geom_size[3 * geom];
  shape->is_cylinder = model->geom_type[geom] == QD_CYLINDER;
}

/* The arc around the geometry of row i, the side in row i + 1, from a point to that of row i + 2;
 * 0: none. */
static int place_arc(tendon_wrap *wrap, const double from[3], const qd_model *model,
                     const kinematics *k, int i) {
  const int *object = model->tendon_object + i;
  const double *data = model->tendon_data + 3 * i;
  double to[3], side[3];
  const int has_side = object[1] >= 0;
  wrap->geom = object[0];
  place_shape(&wrap->shape, model, k, wrap->geom);
  place_on(to, k, object[2], data + 6);
  if (has_side) {
    place_on(side, k, object[1], data + 3);
  }
  return wrap_compute(&wrap->course, &wrap->shape, from, to, has_side ? side : NULL);
}

static tendon_point *add_point(tendon_point *at, int body, double share, const double pos[3]) {
  vec3_copy(at->pos, pos);
  vec3_set(at->along, 0.0, 0.0, 0.0);
  at->distance = 0.0;
  at->share = share;
  at->body = body;
  at->wrap = -1;
  return at + 1;
}

/* Points in order, without lines yet; the last one before a pulley has none. Returns their end. */
static tendon_point *place_points(const tendons *t, const qd_model *model, const kinematics *k,
                                  int tendon, int *wraps) {
  const int first = model->tendon_start[tendon], end = model->tendon_start[tendon + 1];
  tendon_point *next = t->point + first;
  double share = 1.0;
  for (int i = first; i < end; ++i) {
    const int object = model->tendon_object[i];
    const double *data = model->tendon_data + 3 * i;
    double pos[3];
    if (model->tendon_part[i] == QD_TENDON_PULLEY) {
      share = 1.0 / data[0];
      if (i > first) {
        next[-1].share = 0.0;
      }
    } else if (model->tendon_part[i] == QD_TENDON_POINT) {
      place_on(pos, k, object, data);
      next = add_point(next, object, share, pos);
    } else if (model->tendon_part[i] == QD_TENDON_WRAP) {
      const tendon_wrap *wrap = t->wrap + *wraps;
      if (place_arc(t->wrap + *wraps, next[-1].pos, model, k, i)) {
        next = add_point(next, model->geom_body[object], share, wrap->course.touch[0]);
        next[-1].wrap = (*wraps)++;
        next = add_point(next, model->geom_body[object], share, wrap->course.touch[1]);
      }
    }
  }
  next[-1].share = 0.0;
  return next;
}

double path_place(const tendons *t, const qd_model *model, const kinematics *k, int tendon,
                  int *wraps) {
  const tendon_point *end = place_points(t, model, k, tendon, wraps);
  double length = 0.0;
  t->path_end[tendon] = (int)(end - t->point);
  for (int i = model->tendon_start[tendon]; i < t->path_end[tendon]; ++i) {
    tendon_point *here = t->point + i;
    if (here->wrap >= 0) {
      length += here->share * t->wrap[here->wrap].course.length;
    } else if (here->share > 0.0) {
      vec3_sub(here->along, here[1].pos, here->pos);
      here->distance = vec3_normalize(here->along);
      length += here->share * here->distance;
    }
  }
  return length;
}

/* 1 if the ascending list from *at on holds x; *at moves up to there. */
static int comes_to(const int *list, int count, int *at, int x) {
  while (*at < count && list[*at] < x) {
    ++*at;
  }
  return *at < count && list[*at] == x;
}

/* Adds a line's part. DOFs that move it as a whole, or not at all, have none, to the last digit. */
static void add_line_rates(double *rate, const qd_model *model, const kinematics *k, int tendon,
                           const tendon_point *here) {
  const tendon_point *next = here + 1;
  const int first = model->tendon_dof_start[tendon], end = model->tendon_dof_start[tendon + 1];
  int counts[2], at[2] = {0, 0};
  const int *chain = body_chain(model, here->body, counts);
  const int *next_chain = body_chain(model, next->body, counts + 1);
  for (int d = first; d < end; ++d) {
    const int dof = model->tendon_dof[d];
    const int before = comes_to(chain, counts[0], at, dof);
    const int after = comes_to(next_chain, counts[1], at + 1, dof);
    if (before != after) {
      double velocity[3];
      screw_point_velocity(velocity, k->dof_screw + dof, after ? next->pos : here->pos);
      rate[d] += (after - before) * here->share * vec3_dot(here->along, velocity);
    }
  }
}

void path_rates(const tendons *t, const qd_model *model, const kinematics *k, int tendon) {
  for (int d = model->tendon_dof_start[tendon]; d < model->tendon_dof_start[tendon + 1]; ++d) {
    t->rate[d] = 0.0;
  }
  for (int i = model->tendon_start[tendon]; i + 1 < t->path_end[tendon]; ++i) {
    if (t->point[i].distance > 0.0 && t->point[i].body != t->point[i + 1].body) {
      add_line_rates(t->rate, model, k, tendon, t->point + i);
    }
  }
  for (int d = model->tendon_dof_start[tendon]; d < model->tendon_dof_start[tendon + 1]; ++d) {
    t->slope[d] = t->rate[d];
  }
}

void tendon_point_wrench(wrench *W, const tendons *t, const qd_model *model, int i, double force) {
  pull_at(W->f, t, model, i);
  vec3_scale(W->f, W->f, force);
  vec3_cross(W->m, t->point[i].pos, W->f);
}

/* ---------------------------------------------------------------- how it changes */

void tendons_differentiate(const tendons *t, const qd_model *model) {
  for (int tendon = 0; tendon < model->tendon_count; ++tendon) {
    const int spatial = model->tendon_type[tendon] == QD_TENDON_SPATIAL;
    for (int i = model->tendon_start[tendon]; spatial && i < t->path_end[tendon]; ++i) {
      const tendon_point *here = t->point + i;
      if (here->wrap >= 0) {
        tendon_wrap *wrap = t->wrap + here->wrap;
        wrap_differentiate(&wrap->slope, &wrap->course, &wrap->shape, here[-1].pos, here[2].pos);
      }
    }
  }
}

/* out = (change of what leads from point i to the next) across the line, over its length: how much
 * the line turns */
static void turn_of(double out[3], const tendon_point *point, const double change[3]) {
  vec3_copy(out, change);
  vec3_axpy(out, -vec3_dot(point->along, change), point->along);
  vec3_scale(out, out, point->distance > 0.0 ? 1.0 / point->distance : 0.0);
}

void path_change(double out[2], const tendons *t, const qd_model *model, int tendon) {
  const int first = model->tendon_start[tendon], end = t->path_end[tendon];
  out[0] = out[1] = 0.0;
  for (int i = first; i < end; ++i) {
    vec3_set(t->motion[i].d_pull, 0.0, 0.0, 0.0);
  }
  for (int i = first; i + 1 < end; ++i) {
    const tendon_point *point = t->point + i;
    tendon_motion *here = t->motion + i, *next = here + 1;
    double d_line[3], d_along[3], way[3], d_way[3], slide[3];
    vec3_sub(d_line, next->d_pos, here->d_pos);
    vec3_sub(slide, next->d_slide, here->d_slide);
    vec3_sub(way, next->velocity, here->velocity);
    vec3_sub(d_way, next->d_velocity, here->d_velocity);
    turn_of(d_along, point, d_line);
    out[0] += point->share * (vec3_dot(point->along, d_line) - vec3_dot(point->along, slide));
    out[1] += point->share * (vec3_dot(point->along, d_way) + vec3_dot(d_along, way));
    vec3_axpy(here->d_pull, -point->share, d_along);
    vec3_axpy(next->d_pull, point->share, d_along);
  }
}

/* What a motion of its body, and a change of that body's twist under delta, do to a point. */
static void carry_point(tendon_motion *m, const double pos[3], const screw *delta,
                        const screw *motion, const screw *d_delta) {
  double part[3];
  screw_point_velocity(m->velocity, delta, pos);
  screw_point_velocity(m->d_pos, motion, pos);
  screw_point_velocity(m->d_velocity, d_delta, pos);
  vec3_cross(part, delta->w, m->d_pos);
  vec3_axpy(m->d_velocity, 1.0, part);
  vec3_set(m->d_slide, 0.0, 0.0, 0.0);
}

/* The slide of the arc's points i and i + 1, whose body moves with `motion`, and the radius; all
 * points are carried already. */
static void slide_arc(const tendons *t, int i, const screw *delta, const screw *motion,
                      double d_radius) {
  static const int ENDS[2] = {-1, 2};
  const wrap_slope *slope = &t->wrap[t->point[i].wrap].slope;
  double relative[2][3];
  for (int e = 0; e < 2; ++e) {
    screw_point_velocity(relative[e], motion, t->point[i + ENDS[e]].pos);
    vec3_sub(relative[e], t->motion[i + ENDS[e]].d_pos, relative[e]);
  }
  for (int k = 0; k < 2; ++k) {
    tendon_motion *m = t->motion + i + k;
    double part[3];
    vec3_scale(m->d_slide, slope->by_radius[k], d_radius);
    for (int e = 0; e < 2; ++e) {
      mat3_mul_vec(part, slope->by_end[k][e], relative[e]);
      vec3_axpy(m->d_slide, 1.0, part);
    }
    vec3_axpy(m->d_pos, 1.0, m->d_slide);
    vec3_cross(part, delta->w, m->d_slide);
    vec3_axpy(m->d_velocity, 1.0, part);
  }
}

/* dW of the wrench that a force has on the body of point i */
static void changed_wrench(wrench *dW, const tendons *t, const qd_model *model, int i,
                           double force) {
  double pull[3], part[3];
  pull_at(pull, t, model, i);
  vec3_scale(dW->f, t->motion[i].d_pull, force);
  vec3_cross(dW->m, t->point[i].pos, dW->f);
  vec3_cross(part, t->motion[i].d_pos, pull);
  vec3_axpy(dW->m, force, part);
}

void path_move_along(const tendons *t, const qd_model *model, const kinematics *k,
                     const tendon_twists *twists, int tendon, int j) {
  static const screw still = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  const int first = model->tendon_start[tendon], end = t->path_end[tendon];
  for (int i = first; i < end; ++i) {
    const int body = t->point[i].body, moves = body_is_behind(model, body, j);
    screw behind = still;
    if (moves) {
      screw_sub(&behind, twists->body + body, twists->unmoved + j);
      screw_bracket(&behind, k->dof_screw + j, &behind);
    }
    carry_point(t->motion + i, t->point[i].pos, twists->body + body,
                moves ? k->dof_screw + j : &still, &behind);
  }
  for (int i = first; i < end; ++i) {
    if (t->point[i].wrap >= 0) {
      const int body = t->point[i].body;
      slide_arc(t, i, twists->body + body,
                body_is_behind(model, body, j) ? k->dof_screw + j : &still, 0.0);
    }
  }
}

void path_subtract_column(const dof_matrix *D, const tendons *t, const qd_model *model,
                          const kinematics *k, int tendon, double force, int j) {
  for (int i = model->tendon_start[tendon]; i < t->path_end[tendon]; ++i) {
    wrench dW;
    int count;
    const int *chain = body_chain(model, t->point[i].body, &count);
    changed_wrench(&dW, t, model, i, force);
    for (int c = 0; c < count; ++c) {
      *dof_matrix_at(D, chain[c], j) -= screw_dot(k->dof_screw + chain[c], &dW);
    }
  }
}

void path_push(double out[2], wrench *W, const tendons *t, const qd_model *model, int tendon,
               double force, const tendon_direction *along) {
  const int first = model->tendon_start[tendon], end = t->path_end[tendon];
  double by_radius = 0.0;
  for (int i = first; i < end; ++i) {
    const int body = t->point[i].body;
    carry_point(t->motion + i, t->point[i].pos, along->delta + body, along->motion + body,
                along->d_delta + body);
  }
  for (int i = first; i < end; ++i) {
    const tendon_point *here = t->point + i;
    if (here->wrap >= 0) {
      const tendon_wrap *wrap = t->wrap + here->wrap;
      const double d_radius = along->d_size != NULL ? along->d_size[3 * wrap->geom] : 0.0;
      slide_arc(t, i, along->delta + here->body, along->motion + here->body, d_radius);
      by_radius += here->share * wrap->slope.length_by_radius * d_radius;
    }
  }
  path_change(out, t, model, tendon);
  out[0] += by_radius;
  for (int i = first; i < end; ++i) {
    wrench dW;
    changed_wrench(&dW, t, model, i, force);
    wrench_axpy(W + t->point[i].body, 1.0, &dW);
  }
}

/* ---------------------------------------------------------------- the same backwards */

/* out += sign cotangent of the end of the line behind point i, by the line's direction */
static void pull_line(double out[3], double sign, const tendons *t, int i, const tendon_dual *of) {
  const tendon_point *here = t->point + i, *next = here + 1;
  double va[3], vb[3], way[3], turned[3];
  screw_point_velocity(va, of->z + here->body, here->pos);
  screw_point_velocity(vb, of->z + next->body, next->pos);
  vec3_sub(way, vb, va);
  vec3_scale(way, way, of->force);
  screw_point_velocity(va, of->delta + here->body, here->pos);
  screw_point_velocity(vb, of->delta + next->body, next->pos);
  vec3_axpy(way, of->displacement, vb);
  vec3_axpy(way, -of->displacement, va);
  turn_of(turned, here, way);
  vec3_axpy(out, sign * here->share, turned);
}

void tendon_pull(double on_point[3], const tendons *t, const qd_model *model, int i,
                 const tendon_dual *of) {
  const int body = t->point[i].body;
  double pull[3], turning[3];
  pull_at(pull, t, model, i);
  vec3_scale(turning, of->z[body].w, of->force);
  vec3_axpy(turning, of->displacement, of->delta[body].w);
  vec3_cross(on_point, pull, turning);
  vec3_axpy(on_point, of->length, pull);
  if (!model->tendon_point_first[i] && t->point[i - 1].distance > 0.0) {
    pull_line(on_point, 1.0, t, i - 1, of);
  }
  if (t->point[i].distance > 0.0) {
    pull_line(on_point, -1.0, t, i, of);
  }
}

double tendon_pull_slide(double on_end[2][3], const tendons *t, const qd_model *model, int i,
                         const tendon_dual *of) {
  const wrap_slope *slope = &t->wrap[t->point[i].wrap].slope;
  tendon_dual apart = *of; /* the length does not depend on the slide */
  double by_radius = of->length * t->point[i].share * slope->length_by_radius;
  apart.length = 0.0;
  memset(on_end, 0, 6 * sizeof(double));
  for (int k = 0; k < 2; ++k) {
    double on_point[3], part[3];
    tendon_pull(on_point, t, model, i + k, &apart);
    by_radius += vec3_dot(on_point, slope->by_radius[k]);
    for (int e = 0; e < 2; ++e) {
      mat3_tmul_vec(part, slope->by_end[k][e], on_point);
      vec3_axpy(on_end[e], 1.0, part);
    }
  }
  return by_radius;
}
