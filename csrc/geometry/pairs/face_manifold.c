/* A vertex of the clipped part is where two lines meet: sides of the face (labels below LABEL_EDGE;
 * planes fixed to the face) or edges of the other's part (labels from LABEL_EDGE on; they move with
 * the other shape).
 *
 * Its motion dx, with m the material motion of the other shape at x, N the face's normal, s_k the
 * normals of its sides, d the direction of an edge and N' the normal of the other's face:
 *
 *   two edges meet (a vertex):     dx = m
 *   an edge crosses side k:        dx = m - d (s_k.m) / (s_k.d)      slides along the edge
 *   two sides meet (face's vertex): dx = N (N'.m) / (N'.N)           slides along N
 *
 * and dist = N.(x - o) - skin, pos = x - (skin + dist/2) N, with N fixed. The lowest line of a
 * cylinder also rotates about the axis a: x = c + r p, p = -y/|y|, y = N - (N.a) a.
 *
 * A round cap is replaced by its inscribed hexagon, fixed to the cylinder: a standing cylinder is
 * then held by the same six points in every step. */
#include "geometry/pairs/face_manifold.h"

#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/surface.h"
#include "qdsim.h"

enum { CAP_SIDES = 6, LABEL_EDGE = MESH_SIDES_MAX };
enum { LABEL_LOWER_END = LABEL_EDGE + 1, LABEL_UPPER_END = LABEL_EDGE + 2 };
enum { LABEL_BRACE = LABEL_EDGE + MESH_OUTLINE_MAX }; /* vertices around the part (mesh.h) */
/* Bits of a feature: two labels, the part, the face. */
enum { LABEL_BITS = 6, PART_AT = 2 * LABEL_BITS, INDEX_BITS = 23, FACE_AT = PART_AT + INDEX_BITS };
enum { CYLINDER_LOWEST_LINE = 2 }; /* part of `other`; 0 and 1 are the caps, as for owners */

/* If the cosine of the angle between a cylinder's axis and the face's normal exceeds this, the
 * cylinder touches with a cap, otherwise with its lowest line. */
static const double CAP_COSINE = 0.70710678118654752;

typedef struct polygon_vertex {
  double x[3];
  int before, after; /* labels of the lines that meet here */
} polygon_vertex;

/* ---------------------------------------------------------------- faces */

int face_towards(const placed_shape *shape, const double direction[3]) {
  double y[3];
  if (shape->type == QD_PLANE) {
    return 0;
  }
  if (shape->type != QD_BOX && shape->type != QD_CYLINDER && shape->type != QD_MESH) {
    return -1;
  }
  mat3_tmul_vec(y, shape->rot, direction);
  if (shape->type == QD_MESH) {
    return mesh_polygon_towards(shape->mesh, mesh_support(shape->mesh, y), y);
  }
  if (shape->type == QD_CYLINDER) {
    return y[2] > 0.0;
  }
  int axis = 0;
  for (int i = 1; i < 3; ++i) {
    axis = fabs(y[i]) > fabs(y[axis]) + 1e-9 ? i : axis;
  }
  return 2 * axis + (y[axis] > 0.0);
}

void face_normal(double normal[3], const placed_shape *shape, int face) {
  if (shape->type == QD_PLANE) {
    mat3_column(normal, shape->rot, 2);
    return;
  }
  if (shape->type == QD_MESH) {
    mat3_mul_vec(normal, shape->rot, shape->mesh->normal + 3 * face);
    return;
  }
  mat3_column(normal, shape->rot, shape->type == QD_BOX ? face / 2 : 2);
  vec3_scale(normal, normal, face % 2 ? 1.0 : -1.0);
}

static void face_center(double center[3], const placed_shape *shape, int face) {
  double normal[3];
  vec3_copy(center, shape->pos);
  if (shape->type != QD_PLANE) {
    face_normal(normal, shape, face);
    vec3_axpy(center,
              shape->type == QD_MESH ? shape->mesh->offset[face]
                                     : shape->size[shape->type == QD_BOX ? face / 2 : 1],
              normal);
  }
}

/* A polygon of a mesh keeps more corners if it clips than if it is clipped. */
typedef enum face_role { CLIPS, IS_CLIPPED } face_role;

/* The corners of a mesh's polygon in this role. */
static const int *mesh_corners(const convex_mesh *mesh, int face, face_role role, int *count) {
  const int *start = (role == CLIPS ? mesh->clip_start : mesh->outline_start) + face;
  *count = start[1] - start[0];
  return (role == CLIPS ? mesh->clip : mesh->outline) + start[0];
}

static int face_side_count(const placed_shape *shape, int face, face_role role) {
  int count = CAP_SIDES;
  if (shape->type == QD_MESH) {
    mesh_corners(shape->mesh, face, role, &count);
    return count;
  }
  return shape->type == QD_PLANE ? 0 : shape->type == QD_BOX ? 4 : CAP_SIDES;
}

/* 1 if the polygon used for a face in this role lacks some of the face: a cap, or a mesh's polygon
 * with too many corners. */
static int face_is_coarse(const placed_shape *shape, int face, face_role role) {
  if (shape->type != QD_MESH) {
    return shape->type == QD_CYLINDER;
  }
  int count;
  mesh_corners(shape->mesh, face, role, &count);
  return count < shape->mesh->side_start[face + 1] - shape->mesh->side_start[face];
}

/* Size of a face or of the other's part; for a line, the size of the shape. */
static double face_extent(const placed_shape *shape, int face) {
  if (shape->type == QD_CYLINDER) {
    return face < 2 ? shape->size[0] : shape_extent(shape);
  }
  return shape->type == QD_PLANE  ? INFINITY
         : shape->type == QD_MESH ? shape->mesh->extent[face]
                                  : shape_extent(shape);
}

static double mesh_face_side(double normal[3], double vertex[3], const placed_shape *shape,
                             int face, face_role role, int k) {
  const convex_mesh *mesh = shape->mesh;
  const double *plane = mesh->normal + 3 * face;
  int count;
  const int *corner = mesh_corners(mesh, face, role, &count);
  double from[3], along[3], side[3];
  vec3_copy(from, mesh->vertex + 3 * corner[k]);
  vec3_sub(along, mesh->vertex + 3 * corner[(k + 1) % count], from);
  vec3_cross(side, along, plane);
  vec3_normalize(side);
  vec3_axpy(from, -mesh->offset[face], plane);
  mat3_mul_vec(normal, shape->rot, side);
  mat3_mul_vec(vertex, shape->rot, from);
  return vec3_dot(side, from);
}

/* Unit normal of side k in the world, its vertex k (shared by sides k-1 and k) relative to the
 * centre, and the side's distance from the centre. */
static double face_side(double normal[3], double vertex[3], const placed_shape *shape, int face,
                        face_role role, int k) {
  double u[3], v[3];
  if (shape->type == QD_MESH) {
    return mesh_face_side(normal, vertex, shape, face, role, k);
  }
  if (shape->type == QD_BOX) {
    static const int COSINE[4] = {1, 0, -1, 0};
    const int i = (face / 2 + 1) % 3, j = (face / 2 + 2) % 3;
    mat3_column(u, shape->rot, i);
    mat3_column(v, shape->rot, j);
    const int c = COSINE[k], s = COSINE[(k + 3) % 4]; /* side normals +u +v -u -v */
    vec3_scale(normal, u, c);
    vec3_axpy(normal, s, v);
    const int cu = c != 0 ? c : s, cv = c != 0 ? -c : s; /* vertices +- -+ ... in order */
    vec3_scale(vertex, u, cu * shape->size[i]);
    vec3_axpy(vertex, cv * shape->size[j], v);
    return shape->size[c != 0 ? i : j];
  }
  const double r = shape->size[0], middle = HALF_TURN / CAP_SIDES, angle = 2.0 * k * middle;
  mat3_column(u, shape->rot, 0);
  mat3_column(v, shape->rot, 1);
  vec3_scale(vertex, u, r * cos(angle));
  vec3_axpy(vertex, r * sin(angle), v);
  vec3_scale(normal, u, cos(angle + middle));
  vec3_axpy(normal, sin(angle + middle), v);
  return r * cos(middle);
}

/* ---------------------------------------------------------------- the part of the other shape */

/* p of the lowest line of a cylinder with this axis; returns |y|. */
static double lowest_direction(double p[3], const double axis[3], const double normal[3]) {
  vec3_reject(p, normal, axis);
  vec3_scale(p, p, -1.0);
  return vec3_normalize(p);
}

/* The face of `other` opposite the normal; a capsule has only its axis (0). */
static int opposing_face(const placed_shape *other, const double normal[3]) {
  double minus[3], axis[3];
  vec3_scale(minus, normal, -1.0);
  if (other->type == QD_BOX || other->type == QD_MESH) {
    return face_towards(other, minus);
  }
  if (other->type == QD_CYLINDER) {
    mat3_column(axis, other->rot, 2);
    return fabs(vec3_dot(axis, normal)) < CAP_COSINE ? CYLINDER_LOWEST_LINE
                                                     : face_towards(other, minus);
  }
  return other->type == QD_CAPSULE ? 0 : -1;
}

static int is_line(const placed_shape *other, int part) {
  return other->type == QD_CAPSULE || (other->type == QD_CYLINDER && part == CYLINDER_LOWEST_LINE);
}

static int part_polygon(polygon_vertex *out, const placed_shape *other, int part,
                        const double normal[3]) {
  if (is_line(other, part)) {
    double axis[3], p[3];
    mat3_column(axis, other->rot, 2);
    lowest_direction(p, axis, normal);
    for (int k = 0; k < 2; ++k) {
      vec3_copy(out[k].x, other->pos);
      vec3_axpy(out[k].x, (k == 0 ? -1.0 : 1.0) * other->size[1], axis);
      if (other->type == QD_CYLINDER) {
        vec3_axpy(out[k].x, other->size[0], p);
      }
      out[k].before = LABEL_EDGE;
      out[k].after = k == 0 ? LABEL_LOWER_END : LABEL_UPPER_END;
    }
    return other->size[1] > 0.0 ? 2 : 0;
  }
  const int count = face_side_count(other, part, IS_CLIPPED);
  double center[3], side[3], vertex[3];
  face_center(center, other, part);
  for (int k = 0; k < count; ++k) {
    face_side(side, vertex, other, part, IS_CLIPPED, k);
    vec3_add(out[k].x, center, vertex);
    out[k].before = LABEL_EDGE + (k + count - 1) % count;
    out[k].after = LABEL_EDGE + k;
  }
  return count;
}

static void between(double x[3], const double from[3], const double to[3], double t) {
  for (int i = 0; i < 3; ++i) {
    x[i] = from[i] + t * (to[i] - from[i]);
  }
}

/* Clips a polygon to the inner side of side k; vertex i is outside if excess[i] > 0. */
static int clip_polygon(polygon_vertex *vertices, int count, const double *excess, int k) {
  polygon_vertex kept[FACE_MANIFOLD_CAPACITY];
  int kept_count = 0;
  for (int i = 0; i < count && kept_count < FACE_MANIFOLD_CAPACITY - 1; ++i) {
    const int next = (i + 1) % count;
    const int in = excess[i] <= 0.0, next_in = excess[next] <= 0.0;
    if (in) {
      kept[kept_count++] = vertices[i];
    }
    if (in != next_in) {
      polygon_vertex *crossing = kept + kept_count++;
      between(crossing->x, vertices[i].x, vertices[next].x, excess[i] / (excess[i] - excess[next]));
      crossing->before = in ? vertices[i].after : k;
      crossing->after = in ? k : vertices[i].after;
    }
  }
  memcpy(vertices, kept, (size_t)kept_count * sizeof kept[0]);
  return kept_count;
}

static int clip_line(polygon_vertex ends[2], const double excess[2], int k) {
  if (excess[0] > 0.0 && excess[1] > 0.0) {
    return 0;
  }
  for (int i = 0; i < 2; ++i) {
    if (excess[i] > 0.0) {
      between(ends[i].x, ends[i].x, ends[1 - i].x, excess[i] / (excess[i] - excess[1 - i]));
      ends[i].after = k;
    }
  }
  return 2;
}

static int clip(polygon_vertex *vertices, int count, const placed_shape *owner, int face,
                double tolerance) {
  double center[3], side[3], vertex[3], excess[FACE_MANIFOLD_CAPACITY];
  const int line = count == 2;
  face_center(center, owner, face);
  for (int k = 0; k < face_side_count(owner, face, CLIPS) && count > 0; ++k) {
    const double reach = face_side(side, vertex, owner, face, CLIPS, k);
    for (int i = 0; i < count; ++i) {
      excess[i] = vec3_dot_sub(side, vertices[i].x, center) - reach;
      excess[i] = fabs(excess[i]) <= tolerance ? 0.0 : excess[i];
    }
    count = line ? clip_line(vertices, excess, k) : clip_polygon(vertices, count, excess, k);
  }
  return count;
}

/* Appends the braces of a mesh's polygon that are over the face. */
static int add_braces(polygon_vertex *vertices, int count, const placed_shape *owner, int face,
                      const placed_shape *other, int part, double tolerance) {
  const convex_mesh *mesh = other->mesh;
  double center[3], side[3], vertex[3], arm[3];
  face_center(center, owner, face);
  for (int i = 0; i < mesh->brace_count[part] && count < FACE_MANIFOLD_CAPACITY; ++i) {
    polygon_vertex *brace = vertices + count;
    int over = 1;
    mat3_mul_add(brace->x, other->rot, mesh->vertex + 3 * mesh->brace[MESH_BRACES_MAX * part + i],
                 other->pos);
    vec3_sub(arm, brace->x, center);
    for (int k = 0; k < face_side_count(owner, face, CLIPS) && over; ++k) {
      const double reach = face_side(side, vertex, owner, face, CLIPS, k);
      over = vec3_dot(side, arm) - reach <= tolerance;
    }
    brace->before = brace->after = LABEL_BRACE + i;
    count += over;
  }
  return count;
}

/* ---------------------------------------------------------------- contacts */

double face_manifold_skin(const placed_shape *other) {
  return other->type == QD_CAPSULE ? other->size[0] : 0.0;
}

static contact_feature feature_code(int face, int part, const polygon_vertex *vertex) {
  const int low = vertex->before < vertex->after ? vertex->before : vertex->after;
  const int high = vertex->before < vertex->after ? vertex->after : vertex->before;
  return FACE_MANIFOLD_FEATURE | (contact_feature)face << FACE_AT |
         (contact_feature)part << PART_AT | low << LABEL_BITS | high;
}

static int bits(contact_feature feature, int at, int count) {
  return (int)(feature >> at & ((1 << count) - 1));
}

double face_manifold_coarseness(const placed_shape *owner, const placed_shape *other,
                                contact_feature feature) {
  const int face = bits(feature, FACE_AT, INDEX_BITS), part = bits(feature, PART_AT, INDEX_BITS);
  const int low = bits(feature, LABEL_BITS, LABEL_BITS), high = bits(feature, 0, LABEL_BITS);
  const int cut = low < LABEL_EDGE && face_is_coarse(owner, face, CLIPS);
  const int own = high >= LABEL_EDGE && high < LABEL_BRACE && !is_line(other, part) &&
                  face_is_coarse(other, part, IS_CLIPPED);
  return cut || own ? CAP_COVERED * fmin(face_extent(owner, face), face_extent(other, part)) : 0.0;
}

static int same_place(const polygon_vertex *a, const polygon_vertex *b, double tolerance) {
  double difference[3];
  vec3_sub(difference, a->x, b->x);
  return vec3_norm(difference) <= tolerance;
}

int face_manifold(const placed_shape *owner, int face, const placed_shape *other,
                  contact_point *out) {
  polygon_vertex vertices[FACE_MANIFOLD_CAPACITY];
  double normal[3], center[3];
  face_normal(normal, owner, face);
  face_center(center, owner, face);
  const int part = opposing_face(other, normal);
  if (part < 0) {
    return 0;
  }
  const double tolerance = CALLERS_ROUNDING * (shape_extent(owner) + shape_extent(other));
  int count = part_polygon(vertices, other, part, normal), kept = 0;
  count = clip(vertices, count, owner, face, tolerance);
  if (other->type == QD_MESH) {
    count = add_braces(vertices, count, owner, face, other, part, tolerance);
  }
  for (int i = 0; i < count; ++i) {
    int repeated = 0;
    for (int j = 0; j < i; ++j) {
      repeated |= same_place(vertices + i, vertices + j, 2.0 * tolerance);
    }
    if (repeated) {
      continue;
    }
    contact_point *contact = out + kept++;
    contact->dist = vec3_dot_sub(normal, vertices[i].x, center) - face_manifold_skin(other);
    contact->feature = feature_code(face, part, vertices + i);
    vec3_copy(contact->normal, normal);
    vec3_copy(contact->pos, vertices[i].x);
    vec3_axpy(contact->pos, -(face_manifold_skin(other) + 0.5 * contact->dist), normal);
  }
  return kept;
}

/* Data for the motion of a vertex with the other's feature: the edge's direction d, the normal of
 * the opposing face (unused for lines), and r and p of a lowest line. */
typedef struct vertex_motion {
  int line, low, high;
  double direction[3], opposing[3], axis[3], p[3];
  double radius, steepness; /* of the lowest line: r, |y| */
} vertex_motion;

static void vertex_motion_init(vertex_motion *out, const placed_shape *other,
                               const double normal[3], contact_feature feature) {
  const int part = bits(feature, PART_AT, INDEX_BITS);
  out->low = bits(feature, LABEL_BITS, LABEL_BITS);
  out->high = bits(feature, 0, LABEL_BITS);
  out->line = is_line(other, part);
  out->radius = 0.0;
  mat3_column(out->axis, other->rot, 2);
  if (out->line) {
    vec3_copy(out->direction, out->axis);
    if (other->type == QD_CYLINDER) {
      out->radius = other->size[0];
      out->steepness = lowest_direction(out->p, out->axis, normal);
    }
    return;
  }
  double side[3], vertex[3];
  face_normal(out->opposing, other, part);
  if (out->high >= LABEL_EDGE && out->high < LABEL_BRACE) {
    face_side(side, vertex, other, part, IS_CLIPPED, out->high - LABEL_EDGE);
    vec3_cross(out->direction, out->opposing, side);
  }
}

/* m += r (dp - w x p) for a lowest line */
static void add_line_turn(double m[3], const vertex_motion *motion, const double normal[3],
                          const double w[3]) {
  double da[3], dy[3], turned[3];
  const double *a = motion->axis, *p = motion->p;
  vec3_cross(da, w, a);
  vec3_scale(dy, a, -vec3_dot(normal, da));
  vec3_axpy(dy, -vec3_dot(normal, a), da);
  vec3_axpy(dy, -vec3_dot(p, dy), p);
  vec3_cross(turned, w, p);
  vec3_axpy(m, -motion->radius / motion->steepness, dy);
  vec3_axpy(m, -motion->radius, turned);
}

/* dx of the formulas above, from m */
static void slide(double dx[3], const vertex_motion *motion, const placed_shape *owner, int face,
                  const double normal[3], const double m[3]) {
  vec3_copy(dx, m);
  if (motion->low >= LABEL_EDGE) {
    return;
  }
  if (motion->high >= LABEL_EDGE) {
    double side[3], vertex[3];
    face_side(side, vertex, owner, face, CLIPS, motion->low);
    const double *d = motion->direction;
    vec3_axpy(dx, -vec3_dot(side, m) / vec3_dot(side, d), d);
    return;
  }
  vec3_scale(dx, normal, vec3_dot(motion->opposing, m) / vec3_dot(motion->opposing, normal));
}

void face_manifold_derivative(const placed_shape *owner, const placed_shape *other,
                              const contact_point *contact, contact_point_derivative *out) {
  const int face = bits(contact->feature, FACE_AT, INDEX_BITS);
  double normal[3];
  vertex_motion motion;
  face_normal(normal, owner, face);
  vertex_motion_init(&motion, other, normal, contact->feature);
  const double lever = face_manifold_skin(other) + 0.5 * contact->dist;
  memset(out, 0, sizeof *out);
  for (int j = 0; j < 6; ++j) {
    double unit[3] = {0.0, 0.0, 0.0}, m[3], dx[3];
    unit[j % 3] = 1.0;
    vec3_copy(m, unit);
    if (j < 3) {
      vec3_cross(m, unit, normal);
      vec3_scale(m, m, lever);
      if (motion.radius > 0.0) {
        add_line_turn(m, &motion, normal, unit);
      }
    }
    slide(dx, &motion, owner, face, normal, m);
    out->dist[j] = vec3_dot(normal, dx);
    for (int i = 0; i < 3; ++i) {
      out->pos[6 * i + j] = dx[i] - 0.5 * normal[i] * out->dist[j];
    }
  }
}

/* ---------------------------------------------------------------- sizes */

/* Corners, sides and centres are linear in the sizes: their derivatives with respect to size k are
 * those of a shape at the origin with size k = 1 and the others 0. A mesh has no size. */
typedef struct size_change {
  placed_shape unit;
  double size[3], center[3];
} size_change;

static void size_change_init(size_change *out, const placed_shape *shape, int k) {
  out->unit = *shape;
  out->unit.size = out->size;
  vec3_set(out->unit.pos, 0.0, 0.0, 0.0);
  vec3_set(out->size, k == 0, k == 1, k == 2);
}

/* The corner, of `count`, that two sides share. */
static int corner_between(int low, int high, int count) {
  return high - low == 1 ? high : (low == 0 && high == count - 1 ? 0 : high);
}

/* Motion m, due to the size, of the point of the other's part at the vertex. */
static void part_motion(double m[3], const placed_shape *unit, int part, const double normal[3],
                        const vertex_motion *motion) {
  polygon_vertex moves[FACE_MANIFOLD_CAPACITY];
  vec3_set(m, 0.0, 0.0, 0.0);
  if (unit->type == QD_MESH) {
    return;
  }
  part_polygon(moves, unit, part, normal);
  int at = 0;
  if (motion->line) {
    at = motion->low >= LABEL_EDGE && motion->high == LABEL_UPPER_END;
  } else if (motion->low >= LABEL_EDGE) {
    at = corner_between(motion->low - LABEL_EDGE, motion->high - LABEL_EDGE,
                        face_side_count(unit, part, IS_CLIPPED));
  } else if (motion->high >= LABEL_EDGE) {
    at = motion->high - LABEL_EDGE;
  }
  vec3_copy(m, moves[at].x);
}

/* dx of the vertex: the owner's face and sides move as `owner` says, the other's part by m. */
static void slide_by_size(double dx[3], const vertex_motion *motion, const placed_shape *owner,
                          int face, const double normal[3], const double m[3]) {
  double side[3], corner[3], center[3] = {0.0, 0.0, 0.0};
  vec3_copy(dx, m);
  if (motion->low >= LABEL_EDGE) {
    return;
  }
  if (owner->type != QD_MESH) {
    face_center(center, owner, face);
  }
  if (motion->high >= LABEL_EDGE) {
    const double moved = face_side(side, corner, owner, face, CLIPS, motion->low);
    const double reach = owner->type != QD_MESH ? moved : 0.0;
    vec3_axpy(dx, -(vec3_dot_sub(side, m, center) - reach) / vec3_dot(side, motion->direction),
              motion->direction);
    return;
  }
  vec3_copy(dx, center);
  if (owner->type != QD_MESH) {
    const int count = face_side_count(owner, face, CLIPS);
    face_side(side, corner, owner, face, CLIPS, corner_between(motion->low, motion->high, count));
    vec3_axpy(dx, 1.0, corner);
  }
  vec3_axpy(dx, vec3_dot_sub(motion->opposing, m, dx) / vec3_dot(motion->opposing, normal), normal);
}

void face_manifold_size_derivative(const placed_shape *owner, const placed_shape *other,
                                   const contact_point *contact, contact_point_derivative *out) {
  static const double still[3] = {0.0, 0.0, 0.0};
  const int face = bits(contact->feature, FACE_AT, INDEX_BITS);
  const int part = bits(contact->feature, PART_AT, INDEX_BITS);
  double normal[3];
  vertex_motion motion;
  face_normal(normal, owner, face);
  vertex_motion_init(&motion, other, normal, contact->feature);
  memset(out, 0, sizeof *out);
  for (int j = 0; j < 6; ++j) {
    size_change of_owner, of_other;
    double m[3], dx[3], center[3] = {0.0, 0.0, 0.0};
    size_change_init(&of_owner, owner, j < 3 ? j : 3);
    size_change_init(&of_other, other, j < 3 ? 3 : j - 3);
    if (j < 3) {
      vec3_copy(m, still);
    } else {
      part_motion(m, &of_other.unit, part, normal, &motion);
    }
    slide_by_size(dx, &motion, &of_owner.unit, face, normal, m);
    if (owner->type != QD_MESH) {
      face_center(center, &of_owner.unit, face);
    }
    const double skin = j == 3 && other->type == QD_CAPSULE ? 1.0 : 0.0;
    out->dist[j] = vec3_dot_sub(normal, dx, center) - skin;
    for (int i = 0; i < 3; ++i) {
      out->pos[6 * i + j] = dx[i] - normal[i] * (skin + 0.5 * out->dist[j]);
    }
  }
}
