/* The energy of two bodies in pressure contact: the smaller of their two pressures, integrated over
 * their overlap (docs/formulation.md). The overlap is cut into tetrahedra. */
#include "geometry/pressure_fields/field.h"

#include "base/vec3.h"

/* Faces of a cell or of a swept prism, and the two bounds of a part. */
#define PLANES_MOST 6

typedef struct linear {
  double gradient[3], offset;
} linear;

/* A tetrahedron is cut by all planes; then the smaller of one or two linear functions is
 * integrated. */
typedef struct piece {
  field_plane plane[PLANES_MOST];
  int plane_count;
  linear function[2];
  int function_count;
} piece;

typedef struct tetrahedron {
  double corner[4][3];
} tetrahedron;

/* ---------------------------------------------------------------- one piece */

static void crossing(double x[3], const double a[3], const double b[3], double s, double t) {
  vec3_sub(x, b, a);
  vec3_scale(x, x, s / (s - t));
  vec3_add(x, x, a);
}

static void corners_set(tetrahedron *t, const double *a, const double *b, const double *c,
                        const double *d) {
  vec3_copy(t->corner[0], a);
  vec3_copy(t->corner[1], b);
  vec3_copy(t->corner[2], c);
  vec3_copy(t->corner[3], d);
}

/* Cuts a tetrahedron into the 0 to 3 tetrahedra with heights that are not positive. */
static int cut(const tetrahedron *whole, const double height[4], tetrahedron out[3]) {
  int kept[4], gone[4], k = 0, g = 0;
  for (int i = 0; i < 4; ++i) {
    if (height[i] > 0.0) {
      gone[g++] = i;
    } else {
      kept[k++] = i;
    }
  }
  if (g == 0) {
    out[0] = *whole;
  }
  if (g == 0 || k == 0) {
    return k > 0;
  }
  const double (*v)[3] = whole->corner;
  double x[3][3][3]; /* where the edge from the i-th kept to the j-th removed corner is cut */
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < g; ++j) {
      crossing(x[i][j], v[kept[i]], v[gone[j]], height[kept[i]], height[gone[j]]);
    }
  }
  if (k == 1) {
    corners_set(out, v[kept[0]], x[0][0], x[0][1], x[0][2]);
    return 1;
  }
  if (k == 2) {
    corners_set(out, v[kept[0]], x[0][0], x[0][1], v[kept[1]]);
    corners_set(out + 1, x[0][0], x[0][1], v[kept[1]], x[1][0]);
    corners_set(out + 2, x[0][1], v[kept[1]], x[1][0], x[1][1]);
  } else {
    corners_set(out, v[kept[0]], v[kept[1]], v[kept[2]], x[0][0]);
    corners_set(out + 1, v[kept[1]], v[kept[2]], x[0][0], x[1][0]);
    corners_set(out + 2, v[kept[2]], x[0][0], x[1][0], x[2][0]);
  }
  return 3;
}

static double value(const linear *f, const double x[3]) {
  return vec3_dot(f->gradient, x) + f->offset;
}

/* Integral of a linear function over a tetrahedron. */
static double integral(const linear *f, const tetrahedron *t) {
  double a[3], b[3], c[3], sum = 0.0;
  vec3_sub(a, t->corner[1], t->corner[0]);
  vec3_sub(b, t->corner[2], t->corner[0]);
  vec3_sub(c, t->corner[3], t->corner[0]);
  vec3_cross(a, a, b);
  for (int i = 0; i < 4; ++i) {
    sum += value(f, t->corner[i]);
  }
  return fabs(vec3_dot(a, c)) / 24.0 * sum;
}

static double least_integral(const piece *p, const tetrahedron *t) {
  if (p->function_count == 1) {
    return integral(p->function, t);
  }
  double sum = 0.0;
  for (int side = 0; side < 2; ++side) {
    double height[4];
    tetrahedron part[3];
    for (int i = 0; i < 4; ++i) {
      const double *x = t->corner[i];
      height[i] = value(p->function + side, x) - value(p->function + 1 - side, x);
    }
    const int parts = cut(t, height, part);
    for (int i = 0; i < parts; ++i) {
      sum += integral(p->function + side, part + i);
    }
  }
  return sum;
}

/* Cuts by the planes from index `plane` on, then integrates. The recursion depth is the number of
 * planes. */
static double piece_integral(const piece *p, const tetrahedron *t, int plane) {
  if (plane == p->plane_count) {
    return least_integral(p, t);
  }
  double height[4], sum = 0.0;
  tetrahedron part[3];
  for (int i = 0; i < 4; ++i) {
    height[i] = vec3_dot(p->plane[plane].normal, t->corner[i]) - p->plane[plane].offset;
  }
  const int parts = cut(t, height, part);
  for (int i = 0; i < parts; ++i) {
    sum += piece_integral(p, part + i, plane + 1);
  }
  return sum;
}

static void piece_bound(piece *p, const double normal[3], double offset) {
  field_plane *plane = p->plane + p->plane_count++;
  vec3_copy(plane->normal, normal);
  plane->offset = offset;
}

/* Bounds the piece by the pressures of a part. */
static void piece_bound_part(piece *p, const field_cell *cell, const field_part *part) {
  double down[3];
  vec3_scale(down, cell->gradient, -1.0);
  if (part->from > -INFINITY) {
    piece_bound(p, down, cell->offset - part->from);
  }
  if (part->until < INFINITY) {
    piece_bound(p, cell->gradient, part->until - cell->offset);
  }
}

static void piece_add(piece *p, const double gradient[3], double offset, double scale) {
  linear *f = p->function + p->function_count++;
  vec3_scale(f->gradient, gradient, scale);
  f->offset = offset * scale;
}

/* ---------------------------------------------------------------- pairs */

typedef struct summing {
  const field_pair *pair;
  double way[3]; /* axis along which triangles are swept */
  double energy;
} summing;

static void soft_meets(void *context, int first, const field_moved *moved,
                       const field_part *second) {
  (void)first;
  summing *s = context;
  const field_cell *cell = s->pair->second->cell + second->element;
  piece p = {.plane_count = cell->plane_count};
  tetrahedron whole;
  memcpy(p.plane, cell->plane, (size_t)cell->plane_count * sizeof *cell->plane);
  piece_bound_part(&p, cell, second);
  piece_add(&p, moved->gradient, moved->offset, 1.0);
  if (field_is_soft(s->pair->second)) {
    piece_add(&p, cell->gradient, cell->offset, s->pair->scale[1]);
  }
  memcpy(whole.corner, moved->corner, sizeof whole.corner);
  s->energy += piece_integral(&p, &whole, 0);
}

/* The volume inside a closed surface is the volume swept by its triangles that face backwards,
 * minus the volume swept by those that face forwards. */
static void sweep_meets(void *context, int first, const field_moved *moved,
                        const field_part *second) {
  (void)first;
  summing *s = context;
  const field_cell *cell = s->pair->second->cell + second->element;
  piece p = {.plane_count = 4};
  tetrahedron whole;
  const int ahead = field_sweep_planes(p.plane, moved, s->way);
  piece_bound_part(&p, cell, second);
  piece_add(&p, cell->gradient, cell->offset, s->pair->scale[1]);
  memcpy(whole.corner, cell->corner, sizeof whole.corner);
  s->energy -= ahead * piece_integral(&p, &whole, 0);
}

/* Half space: the volume above a triangle has a closed form. */
static void triangle_in_space(void *context, int first, const field_moved *moved,
                              const field_part *second) {
  (void)first;
  (void)second;
  summing *s = context;
  const field_cell *space = s->pair->second->cell;
  field_polygon polygon = {.count = 3};
  polygon_moments m;
  memcpy(polygon.corner, moved->corner, 3 * sizeof moved->corner[0]);
  polygon_clip(&polygon, space->plane);
  if (polygon.count >= 3) {
    const double slope = -space->gradient[2] * s->pair->scale[1];
    polygon_integrate(&m, &polygon, moved->normal);
    polygon_moments_shift(&m, polygon.corner[0]);
    s->energy -= 0.5 * slope * moved->normal[2] * m.second[5];
  }
}

/* The sweep leads from the soft body towards the rigid one, so that few triangles sweep through the
 * soft body. */
static void way_out(const field_pair *pair, double way[3]) {
  double from[3];
  int axis = 0;
  mat3_mul_add(from, pair->R, pair->first->whole.centre, pair->t);
  vec3_sub(from, from, pair->second->whole.centre);
  for (int k = 1; k < 3; ++k) {
    axis = fabs(from[k]) > fabs(from[axis]) ? k : axis;
  }
  vec3_set(way, 0.0, 0.0, 0.0);
  way[axis] = from[axis] < 0.0 ? -1.0 : 1.0;
}

qd_status field_energy_placed(const field_placed *a, const field_placed *b, double *energy) {
  field_pair pair;
  *energy = 0.0;
  const qd_status status = field_pair_init(&pair, a, b);
  if (status != QD_OK) {
    return status;
  }
  summing s = {.pair = &pair};
  if (pair.first->cell) {
    field_pairs_visit(&pair, 0, soft_meets, &s);
  } else if (field_is_space(pair.second)) {
    field_pairs_visit(&pair, 0, triangle_in_space, &s);
  } else {
    way_out(&pair, s.way);
    field_sweeps_visit(&pair, s.way, sweep_meets, &s);
  }
  *energy = s.energy;
  return QD_OK;
}
