/* The surface on which two bodies press: a polygon for every pair of their cells, its force and how
 * that changes (Elandt et al. 2019; docs/formulation.md).
 *
 * Elements of the first body are moved into the frame of the second, whose tree is asked for what
 * they meet. What is computed there is turned round at the end if the bodies were exchanged. */
#include "geometry/fields/field.h"

#include "base/vec3.h"

/* Gradients that differ by less than this share have no plane between them. */
#define PARALLEL 1e-8
/* Where equal fields lie on each other, the surface has thickness: the first one counts as so much
 * stiffer. */
#define TIE 1e-9
/* A triangle lies in a face if it is this near, beside the size of the cell. */
#define COPLANAR 1e-12
/* Deepest tree: 2^64 elements. */
#define STACK 64

typedef struct query {
  const qd_field *first, *second;
  double R[9], t[3]; /* from the first one's frame to the second one's */
  double stiffer;    /* factor on the first one's pressure */
  double filter;     /* cosine of the largest angle between normal and gradient; -2: none */
  int ties;          /* pairs whose fields are equal all over */
  qd_patch *patch;
  qd_patch_polygon *polygon;
  double *vertex;
  int polygon_capacity, vertex_capacity;
} query;

/* ---------------------------------------------------------------- one polygon */

typedef struct pressing {
  double normal[3];           /* into the second body */
  double first[3], second[3]; /* pressure gradients; of a rigid side its normal */
  double gradient[3], offset; /* of the pressure on the polygon */
  double stiffness;           /* |difference of the gradients|; 1 if one is a normal */
  int first_element, second_element;
} pressing;

/* The row [g; x cross g] integrated against another: four blocks of the tangent. */
static void tangent_add(double K[36], const polygon_moments *m, const double a[3],
                        const double b[3], double scale) {
  double xa[3], xb[3], S[9], rotated[9];
  vec3_cross(xa, m->first, a);
  vec3_cross(xb, m->first, b);
  for (int j = 0; j < 3; ++j) { /* column j of the product of S and [b] */
    double unit[3] = {0.0, 0.0, 0.0}, turned[3];
    unit[j] = 1.0;
    vec3_cross(turned, b, unit); /* e_j . (x cross b) = x . (b cross e_j) */
    mat3_mul_vec(S + 3 * j, m->second, turned);
  }
  for (int j = 0; j < 3; ++j) {
    vec3_cross(rotated + 3 * j, S + 3 * j, a); /* (integral of x (x . c)) cross a */
  }
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      K[6 * i + j] += scale * m->area * a[i] * b[j];
      K[6 * i + 3 + j] += scale * a[i] * xb[j];
      K[6 * (3 + i) + j] += scale * xa[i] * b[j];
      K[6 * (3 + i) + 3 + j] += scale * rotated[3 * j + i];
    }
  }
}

static void polygon_store(query *q, const pressing *by, const field_polygon *polygon,
                          const polygon_moments *m, double force, const double centre[3]) {
  qd_patch *patch = q->patch;
  const int index = patch->polygon_count++, first = patch->vertex_count;
  patch->vertex_count += polygon->count;
  if (index < q->polygon_capacity) {
    qd_patch_polygon *out = q->polygon + index;
    out->area = m->area;
    out->pressure = force / m->area;
    vec3_copy(out->centre, centre);
    vec3_copy(out->normal, by->normal);
    vec3_copy(out->gradient_a, by->first);
    vec3_copy(out->gradient_b, by->second);
    out->element_a = by->first_element;
    out->element_b = by->second_element;
    out->vertex_start = first;
    out->vertex_count = polygon->count;
  }
  if (patch->vertex_count <= q->vertex_capacity) {
    for (int i = 0; i < polygon->count; ++i) {
      vec3_copy(q->vertex + 3 * (first + i), polygon->corner[i]);
    }
  }
}

static void polygon_press(query *q, const pressing *by, const field_polygon *polygon) {
  polygon_moments m;
  polygon_integrate(&m, polygon, by->normal);
  if (!(m.area > 0.0)) {
    return;
  }
  qd_patch *patch = q->patch;
  const double force = vec3_dot(by->gradient, m.first) + by->offset * m.area;
  double weighted[3], centre[3], moment[3]; /* integral of p x */
  mat3_mul_vec(weighted, m.second, by->gradient);
  vec3_axpy(weighted, by->offset, m.first);
  vec3_scale(centre, force > 0.0 ? weighted : m.first, 1.0 / (force > 0.0 ? force : m.area));
  vec3_cross(moment, weighted, by->normal);
  vec3_axpy(patch->force, force, by->normal);
  vec3_add(patch->moment, patch->moment, moment);
  vec3_add(patch->centre, patch->centre, weighted);
  patch->total_pressure += force;
  patch->area += m.area;
  tangent_add(patch->tangent, &m, by->second, by->first, -1.0 / by->stiffness);
  polygon_store(q, by, polygon, &m, force, centre);
}

/* ---------------------------------------------------------------- pairs of elements */

static int is_wrong_way(const query *q, const double normal[3], const double gradient[3]) {
  return q->filter > -2.0 && vec3_dot(normal, gradient) < q->filter * vec3_norm(gradient);
}

static void clip_by_cell(field_polygon *polygon, const field_cell *cell, int planes) {
  for (int i = 0; i < planes && polygon->count >= 3; ++i) {
    polygon_clip(polygon, cell->plane + i);
  }
}

/* Whether all corners of a cell lie on one side of a plane. */
static int is_beside(const field_cell *cell, const field_plane *plane) {
  int above = 0, below = 0;
  for (int i = 0; i < 4 && cell->plane_count == 4; ++i) {
    const double height = vec3_dot(plane->normal, cell->corner[i]) - plane->offset;
    above += height > 0.0;
    below += height < 0.0;
  }
  return above == 4 || below == 4;
}

static void soft_meets_soft(query *q, const field_cell *first, const field_cell *second,
                            pressing *by) {
  field_plane plane;
  vec3_sub(plane.normal, second->gradient, first->gradient);
  by->stiffness = vec3_normalize(plane.normal);
  const double steepest = fmax(vec3_norm(first->gradient), vec3_norm(second->gradient));
  if (!(by->stiffness > PARALLEL * steepest)) {
    q->ties += fabs(first->offset - second->offset) <= PARALLEL * first->most;
    return;
  }
  plane.offset = (first->offset - second->offset) / by->stiffness;
  if (is_beside(second, &plane)) {
    return;
  }
  double toward[3];
  vec3_scale(toward, plane.normal, -1.0);
  if (is_wrong_way(q, plane.normal, second->gradient) || is_wrong_way(q, toward, first->gradient)) {
    return;
  }
  field_polygon polygon;
  polygon_slice(&polygon, first, &plane);
  clip_by_cell(&polygon, second, second->inner_planes);
  if (polygon.count < 3) {
    return;
  }
  vec3_copy(by->normal, plane.normal);
  vec3_copy(by->first, first->gradient);
  vec3_copy(by->second, second->gradient);
  vec3_copy(by->gradient, first->gradient);
  by->offset = first->offset;
  polygon_press(q, by, &polygon);
}

/* A plane in the first body, the outside of the second one on its positive side. */
static void soft_meets_rigid_space(query *q, const field_cell *first, const field_plane *plane,
                                   pressing *by) {
  field_plane inwards = {.offset = -plane->offset};
  vec3_scale(inwards.normal, plane->normal, -1.0);
  field_polygon polygon;
  polygon_slice(&polygon, first, &inwards);
  if (polygon.count < 3) {
    return;
  }
  vec3_copy(by->normal, inwards.normal);
  vec3_copy(by->first, first->gradient);
  vec3_copy(by->second, by->normal);
  vec3_copy(by->gradient, first->gradient);
  by->offset = first->offset;
  by->stiffness = 1.0;
  polygon_press(q, by, &polygon);
}

/* 1 if the triangle lies in a face of the cell, *owner whether this cell is the one that has it:
 * the neighbour across sees the same face from the other side. */
static int lies_in_face(const field_triangle *t, const field_cell *cell, int plane, int *owner) {
  const field_plane *face = cell->plane + plane;
  const double size = cell->plane_count < 4 ? 1.0 : vec3_norm(cell->high) + vec3_norm(cell->low);
  for (int i = 0; i < 3; ++i) {
    if (fabs(vec3_dot(face->normal, t->corner[i]) - face->offset) > COPLANAR * size) {
      return 0;
    }
  }
  *owner = vec3_dot(face->normal, t->normal) > 0.0;
  return 1;
}

/* The part of a rigid triangle inside a cell; count 0 if there is none. */
static void triangle_in_cell(field_polygon *polygon, const field_triangle *t,
                             const field_cell *cell) {
  polygon->count = 3;
  for (int i = 0; i < 3; ++i) {
    vec3_copy(polygon->corner[i], t->corner[i]);
  }
  for (int i = 0; i < cell->plane_count && polygon->count >= 3; ++i) {
    int owner = 1;
    if (!lies_in_face(t, cell, i, &owner)) {
      polygon_clip(polygon, cell->plane + i);
    } else if (!owner) {
      polygon->count = 0;
    }
  }
}

/* is_first: the triangle belongs to the first body, else to the second. */
static void soft_meets_triangle(query *q, const field_cell *cell, const field_triangle *t,
                                int is_first, pressing *by) {
  if (q->filter > -2.0 && is_wrong_way(q, t->normal, cell->gradient)) {
    return;
  }
  field_polygon polygon;
  triangle_in_cell(&polygon, t, cell);
  if (polygon.count < 3) {
    return;
  }
  double inwards[3];
  vec3_scale(inwards, t->normal, -1.0);
  vec3_copy(by->normal, is_first ? t->normal : inwards);
  vec3_copy(by->first, is_first ? inwards : cell->gradient);
  vec3_copy(by->second, is_first ? cell->gradient : inwards);
  vec3_copy(by->gradient, cell->gradient);
  by->offset = cell->offset;
  by->stiffness = 1.0;
  if (!is_first) { /* the winding of a triangle is anticlockwise about its own normal */
    for (int i = 0, j = polygon.count - 1; i < j; ++i, --j) {
      double corner[3];
      vec3_copy(corner, polygon.corner[i]);
      vec3_copy(polygon.corner[i], polygon.corner[j]);
      vec3_copy(polygon.corner[j], corner);
    }
  }
  polygon_press(q, by, &polygon);
}

/* ---------------------------------------------------------------- the search */

static int boxes_overlap(const field_box *box, const double low[3], const double high[3]) {
  return box->low[0] <= high[0] && low[0] <= box->high[0] && box->low[1] <= high[1] &&
         low[1] <= box->high[1] && box->low[2] <= high[2] && low[2] <= box->high[2];
}

/* Whether a box lies outside of the cell, or holds no place where its pressures can be those of the
 * cell. What holds for a box holds for all in it. */
static int is_apart(const field_cell *cell, const field_box *box, int is_soft) {
  if (!boxes_overlap(box, cell->low, cell->high)) {
    return 1;
  }
  double middle[3], half[3];
  for (int k = 0; k < 3; ++k) {
    middle[k] = 0.5 * (box->low[k] + box->high[k]);
    half[k] = 0.5 * (box->high[k] - box->low[k]);
  }
  for (int i = 0; i < cell->plane_count; ++i) {
    const double *n = cell->plane[i].normal;
    const double reach = fabs(n[0]) * half[0] + fabs(n[1]) * half[1] + fabs(n[2]) * half[2];
    if (vec3_dot(n, middle) - cell->plane[i].offset > reach * (1.0 + 1e-12)) {
      return 1;
    }
  }
  if (!is_soft) {
    return 0;
  }
  const double *g = cell->gradient;
  const double here = vec3_dot(g, middle) + cell->offset;
  const double spread =
      (fabs(g[0]) * half[0] + fabs(g[1]) * half[1] + fabs(g[2]) * half[2]) * (1.0 + 1e-12);
  return here - spread > box->most || here + spread < box->least;
}

/* A part of a cell of the second body: the whole cell is met at its first part that is not apart.
 */
static void part_meets(query *q, const field_cell *cell, int part, pressing *by) {
  const field_part *all = q->second->part;
  for (int i = all[part].first; i < part; ++i) {
    if (!is_apart(cell, &all[i].box, 1)) {
      return;
    }
  }
  by->second_element = all[part].element;
  soft_meets_soft(q, cell, q->second->cell + by->second_element, by);
}

/* One cell of the first body, in the second one's frame, with all that it meets there. */
static void cell_meets(query *q, const field_cell *cell, int element) {
  const qd_field *second = q->second;
  pressing by = {.first_element = element};
  if (second->kind == QD_FIELD_RIGID_SPACE) {
    soft_meets_rigid_space(q, cell, second->cell->plane, &by);
    return;
  }
  if (second->kind == QD_FIELD_SOFT_SPACE) {
    soft_meets_soft(q, cell, second->cell, &by);
    return;
  }
  const int is_soft = second->cell != NULL;
  int stack[STACK], count = 1;
  stack[0] = 0;
  while (count > 0) {
    const field_node *node = second->node + stack[--count];
    if (is_apart(cell, &node->box, is_soft)) {
      continue;
    }
    if (node->second < 0) {
      if (is_soft) {
        part_meets(q, cell, node->part, &by);
      } else {
        by.second_element = second->part[node->part].element;
        soft_meets_triangle(q, cell, second->triangle + by.second_element, 0, &by);
      }
      continue;
    }
    stack[count++] = node->second;
    stack[count++] = (int)(node - second->node) + 1;
  }
}

static void triangle_meets(query *q, const field_triangle *t, int element) {
  field_triangle moved;
  for (int i = 0; i < 3; ++i) {
    mat3_mul_vec(moved.corner[i], q->R, t->corner[i]);
    vec3_add(moved.corner[i], moved.corner[i], q->t);
  }
  mat3_mul_vec(moved.normal, q->R, t->normal);
  pressing by = {.first_element = element};
  soft_meets_triangle(q, q->second->cell, &moved, 1, &by);
}

static void element_meets(query *q, int element) {
  if (q->first->triangle) {
    triangle_meets(q, q->first->triangle + element, element);
    return;
  }
  field_cell moved;
  cell_move(&moved, q->first->cell + element, q->R, q->t);
  vec3_scale(moved.gradient, moved.gradient, q->stiffer);
  moved.offset *= q->stiffer;
  moved.most *= q->stiffer;
  cell_meets(q, &moved, element);
}

/* A box of the first body, in the second one's frame. */
static void moved_box(const query *q, const field_box *box, double low[3], double high[3]) {
  double middle[3], half[3], centre[3];
  for (int k = 0; k < 3; ++k) {
    middle[k] = 0.5 * (box->low[k] + box->high[k]);
    half[k] = 0.5 * (box->high[k] - box->low[k]);
  }
  mat3_mul_vec(centre, q->R, middle);
  vec3_add(centre, centre, q->t);
  for (int k = 0; k < 3; ++k) {
    const double reach = fabs(q->R[3 * k]) * half[0] + fabs(q->R[3 * k + 1]) * half[1] +
                         fabs(q->R[3 * k + 2]) * half[2];
    low[k] = centre[k] - reach * (1.0 + 1e-12);
    high[k] = centre[k] + reach * (1.0 + 1e-12);
  }
}

/* Whether a box may meet the second body at all: its root's box, or the half space. */
static int may_meet(const qd_field *second, const double low[3], const double high[3]) {
  return second->node_count ? boxes_overlap(&second->node->box, low, high) : low[2] <= 0.0;
}

/* The element of a part, at its first part that may meet the other body. */
static void element_of_part(query *q, int part) {
  const field_part *all = q->first->part;
  for (int i = all[part].first; i < part; ++i) {
    double low[3], high[3];
    moved_box(q, &all[i].box, low, high);
    if (may_meet(q->second, low, high)) {
      return;
    }
  }
  element_meets(q, all[part].element);
}

static void search(query *q) {
  int stack[STACK], count = 1;
  stack[0] = 0;
  while (count > 0) {
    const field_node *node = q->first->node + stack[--count];
    double low[3], high[3];
    moved_box(q, &node->box, low, high);
    if (!may_meet(q->second, low, high)) {
      continue;
    }
    if (node->second < 0) {
      element_of_part(q, node->part);
      continue;
    }
    stack[count++] = node->second;
    stack[count++] = (int)(node - q->first->node) + 1;
  }
}

/* ---------------------------------------------------------------- the whole */

/* Coordinates of wrenches change by [R 0; [t]R R], tangents by that on both sides. */
static void tangent_turn(double K[36], const double R[9], const double t[3]) {
  double T[36] = {0}, TK[36];
  for (int j = 0; j < 3; ++j) {
    double column[3], lever[3];
    mat3_column(column, R, j);
    vec3_cross(lever, t, column);
    for (int i = 0; i < 3; ++i) {
      T[6 * i + j] = column[i];
      T[6 * (3 + i) + 3 + j] = column[i];
      T[6 * (3 + i) + j] = lever[i];
    }
  }
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      TK[6 * i + j] = 0.0;
      for (int k = 0; k < 6; ++k) {
        TK[6 * i + j] += T[6 * i + k] * K[6 * k + j];
      }
    }
  }
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      K[6 * i + j] = 0.0;
      for (int k = 0; k < 6; ++k) {
        K[6 * i + j] += TK[6 * i + k] * T[6 * j + k];
      }
    }
  }
}

static void point_turn(double x[3], const double R[9], const double t[3]) {
  double moved[3];
  mat3_mul_vec(moved, R, x);
  vec3_add(x, moved, t);
}

/* From the other body's frame and sides to this one's. */
static void turn_round(query *q, const double R[9], const double t[3]) {
  qd_patch *patch = q->patch;
  double force[3], moment[3], lever[3];
  mat3_mul_vec(force, R, patch->force);
  mat3_mul_vec(moment, R, patch->moment);
  vec3_cross(lever, t, force);
  vec3_add(moment, moment, lever);
  vec3_scale(patch->force, force, -1.0);
  vec3_scale(patch->moment, moment, -1.0);
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < i; ++j) {
      const double swapped = patch->tangent[6 * i + j];
      patch->tangent[6 * i + j] = patch->tangent[6 * j + i];
      patch->tangent[6 * j + i] = swapped;
    }
  }
  tangent_turn(patch->tangent, R, t);
  point_turn(patch->centre, R, t);
  for (int i = 0; i < patch->polygon_count && i < q->polygon_capacity; ++i) {
    qd_patch_polygon *p = q->polygon + i, old = *p;
    point_turn(p->centre, R, t);
    mat3_mul_vec(p->normal, R, old.normal);
    vec3_scale(p->normal, p->normal, -1.0);
    mat3_mul_vec(p->gradient_a, R, old.gradient_b);
    mat3_mul_vec(p->gradient_b, R, old.gradient_a);
    p->element_a = old.element_b;
    p->element_b = old.element_a;
  }
  for (int i = 0; i < patch->vertex_count && patch->vertex_count <= q->vertex_capacity; ++i) {
    point_turn(q->vertex + 3 * i, R, t);
  }
}

static void run(query *q) {
  *q->patch = (qd_patch){0};
  q->ties = 0;
  search(q);
  if (q->patch->total_pressure > 0.0) {
    vec3_scale(q->patch->centre, q->patch->centre, 1.0 / q->patch->total_pressure);
  }
}

/* 1: as given; -1: exchanged; 0: no surface between such bodies. */
static int sides(qd_field_kind a, qd_field_kind b) {
  if (a == QD_FIELD_SOFT || (a == QD_FIELD_RIGID && b == QD_FIELD_SOFT_SPACE)) {
    return 1;
  }
  return b == QD_FIELD_SOFT || (b == QD_FIELD_RIGID && a == QD_FIELD_SOFT_SPACE) ? -1 : 0;
}

int qd_field_pair_supported(qd_field_kind a, qd_field_kind b) { return sides(a, b) != 0; }

qd_status qd_field_patch(const qd_field *a, const qd_field *b, const double R[9], const double t[3],
                         double filter_angle, qd_patch *patch, qd_patch_polygon *polygons,
                         int polygon_capacity, double *vertices, int vertex_capacity) {
  const int side = sides(a->kind, b->kind);
  if (side == 0) {
    return QD_BAD_ARGUMENT;
  }
  query q = {.first = side > 0 ? a : b,
             .second = side > 0 ? b : a,
             .stiffer = 1.0,
             .filter = filter_angle > 0.0 ? cos(filter_angle) : -3.0,
             .patch = patch,
             .polygon = polygons,
             .polygon_capacity = polygon_capacity,
             .vertex = vertices,
             .vertex_capacity = vertex_capacity};
  memcpy(q.R, R, sizeof q.R);
  vec3_copy(q.t, t);
  if (side < 0) {
    for (int i = 0; i < 3; ++i) {
      mat3_column(q.R + 3 * i, R, i);
    }
    mat3_tmul_vec(q.t, R, t);
    vec3_scale(q.t, q.t, -1.0);
  }
  run(&q);
  if (q.ties > 0) {
    q.stiffer = 1.0 + TIE;
    run(&q);
  }
  if (side < 0) {
    turn_round(&q, R, t);
  }
  return patch->polygon_count > polygon_capacity && polygon_capacity > 0 ? QD_OUT_OF_CAPACITY
                                                                         : QD_OK;
}
