/* Spatial tendons as strings (geometry/strand.h): positions of their points, and motions of these
 * for DOFs and along directions. */
#include "mechanics/tendon_path.h"

/* ---------------------------------------------------------------- path */

static void place_on(double pos[3], const kinematics *k, int body, const double at[3]) {
  mat3_mul_add(pos, k->body_rot + 9 * body, at, k->body_pos + 3 * body);
}

static void place_shape(wrap_shape *shape, const qd_model *model, const kinematics *k, int geom) {
  const int body = model->geom.body[geom];
  double axis[3];
  place_on(shape->centre, k, body, model->geom.pos + 3 * geom);
  mat3_column(axis, model->geom.rot + 9 * geom, 2);
  mat3_mul_vec(shape->axis, k->body_rot + 9 * body, axis);
  vec3_normalize(shape->axis);
  mat3_column(axis, model->geom.rot + 9 * geom, 0);
  mat3_mul_vec(shape->front, k->body_rot + 9 * body, axis);
  shape->radius = model->parameters.geom_size[3 * geom];
  shape->is_cylinder = model->geom.type[geom] == QD_CYLINDER;
}

/* Adds the arc around the geometry of row i, with its side point in row i + 1, on the way to the
 * point of row i + 2. Returns 1 if the string touches the geometry. */
static int place_arc(strand *s, int index, double share, const qd_model *model, const kinematics *k,
                     int i) {
  const int *object = model->tendon.object + i;
  const double *data = model->tendon.data + 3 * i;
  double to[3], side[3];
  const int has_side = object[1] >= 0;
  s->wrap[index].geom = object[0];
  place_shape(&s->wrap[index].shape, model, k, object[0]);
  place_on(to, k, object[2], data + 6);
  if (has_side) {
    place_on(side, k, object[1], data + 3);
  }
  return strand_add_arc(s, index, model->geom.body[object[0]], share, to, has_side ? side : NULL);
}

double path_place(const tendons *t, const qd_model *model, const kinematics *k, int tendon,
                  int *wraps) {
  const int first = model->tendon.start[tendon], end = model->tendon.start[tendon + 1];
  strand s = {t->point + first, t->motion + first, t->wrap, 0};
  double share = 1.0, pos[3];
  for (int i = first; i < end; ++i) {
    const int object = model->tendon.object[i];
    const double *data = model->tendon.data + 3 * i;
    if (model->tendon.part[i] == QD_TENDON_PULLEY) {
      share = 1.0 / data[0];
      strand_cut(&s);
    } else if (model->tendon.part[i] == QD_TENDON_POINT) {
      place_on(pos, k, object, data);
      strand_add(&s, object, share, pos);
    } else if (model->tendon.part[i] == QD_TENDON_WRAP) {
      *wraps += place_arc(&s, *wraps, share, model, k, i);
    }
  }
  t->path_count[tendon] = s.count;
  return strand_close(&s);
}

/* 1 if the ascending list contains x at or after *at; advances *at to the first entry >= x. */
static int comes_to(int_list list, int *at, int x) {
  while (*at < list.count && list.at[*at] < x) {
    ++*at;
  }
  return *at < list.count && list.at[*at] == x;
}

/* Adds the contribution of a line. It is exactly zero for DOFs that move both ends or none. */
static void add_line_rates(double *rate, const qd_model *model, const kinematics *k, int tendon,
                           const strand_point *here) {
  const strand_point *next = here + 1;
  const int first = model->tendon.dof_start[tendon], end = model->tendon.dof_start[tendon + 1];
  const int_list chain = body_chain(model, here->body), next_chain = body_chain(model, next->body);
  int at[2] = {0, 0};
  for (int d = first; d < end; ++d) {
    const int dof = model->tendon.dof[d];
    const int before = comes_to(chain, at, dof);
    const int after = comes_to(next_chain, at + 1, dof);
    if (before != after) {
      double velocity[3];
      screw_point_velocity(velocity, k->dof_screw + dof, after ? next->pos : here->pos);
      rate[d] += (after - before) * here->share * vec3_dot(here->along, velocity);
    }
  }
}

void path_rates(const tendons *t, const qd_model *model, const kinematics *k, int tendon) {
  for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
    t->rate[d] = 0.0;
  }
  const strand s = tendon_strand(t, model, tendon);
  for (int i = 0; i + 1 < s.count; ++i) {
    if (s.point[i].distance > 0.0 && s.point[i].body != s.point[i + 1].body) {
      add_line_rates(t->rate, model, k, tendon, s.point + i);
    }
  }
  for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
    t->slope[d] = t->rate[d];
  }
}

void strand_wrench(wrench *W, const strand *s, int i, double force) {
  strand_pull(W->f, s, i);
  vec3_scale(W->f, W->f, force);
  vec3_cross(W->m, s->point[i].pos, W->f);
}

/* ---------------------------------------------------------------- derivatives */

void tendons_differentiate(const tendons *t, const qd_model *model) {
  for (int tendon = 0; tendon < model->tendon.count; ++tendon) {
    if (model->tendon.type[tendon] == QD_TENDON_SPATIAL) {
      const strand s = tendon_strand(t, model, tendon);
      strand_differentiate(&s);
    }
  }
}

/* Motion of a point for a motion of its body and a change d_delta of the body's twist delta. */
static void carry_point(strand_motion *m, const double pos[3], const screw *delta,
                        const screw *motion, const screw *d_delta) {
  screw_point_velocity(m->velocity, delta, pos);
  screw_point_velocity(m->d_pos, motion, pos);
  screw_point_velocity(m->d_velocity, d_delta, pos);
  vec3_add_cross(m->d_velocity, 1.0, delta->w, m->d_pos);
  vec3_set(m->d_slide, 0.0, 0.0, 0.0);
}

/* Change of the wrench of a force on the body of point i */
static void changed_wrench(wrench *dW, const strand *s, int i, double force) {
  double pull[3];
  strand_pull(pull, s, i);
  vec3_scale(dW->f, s->motion[i].d_pull, force);
  vec3_cross(dW->m, s->point[i].pos, dW->f);
  vec3_add_cross(dW->m, force, s->motion[i].d_pos, pull);
}

void path_move_along(const strand *s, const qd_model *model, const kinematics *k,
                     const tendon_twists *twists, int j) {
  static const screw still = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  for (int i = 0; i < s->count; ++i) {
    const int body = s->point[i].body, moves = body_is_behind(model, body, j);
    screw behind = still;
    if (moves) {
      screw_sub(&behind, twists->body + body, twists->unmoved + j);
      screw_bracket(&behind, k->dof_screw + j, &behind);
    }
    carry_point(s->motion + i, s->point[i].pos, twists->body + body,
                moves ? k->dof_screw + j : &still, &behind);
  }
  for (int i = 0; i < s->count; ++i) {
    if (s->point[i].wrap >= 0) {
      const int body = s->point[i].body;
      const screw *motion = body_is_behind(model, body, j) ? k->dof_screw + j : &still;
      strand_slide(s, i, motion->w, motion->v, twists->body[body].w, 0.0);
    }
  }
}

void path_subtract_column(const dof_matrix *D, const strand *s, const qd_model *model,
                          const kinematics *k, double force, int j) {
  for (int i = 0; i < s->count; ++i) {
    wrench dW;
    const int_list chain = body_chain(model, s->point[i].body);
    changed_wrench(&dW, s, i, force);
    for (int c = 0; c < chain.count; ++c) {
      *dof_matrix_at(D, chain.at[c], j) -= screw_dot(k->dof_screw + chain.at[c], &dW);
    }
  }
}

void path_push(double out[2], wrench *W, const strand *s, double force,
               const tendon_direction *along) {
  double by_radius = 0.0;
  for (int i = 0; i < s->count; ++i) {
    const int body = s->point[i].body;
    carry_point(s->motion + i, s->point[i].pos, along->delta + body, along->motion + body,
                along->d_delta + body);
  }
  for (int i = 0; i < s->count; ++i) {
    const strand_point *here = s->point + i;
    if (here->wrap >= 0) {
      const strand_wrap *wrap = s->wrap + here->wrap;
      const screw *motion = along->motion + here->body;
      const double d_radius = along->d_size != NULL ? along->d_size[3 * wrap->geom] : 0.0;
      strand_slide(s, i, motion->w, motion->v, along->delta[here->body].w, d_radius);
      by_radius += here->share * wrap->slope.length_by_radius * d_radius;
    }
  }
  strand_change(out, s);
  out[0] += by_radius;
  for (int i = 0; i < s->count; ++i) {
    wrench dW;
    changed_wrench(&dW, s, i, force);
    wrench_axpy(W + s->point[i].body, 1.0, &dW);
  }
}

/* ---------------------------------------------------------------- pullbacks */

/* out += sign * derivative of L (tendon_dual) with respect to the end of the line behind point i,
 * through the line's direction and length */
static void pull_line(double out[3], double sign, const strand *s, int i, const tendon_dual *of) {
  const strand_point *here = s->point + i, *next = here + 1;
  double va[3], vb[3], way[3], turned[3];
  screw_point_velocity(va, of->z + here->body, here->pos);
  screw_point_velocity(vb, of->z + next->body, next->pos);
  vec3_sub(way, vb, va);
  vec3_scale(way, way, of->force);
  screw_point_velocity(va, of->delta + here->body, here->pos);
  screw_add_point_velocity(way, of->displacement, of->delta + next->body, next->pos);
  vec3_axpy(way, -of->displacement, va);
  strand_turn(turned, here, way);
  vec3_axpy(out, sign * here->share, turned);
}

void strand_pull_back(double on_point[3], const strand *s, int i, const tendon_dual *of) {
  const int body = s->point[i].body;
  double pull[3], turning[3];
  strand_pull(pull, s, i);
  vec3_scale(turning, of->z[body].w, of->force);
  vec3_axpy(turning, of->displacement, of->delta[body].w);
  vec3_cross(on_point, pull, turning);
  vec3_axpy(on_point, of->length, pull);
  if (i > 0 && s->point[i - 1].distance > 0.0) {
    pull_line(on_point, 1.0, s, i - 1, of);
  }
  if (s->point[i].distance > 0.0) {
    pull_line(on_point, -1.0, s, i, of);
  }
}

double strand_pull_slide(double on_end[2][3], const strand *s, int i, const tendon_dual *of) {
  const wrap_slope *slope = &s->wrap[s->point[i].wrap].slope;
  tendon_dual apart = *of; /* the length does not depend on the slide */
  double by_radius = of->length * s->point[i].share * slope->length_by_radius;
  apart.length = 0.0;
  memset(on_end, 0, 6 * sizeof(double));
  for (int k = 0; k < 2; ++k) {
    double on_point[3], part[3];
    strand_pull_back(on_point, s, i + k, &apart);
    by_radius += vec3_dot(on_point, slope->by_radius[k]);
    for (int e = 0; e < 2; ++e) {
      mat3_tmul_vec(part, slope->by_end[k][e], on_point);
      vec3_axpy(on_end[e], 1.0, part);
    }
  }
  return by_radius;
}
