#include "geometry/height_fields/height_field.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "base/rounding.h"
#include "base/vec3.h"

static height_field *lay_out(size_t point_count, arena *a) {
  height_field *field = arena_take(a, sizeof *field);
  double *height = arena_doubles(a, point_count);
  if (field != NULL) {
    field->height = height;
  }
  return field;
}

int height_field_cell(const height_field *field, int axis, double x) {
  const int last = (axis == 0 ? field->column_count : field->row_count) - 2;
  const double cell = floor((x + field->half[axis]) / field->step[axis]);
  return cell > 0.0 ? (cell < last ? (int)cell : last) : 0;
}

static double height_at(const height_field *field, int column, int row) {
  return field->height[(size_t)row * (size_t)field->column_count + (size_t)column];
}

static void grid_point(double out[3], const height_field *field, int column, int row) {
  vec3_set(out, -field->half[0] + column * field->step[0], -field->half[1] + row * field->step[1],
           height_at(field, column, row));
}

/* ---------------------------------------------------------------- faces */

void hfield_face_slopes(double slope[2], const height_field *field, int column, int row,
                        part_kind face) {
  const double from = height_at(field, column, row), to = height_at(field, column + 1, row + 1);
  if (face == PART_RIGHT_FACE) {
    const double beside = height_at(field, column + 1, row);
    slope[0] = (beside - from) / field->step[0];
    slope[1] = (to - beside) / field->step[1];
  } else {
    const double beside = height_at(field, column, row + 1);
    slope[0] = (to - beside) / field->step[0];
    slope[1] = (beside - from) / field->step[1];
  }
}

double hfield_plane_height(const height_field *field, int column, int row, const double slope[2],
                           double x, double y) {
  return height_at(field, column, row) + slope[0] * (x + field->half[0] - column * field->step[0]) +
         slope[1] * (y + field->half[1] - row * field->step[1]);
}

/* The face above or below a point of the footprint. */
static part_kind face_at(const height_field *field, int column, int row, double x, double y) {
  const double u = (x + field->half[0]) / field->step[0] - column;
  const double v = (y + field->half[1]) / field->step[1] - row;
  return v > u ? PART_LEFT_FACE : PART_RIGHT_FACE;
}

double height_field_height(const height_field *field, double x, double y) {
  const int column = height_field_cell(field, 0, x), row = height_field_cell(field, 1, y);
  double slope[2];
  hfield_face_slopes(slope, field, column, row, face_at(field, column, row, x, y));
  return hfield_plane_height(field, column, row, slope, x, y);
}

static double find_steepest(const height_field *field) {
  double steepest = 0.0;
  for (int row = 0; row < field->row_count - 1; ++row) {
    for (int column = 0; column < field->column_count - 1; ++column) {
      for (part_kind face = PART_LEFT_FACE; face <= PART_RIGHT_FACE; ++face) {
        double slope[2];
        hfield_face_slopes(slope, field, column, row, face);
        steepest = fmax(steepest, slope[0] * slope[0] + slope[1] * slope[1]);
      }
    }
  }
  return sqrt(steepest);
}

height_field *height_field_create(const double *height, int row_count, int column_count,
                                  const double half[2], double bottom) {
  const size_t count = (size_t)row_count * (size_t)column_count;
  arena counting = {NULL, 0};
  lay_out(count, &counting);
  char *block = block_allocate(counting.offset);
  if (block == NULL) {
    return NULL;
  }
  arena a = {block, 0};
  height_field *field = lay_out(count, &a);
  const int points[2] = {column_count, row_count};
  field->row_count = row_count;
  field->column_count = column_count;
  for (int k = 0; k < 2; ++k) {
    field->half[k] = half[k];
    field->step[k] = 2.0 * half[k] / (points[k] - 1);
  }
  field->bottom = bottom;
  field->diagonal = hypot(field->step[0], field->step[1]);
  field->highest = height[0];
  memcpy(field->height, height, count * sizeof(double));
  for (size_t i = 1; i < count; ++i) {
    field->highest = fmax(field->highest, height[i]);
  }
  field->steepest = find_steepest(field);
  return field;
}

void height_field_destroy(height_field *field) { block_free(field); }

/* ---------------------------------------------------------------- edges and vertices */

static int is_point(const height_field *field, int column, int row) {
  return column >= 0 && row >= 0 && column < field->column_count && row < field->row_count;
}

int hfield_edge_faces(hfield_face faces[2], const height_field *field, int column, int row,
                      part_kind edge) {
  const int first[2] = {column, row};
  const int second[2] = {column - (edge == PART_EDGE_Y), row - (edge == PART_EDGE_X)};
  int count = 0;
  if (is_point(field, first[0] + 1, first[1] + 1)) {
    faces[count++] =
        (hfield_face){first[0], first[1], edge == PART_EDGE_X ? PART_RIGHT_FACE : PART_LEFT_FACE};
  }
  if (is_point(field, second[0], second[1]) && is_point(field, second[0] + 1, second[1] + 1)) {
    faces[count++] =
        (hfield_face){second[0], second[1], edge == PART_EDGE_X ? PART_LEFT_FACE : PART_RIGHT_FACE};
  }
  return count;
}

/* Steps (column, row) from the start of an edge to its other end, and to the opposite points of the
 * two faces at the edge. */
typedef struct edge_steps {
  int end[2], across[2][2];
} edge_steps;

static const edge_steps EDGES[3] = {{{1, 0}, {{1, 1}, {0, -1}}}, /* PART_EDGE_X */
                                    {{0, 1}, {{1, 1}, {-1, 0}}}, /* PART_EDGE_Y */
                                    {{1, 1}, {{1, 0}, {0, 1}}}}; /* PART_EDGE_XY */
/* Steps to the points that share an edge with a point; opposite steps are paired. */
static const int NEIGHBORS[6][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}};

/* -1, 0 or 1: the slope decreases, stays equal or increases from before to after. */
static int bend(double before, double after) {
  const double same = CALLERS_ROUNDING * (1.0 + fabs(before) + fabs(after));
  return after < before - same ? -1 : after > before + same;
}

/* Vector from a point to a neighbour. Returns 0 if there is none. */
static int to_neighbor(double out[3], const height_field *field, const double point[3], int column,
                       int row, const int step[2]) {
  double other[3];
  if (!is_point(field, column + step[0], row + step[1])) {
    return 0;
  }
  grid_point(other, field, column + step[0], row + step[1]);
  vec3_sub(out, other, point);
  return 1;
}

/* Across the edge, from its second face to the first, only one component of the slope changes. */
static int edge_stands_out(const height_field *field, int column, int row, part_kind edge) {
  const int *end = EDGES[edge - PART_EDGE_X].end, axis = edge != PART_EDGE_Y;
  hfield_face face[2];
  double slope[2][2];
  if (!is_point(field, column + end[0], row + end[1])) {
    return 0;
  }
  if (hfield_edge_faces(face, field, column, row, edge) < 2) {
    return 1; /* the edge of the footprint */
  }
  for (int k = 0; k < 2; ++k) {
    hfield_face_slopes(slope[k], field, face[k].column, face[k].row, face[k].kind);
  }
  return bend(slope[1][axis], slope[0][axis]) < 0;
}

/* Tests each of the three grid lines through the point. */
static int vertex_stands_out(const height_field *field, int column, int row) {
  const double length[3] = {field->step[0], field->step[1], field->diagonal};
  double point[3], side[2][3];
  int stands_out = 0;
  grid_point(point, field, column, row);
  for (int i = 0; i < 3; ++i) {
    if (!to_neighbor(side[0], field, point, column, row, NEIGHBORS[2 * i]) ||
        !to_neighbor(side[1], field, point, column, row, NEIGHBORS[2 * i + 1])) {
      stands_out = 1;
      continue;
    }
    const int bends = bend(-side[1][2] / length[i], side[0][2] / length[i]);
    if (bends > 0) {
      return 0;
    }
    stands_out |= bends < 0;
  }
  return stands_out;
}

int hfield_part_stands_out(const height_field *field, int part) {
  const part_kind kind = (part_kind)(part % PART_KINDS);
  const int index = part / PART_KINDS;
  const int column = index % field->column_count, row = index / field->column_count;
  return kind == PART_VERTEX ? vertex_stands_out(field, column, row)
                             : edge_stands_out(field, column, row, kind);
}

/* ---------------------------------------------------------------- parts as shapes */

static void add_direction(hfield_part *out, double x, double y, double z) {
  vec3_set(out->direction[out->direction_count++], x, y, z);
}

/* Axes whose third is along z (unit). */
static void fill_axes(double rot[9], const double z[3]) {
  const int least = fabs(z[0]) < fabs(z[1]) ? (fabs(z[0]) < fabs(z[2]) ? 0 : 2)
                                            : (fabs(z[1]) < fabs(z[2]) ? 1 : 2);
  double x[3] = {0.0, 0.0, 0.0}, y[3];
  x[least] = 1.0;
  vec3_cross(y, z, x);
  vec3_normalize(y);
  vec3_cross(x, y, z);
  for (int i = 0; i < 3; ++i) {
    rot[3 * i] = x[i];
    rot[3 * i + 1] = y[i];
    rot[3 * i + 2] = z[i];
  }
}

static void set_plane(hfield_part *out, const double normal[3]) {
  double unit[3];
  vec3_copy(unit, normal);
  vec3_normalize(unit);
  out->shape.type = QD_PLANE;
  vec3_copy(out->shape.pos, out->from);
  fill_axes(out->shape.rot, unit);
}

static void set_vertex(hfield_part *out) {
  out->shape.type = QD_SPHERE;
  vec3_copy(out->shape.pos, out->from);
}

static void set_edge(hfield_part *out, const double along[3]) {
  double axis[3];
  vec3_copy(axis, along);
  out->is_edge = 1;
  vec3_add(out->to, out->from, along);
  out->size[1] = 0.5 * vec3_normalize(axis);
  out->shape.type = QD_CAPSULE;
  vec3_copy(out->shape.pos, out->from);
  vec3_axpy(out->shape.pos, 0.5, along);
  fill_axes(out->shape.rot, axis);
}

static void place_on_surface(hfield_part *out, const height_field *field, part_kind kind,
                             int column, int row) {
  double along[3];
  if (kind <= PART_RIGHT_FACE) {
    double slope[2];
    hfield_face_slopes(slope, field, column, row, kind);
    grid_point(out->from, field, column, row);
    vec3_set(along, -slope[0], -slope[1], 1.0);
    set_plane(out, along);
    return;
  }
  grid_point(out->from, field, column, row);
  add_direction(out, 0.0, 0.0, -1.0);
  const int is_vertex = kind == PART_VERTEX;
  for (int k = 0; k < (is_vertex ? 6 : 2); ++k) {
    const int *step = is_vertex ? NEIGHBORS[k] : EDGES[kind - PART_EDGE_X].across[k];
    if (to_neighbor(along, field, out->from, column, row, step)) {
      add_direction(out, along[0], along[1], along[2]);
    }
  }
  if (is_vertex) {
    set_vertex(out);
  } else {
    to_neighbor(along, field, out->from, column, row, EDGES[kind - PART_EDGE_X].end);
    set_edge(out, along);
  }
}

static void place_side(hfield_part *out, const height_field *field, int side) {
  double normal[3] = {0.0, 0.0, 0.0};
  vec3_set(out->from, 0.0, 0.0, field->bottom);
  if (side == 4) {
    normal[2] = -1.0;
  } else {
    normal[side / 2] = side % 2 ? 1.0 : -1.0;
    out->from[side / 2] = normal[side / 2] * field->half[side / 2];
  }
  set_plane(out, normal);
}

/* Corner k: bit i is set on the positive side of axis i. Edge 4 + k runs along axis k / 2. */
static void place_on_frame(hfield_part *out, const height_field *field, int index) {
  const int along = index < 4 ? 2 : index < 8 ? (index - 4) / 2 : 3; /* 3: a vertex */
  double sign[3] = {index & 1 ? 1.0 : -1.0, index & 2 ? 1.0 : -1.0, -1.0};
  if (along < 2) {
    sign[along] = -1.0;
    sign[1 - along] = index & 1 ? 1.0 : -1.0;
  }
  vec3_set(out->from, sign[0] * field->half[0], sign[1] * field->half[1], field->bottom);
  for (int k = 0; k < 3; ++k) {
    if (k != along) {
      add_direction(out, k == 0 ? -sign[0] : 0.0, k == 1 ? -sign[1] : 0.0, k == 2 ? 1.0 : 0.0);
    }
  }
  double edge[3] = {0.0, 0.0, 0.0};
  if (along == 3) {
    set_vertex(out);
    return;
  }
  edge[along] = along == 2 ? height_field_height(field, out->from[0], out->from[1]) - field->bottom
                           : 2.0 * field->half[along];
  set_edge(out, edge);
}

void hfield_part_place(hfield_part *out, const height_field *field, int part) {
  const part_kind kind = (part_kind)(part % PART_KINDS);
  const int index = part / PART_KINDS;
  memset(out, 0, sizeof *out);
  out->shape.size = out->size;
  if (kind == PART_SIDE) {
    place_side(out, field, index);
  } else if (kind == PART_FRAME) {
    place_on_frame(out, field, index);
  } else {
    place_on_surface(out, field, kind, index % field->column_count, index / field->column_count);
  }
}

/* ---------------------------------------------------------------- segments over the grid */

/* Share of the segment at which it crosses the next line level = integer. The level changes from
 * `from` by `change` along the segment. Infinite if there is no crossing. */
static double next_line(double from, double change, double share) {
  if (change == 0.0) {
    return INFINITY;
  }
  const double level = from + share * change;
  const double line = change > 0.0 ? floor(level) + 1.0 : ceil(level) - 1.0;
  const double next = (line - from) / change;
  return next > share ? next : (line + (change > 0.0 ? 1.0 : -1.0) - from) / change;
}

/* Shares of the segment between which it is over the footprint. Returns 0 if it never is. */
static int clip_way(const height_field *field, const double from[3], const double way[3],
                    double *begin, double *end) {
  *begin = 0.0;
  *end = 1.0;
  for (int k = 0; k < 2; ++k) {
    if (way[k] == 0.0) {
      if (fabs(from[k]) > field->half[k]) {
        return 0;
      }
      continue;
    }
    const double middle = -from[k] / way[k], reach = field->half[k] / fabs(way[k]);
    *begin = fmax(*begin, middle - reach);
    *end = fmin(*end, middle + reach);
  }
  return *begin < *end;
}

/* A straight segment over the grid, in pieces: between two crossings of grid lines it is over one
 * face. */
typedef struct way_over_grid {
  const height_field *field;
  double from[3], way[3];
  double level[2], change[2]; /* of column and row, in cells */
  double share, end;          /* of the segment: current position, and end of the footprint */
  int face;                   /* face below the last piece */
  double height[2];           /* heights of the last piece's ends above this face */
} way_over_grid;

static void way_begin(way_over_grid *w, const height_field *field, const double from[3],
                      const double to[3]) {
  w->field = field;
  vec3_copy(w->from, from);
  vec3_sub(w->way, to, from);
  if (!clip_way(field, from, w->way, &w->share, &w->end)) {
    w->share = w->end;
  }
  for (int k = 0; k < 2; ++k) {
    w->level[k] = (from[k] + field->half[k]) / field->step[k];
    w->change[k] = w->way[k] / field->step[k];
  }
}

/* Advances to the next piece; returns 0 after the last. */
static int way_next(way_over_grid *w) {
  const height_field *field = w->field;
  if (!(w->share < w->end)) {
    return 0;
  }
  const double next =
      fmin(fmin(next_line(w->level[0], w->change[0], w->share),
                next_line(w->level[1], w->change[1], w->share)),
           next_line(w->level[1] - w->level[0], w->change[1] - w->change[0], w->share));
  const double stop = fmin(next, w->end), middle = 0.5 * (w->share + stop);
  const double x = w->from[0] + middle * w->way[0], y = w->from[1] + middle * w->way[1];
  const int column = height_field_cell(field, 0, x), row = height_field_cell(field, 1, y);
  const part_kind kind = face_at(field, column, row, x, y);
  double slope[2];
  hfield_face_slopes(slope, field, column, row, kind);
  const double rise = w->way[2] - slope[0] * w->way[0] - slope[1] * w->way[1];
  const double start =
      w->from[2] - hfield_plane_height(field, column, row, slope, w->from[0], w->from[1]);
  w->face = hfield_part_code(kind, row * field->column_count + column);
  w->height[0] = start + w->share * rise;
  w->height[1] = start + stop * rise;
  w->share = stop;
  return 1;
}

int height_field_entered(const height_field *field, const double from[3], const double to[3]) {
  way_over_grid w;
  int above = -1; /* not known yet */
  way_begin(&w, field, from, to);
  while (way_next(&w)) {
    above = above < 0 ? w.height[0] >= 0.0 : above;
    if (above && w.height[1] < 0.0) {
      return w.face;
    }
    above = w.height[1] >= 0.0;
  }
  return -1;
}

double height_field_emerged(const height_field *field, const double from[3], const double to[3]) {
  way_over_grid w;
  double highest = -INFINITY;
  way_begin(&w, field, from, to);
  while (way_next(&w)) {
    highest = fmax(highest, fmax(w.height[0], w.height[1]));
  }
  return highest;
}
