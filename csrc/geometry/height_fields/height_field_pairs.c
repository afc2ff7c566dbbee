/* A height field against a convex shape. The parts of the field near the shape are convex shapes:
 * planes of faces, and edges and vertices of radius zero. The pair functions of the part and the
 * shape give contacts and derivatives. A contact is kept if its point on the part and its normal
 * are those of the solid:
 *
 *   on a face: the point is in the face, or the penetrating point is below the face with only solid
 *   in between;
 *   on an edge or a vertex: the normal is between those of the adjacent faces (hfield_part).
 *
 * Along edges where the surface is flat or concave only the faces' normals remain, so no contacts
 * arise at inner edges. A point that penetrates sides and surface belongs to the nearer one.
 *
 * The feature of a contact combines its part with the feature of the pair function modulo FOLDS. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/bounds.h"
#include "geometry/height_fields/height_field.h"
#include "geometry/pairs/face_manifold.h"
#include "geometry/pairs/pairs.h"
#include "geometry/relative.h"

/* A prime, so that features of the pair functions differ modulo it. */
static const contact_feature FOLDS = ((contact_feature)1 << 37) - 25;

enum { NEAREST_KEPT = CONTACTS_PER_PAIR_MAX / 2 };

/* The shape in the field's frame, and the contacts found so far. */
typedef struct touching {
  const height_field *field;
  placed_shape shape;
  double half[3], low[3], high[3]; /* of a box around the shape */
  double range, same, skin;        /* same: lengths below this count as zero */
  contact_point found[FACE_MANIFOLD_CAPACITY];
  int count;
} touching;

static double skin_of(const placed_shape *shape) {
  return shape->type == QD_SPHERE ? shape->size[0] : face_manifold_skin(shape);
}

/* ---------------------------------------------------------------- which contacts are kept */

/* 1 if a point in the plane of a face is inside the face, seen from above. */
static int is_over_face(const height_field *field, int part, const double x[2]) {
  const int index = part / PART_KINDS;
  const double u = (x[0] + field->half[0]) / field->step[0] - index % field->column_count;
  const double v = (x[1] + field->half[1]) / field->step[1] - index / field->column_count;
  const double low = part % PART_KINDS == PART_RIGHT_FACE ? v : u;
  const double high = part % PART_KINDS == PART_RIGHT_FACE ? u : v;
  return low >= -CALLERS_ROUNDING && high <= 1.0 + CALLERS_ROUNDING &&
         low <= high + CALLERS_ROUNDING;
}

/* Distance of a point from the nearest vertical side, positive inside. */
static double depth_from_sides(const height_field *field, const double x[3]) {
  return fmin(field->half[0] - fabs(x[0]), field->half[1] - fabs(x[1]));
}

/* The point of the shape, without its skin, that touches a plane. */
static double core_point(double p[3], const touching *t, const contact_point *contact,
                         const double on_part[3]) {
  const double depth = contact->dist + t->skin;
  vec3_copy(p, on_part);
  vec3_axpy(p, depth, contact->normal);
  return depth;
}

static int counts_on_face(const touching *t, int part, const contact_point *contact,
                          const double on_part[3]) {
  double p[3];
  const double depth = core_point(p, t, contact, on_part);
  if (depth >= 0.0) {
    return is_over_face(t->field, part, on_part);
  }
  return (is_over_face(t->field, part, on_part) || is_over_face(t->field, part, p)) &&
         depth_from_sides(t->field, p) >= -depth - t->same &&
         height_field_emerged(t->field, on_part, p) <= t->same;
}

static int counts_on_side(const touching *t, int side, const contact_point *contact,
                          const double on_part[3]) {
  const height_field *field = t->field;
  double p[3];
  const double depth = core_point(p, t, contact, on_part);
  const int inside = depth_from_sides(field, on_part) >= -t->same;
  if (side == 4) {
    return inside && (depth >= 0.0 || depth_from_sides(field, p) >= -depth - t->same);
  }
  const double height = height_field_height(field, on_part[0], on_part[1]);
  if (!inside || on_part[2] < field->bottom - t->same || on_part[2] > height + t->same) {
    return 0;
  }
  return depth >= 0.0 || (depth_from_sides(field, p) >= -depth - t->same &&
                          height_field_height(field, p[0], p[1]) - p[2] >= -depth - t->same);
}

static int counts_around(const hfield_part *part, const contact_point *contact,
                         const double on_part[3]) {
  if (part->is_edge) {
    double along[3];
    vec3_sub(along, part->to, part->from);
    const double share = vec3_dot_sub(along, on_part, part->from) / vec3_dot(along, along);
    if (share < CALLERS_ROUNDING || share > 1.0 - CALLERS_ROUNDING) {
      return 0; /* belongs to the vertices */
    }
  }
  for (int i = 0; i < part->direction_count; ++i) {
    const double *direction = part->direction[i];
    if (vec3_dot(contact->normal, direction) > CALLERS_ROUNDING * vec3_norm(direction)) {
      return 0;
    }
  }
  return 1;
}

static int counts(const touching *t, const hfield_part *part, int code,
                  const contact_point *contact) {
  const part_kind kind = (part_kind)(code % PART_KINDS);
  double on_part[3];
  vec3_copy(on_part, contact->pos);
  vec3_axpy(on_part, -0.5 * contact->dist, contact->normal);
  if (kind <= PART_RIGHT_FACE) {
    return counts_on_face(t, code, contact, on_part);
  }
  return kind == PART_SIDE ? counts_on_side(t, code / PART_KINDS, contact, on_part)
                           : counts_around(part, contact, on_part);
}

/* ---------------------------------------------------------------- one part */

static contact_feature field_feature(int part, contact_feature of_row) {
  return part * FOLDS + of_row % FOLDS;
}

contact_feature height_field_feature(int part) { return field_feature(part, 0); }

static int is_known(const touching *t, const contact_point *contact) {
  for (int i = 0; i < t->count; ++i) {
    double apart[3], turned[3];
    vec3_sub(apart, t->found[i].pos, contact->pos);
    vec3_sub(turned, t->found[i].normal, contact->normal);
    if (vec3_norm(apart) <= t->same && vec3_norm(turned) <= CALLERS_ROUNDING) {
      return 1;
    }
  }
  return 0;
}

static void keep(touching *t, const contact_point *contact, int part) {
  if (is_known(t, contact)) {
    return;
  }
  if (t->count == FACE_MANIFOLD_CAPACITY) {
    t->count = contacts_reduce(t->found, t->count, CONTACTS_PER_PAIR_MAX, NEAREST_KEPT);
  }
  t->found[t->count] = *contact;
  t->found[t->count++].feature = field_feature(part, contact->feature);
}

/* every: 1 to keep all contacts of the pair function. */
static void touch(touching *t, const hfield_part *part, int code, int every) {
  contact_point contact[CONTACTS_PER_PAIR_MAX];
  const int count = shapes_collide(&part->shape, &t->shape, t->range, contact);
  for (int i = 0; i < count; ++i) {
    if (every || counts(t, part, code, contact + i)) {
      keep(t, contact + i, code);
    }
  }
}

/* 1 if the shape's box is farther than the range above the plane of a face. */
static int is_far_over_face(const touching *t, const hfield_face *face) {
  double slope[2];
  hfield_face_slopes(slope, t->field, face->column, face->row, face->kind);
  const double *x = t->shape.pos;
  const double height = x[2] -
                        hfield_plane_height(t->field, face->column, face->row, slope, x[0], x[1]) -
                        fabs(slope[0]) * t->half[0] - fabs(slope[1]) * t->half[1] - t->half[2];
  return height > 0.0 &&
         height * height > t->range * t->range * (1.0 + slope[0] * slope[0] + slope[1] * slope[1]);
}

/* Normals at an edge are positive combinations of the normals of its faces: a box that is far above
 * both faces is also far from the edge. */
static int is_far_over_edge(const touching *t, int column, int row, part_kind edge) {
  hfield_face face[2];
  return hfield_edge_faces(face, t->field, column, row, edge) == 2 && is_far_over_face(t, face) &&
         is_far_over_face(t, face + 1);
}

/* 1 if the shape's box is farther than the range from the box around an edge or a vertex. */
static int is_far_from(const touching *t, const hfield_part *part) {
  const double *to = part->is_edge ? part->to : part->from;
  for (int k = 0; k < 3; ++k) {
    if (fmin(part->from[k], to[k]) > t->high[k] + t->range ||
        fmax(part->from[k], to[k]) < t->low[k] - t->range) {
      return 1;
    }
  }
  return 0;
}

static void touch_part(touching *t, int code) {
  hfield_part part;
  hfield_part_place(&part, t->field, code);
  if (part.shape.type == QD_PLANE || !is_far_from(t, &part)) {
    touch(t, &part, code, 0);
  }
}

/* ---------------------------------------------------------------- all parts within range */

/* Tests the parts that begin at a grid point. */
static void touch_around_point(touching *t, int column, int row) {
  const height_field *field = t->field;
  const int index = row * field->column_count + column;
  const int is_cell = column < field->column_count - 1 && row < field->row_count - 1;
  for (part_kind kind = PART_LEFT_FACE; is_cell && kind <= PART_RIGHT_FACE; ++kind) {
    if (!is_far_over_face(t, &(hfield_face){column, row, kind})) {
      touch_part(t, hfield_part_code(kind, index));
    }
  }
  for (part_kind kind = PART_EDGE_X; kind <= PART_VERTEX; ++kind) {
    const int code = hfield_part_code(kind, index);
    if (hfield_part_stands_out(field, code) &&
        (kind == PART_VERTEX || !is_far_over_edge(t, column, row, kind))) {
      touch_part(t, code);
    }
  }
}

/* Largest height of the parts that begin at a grid point. */
static double highest_around(const height_field *field, int column, int row) {
  const int right = column < field->column_count - 1, up = row < field->row_count - 1;
  const double *corner = field->height + (size_t)row * (size_t)field->column_count + column;
  const double *above = corner + (up ? field->column_count : 0);
  return fmax(fmax(corner[0], corner[right]), fmax(above[0], above[right]));
}

/* Grid points, first and last along each axis, at which parts begin that are at most `beside` from
 * the box. */
static void points_within(int first[2], int last[2], const touching *t, double beside) {
  for (int k = 0; k < 2; ++k) {
    first[k] = height_field_cell(t->field, k, t->low[k] - beside);
    last[k] = height_field_cell(t->field, k, t->high[k] + beside) + 1;
  }
}

/* Horizontal distance from the shape's box within which it may touch. Normals of the surface are no
 * more inclined than its faces. Along a normal, a contact is at most as far away as the range, or
 * as the box is below the surface. At the rim normals may be horizontal. */
static double touching_beside(const touching *t) {
  const height_field *field = t->field;
  int first[2], last[2];
  double depth = 0.0;
  points_within(first, last, t, 0.0);
  for (int row = first[1]; row <= last[1]; ++row) {
    for (int column = first[0]; column <= last[0]; ++column) {
      depth = fmax(depth, highest_around(field, column, row) - t->low[2]);
    }
  }
  const double far = fmax(t->range, depth);
  for (int k = 0; k < 2; ++k) {
    if (t->low[k] - far < -field->half[k] || t->high[k] + far > field->half[k]) {
      return far;
    }
  }
  return far * field->steepest / hypot(1.0, field->steepest) + t->same;
}

static void touch_surface(touching *t) {
  int first[2], last[2];
  points_within(first, last, t, touching_beside(t));
  for (int row = first[1]; row <= last[1]; ++row) {
    for (int column = first[0]; column <= last[0]; ++column) {
      if (highest_around(t->field, column, row) >= t->low[2] - t->range) {
        touch_around_point(t, column, row);
      }
    }
  }
}

/* Tests sides beyond which the shape's box extends, with their edges and corners. */
static void touch_sides(touching *t) {
  const height_field *field = t->field;
  int out = 0;
  for (int side = 0; side < 4; ++side) {
    const int axis = side / 2;
    if (side % 2 ? t->high[axis] > field->half[axis] : t->low[axis] < -field->half[axis]) {
      touch_part(t, hfield_part_code(PART_SIDE, side));
      out = 1;
    }
  }
  if (t->shape.pos[2] < field->bottom) {
    touch_part(t, hfield_part_code(PART_SIDE, 4));
    out = 1;
  }
  for (int i = 0; out && i < 12; ++i) {
    touch_part(t, hfield_part_code(PART_FRAME, i));
  }
}

/* 1 if the shape's centre is inside although no penetrating contact was found. */
static int is_inside_unseen(const touching *t) {
  const double *x = t->shape.pos;
  for (int i = 0; i < t->count; ++i) {
    if (t->found[i].dist < 0.0) {
      return 0;
    }
  }
  return depth_from_sides(t->field, x) >= 0.0 && x[2] >= t->field->bottom &&
         x[2] <= height_field_height(t->field, x[0], x[1]);
}

/* Keeps all contacts with the face above or below the shape's centre. */
static void touch_middle_face(touching *t) {
  const height_field *field = t->field;
  const double x[2] = {clamp(t->shape.pos[0], field->half[0]),
                       clamp(t->shape.pos[1], field->half[1])};
  const int index =
      height_field_cell(field, 1, x[1]) * field->column_count + height_field_cell(field, 0, x[0]);
  const int left = hfield_part_code(PART_LEFT_FACE, index);
  const int code = is_over_face(field, left, x) ? left : hfield_part_code(PART_RIGHT_FACE, index);
  hfield_part part;
  hfield_part_place(&part, field, code);
  touch(t, &part, code, 1);
}

/* Upper bound of the shape's distance: from its centre to the solid's point above or below it. */
static double reach(const height_field *field, const double x[3]) {
  const double foot[2] = {clamp(x[0], field->half[0]), clamp(x[1], field->half[1])};
  const double height = height_field_height(field, foot[0], foot[1]);
  const double d[3] = {x[0] - foot[0], x[1] - foot[1],
                       x[2] - fmax(field->bottom, fmin(height, x[2]))};
  return vec3_norm(d);
}

static int is_out_of_range(const touching *t) {
  const height_field *field = t->field;
  return t->low[0] - t->range > field->half[0] || t->high[0] + t->range < -field->half[0] ||
         t->low[1] - t->range > field->half[1] || t->high[1] + t->range < -field->half[1] ||
         t->low[2] - t->range > field->highest || t->high[2] + t->range < field->bottom;
}

static void gather(touching *t, const placed_shape *a, const placed_shape *b, double margin) {
  t->field = a->heights;
  t->shape = relative_shape(b, a);
  t->count = 0;
  shape_half_extents(&t->shape, t->half);
  vec3_sub(t->low, t->shape.pos, t->half);
  vec3_add(t->high, t->shape.pos, t->half);
  t->same = CALLERS_ROUNDING * (vec3_norm(t->half) + t->field->step[0] + t->field->step[1]);
  t->range = margin < INFINITY ? margin : reach(t->field, t->shape.pos) + t->same;
  t->skin = skin_of(b);
  if (!is_out_of_range(t)) {
    if (t->shape.pos[2] >= t->field->bottom) {
      touch_surface(t);
    }
    touch_sides(t);
  }
  t->range = margin;
  if ((t->count == 0 && margin == INFINITY) || is_inside_unseen(t)) {
    touch_middle_face(t);
  }
}

int height_field_convex_collide(const placed_shape *a, const placed_shape *b, double margin,
                                contact_point *out) {
  touching t;
  gather(&t, a, b, margin);
  const int count = contacts_reduce(t.found, t.count, CONTACTS_PER_PAIR_MAX, NEAREST_KEPT);
  for (int i = 0; i < count; ++i) {
    out[i] = t.found[i];
    mat3_mul_vec(out[i].normal, a->rot, t.found[i].normal);
    mat3_mul_add(out[i].pos, a->rot, t.found[i].pos, a->pos);
  }
  return count;
}

/* ---------------------------------------------------------------- one contact by its feature */

static void part_in_world(hfield_part *out, const placed_shape *field, int part) {
  double pos[3], rot[9];
  hfield_part_place(out, field->heights, part);
  vec3_copy(pos, out->shape.pos);
  memcpy(rot, out->shape.rot, sizeof rot);
  mat3_mul_add(out->shape.pos, field->rot, pos, field->pos);
  mat3_mul(out->shape.rot, field->rot, rot);
}

/* The contact of a feature from the pair function of its part, and the part in the world. */
static void find_again(const placed_shape *a, const placed_shape *b, contact_feature feature,
                       hfield_part *part, contact_point *out) {
  contact_point found[CONTACTS_PER_PAIR_MAX] = {{.dist = INFINITY}};
  int best = 0;
  part_in_world(part, a, (int)(feature / FOLDS));
  const int count = shapes_collide(&part->shape, b, INFINITY, found);
  for (int i = 0; i < count; ++i) {
    if (found[i].feature % FOLDS == feature % FOLDS) {
      best = i;
      break;
    }
    best = found[i].dist < found[best].dist ? i : best;
  }
  *out = found[best];
}

void height_field_contact(const placed_shape *a, const placed_shape *b, contact_feature feature,
                          contact_point *out) {
  hfield_part part;
  find_again(a, b, feature, &part, out);
  out->feature = field_feature((int)(feature / FOLDS), out->feature);
}

void height_field_convex_derivative(const placed_shape *a, const placed_shape *b,
                                    const contact_point *contact, contact_point_derivative *out) {
  hfield_part part;
  contact_point found;
  find_again(a, b, contact->feature, &part, &found);
  shapes_collide_derivative(&part.shape, b, &found, out);
}

/* Sizes of a height field do not change. */
void height_field_convex_size_derivative(const placed_shape *a, const placed_shape *b,
                                         const contact_point *contact,
                                         contact_point_derivative *out) {
  hfield_part part;
  contact_point found;
  find_again(a, b, contact->feature, &part, &found);
  shapes_size_derivative(&part.shape, b, &found, out);
  for (int j = 0; j < 3; ++j) {
    out->dist[j] = 0.0;
    for (int i = 0; i < 3; ++i) {
      out->pos[6 * i + j] = out->normal[6 * i + j] = 0.0;
    }
  }
}
