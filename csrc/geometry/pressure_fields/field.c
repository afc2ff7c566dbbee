/* Creates fields from vertices, tetrahedra and pressures, and rigid surfaces from triangles. */
#include "geometry/pressure_fields/field.h"

#include "base/rounding.h"
#include "base/vec3.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct complaint {
  char *message;
  size_t size;
} complaint;

static qd_status complain(const complaint *to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (to->message && to->size > 0) {
    vsnprintf(to->message, to->size, format, arguments);
  }
  va_end(arguments);
  return QD_BAD_ARGUMENT;
}

static qd_status check_arrays(const qd_field_spec *spec, const complaint *to) {
  const int corners = field_corners(spec->kind);
  if (spec->vertex_count < corners || spec->element_count < 1) {
    return complain(to, "vertices: %d are too few", spec->vertex_count);
  }
  for (int i = 0; i < 3 * spec->vertex_count; ++i) {
    if (!isfinite(spec->vertex[i])) {
      return complain(to, "vertices: row %d is not finite", i / 3);
    }
  }
  for (int i = 0; i < corners * spec->element_count; ++i) {
    if (spec->element[i] < 0 || spec->element[i] >= spec->vertex_count) {
      return complain(to, "elements: row %d names vertex %d of %d", i / corners, spec->element[i],
                      spec->vertex_count);
    }
  }
  for (int i = 0; spec->kind == QD_FIELD_SOFT && i < spec->vertex_count; ++i) {
    if (!isfinite(spec->pressure[i]) || spec->pressure[i] < 0.0) {
      return complain(to, "pressure: entry %d is %g; expected a finite number, not negative", i,
                      spec->pressure[i]);
    }
  }
  return QD_OK;
}

/* Face i is opposite corner i; its corners run anticlockwise seen from outside. */
static const int FACE[4][3] = {{1, 2, 3}, {0, 3, 2}, {0, 1, 3}, {0, 2, 1}};

static double face_plane(field_plane *plane, double corner[4][3], int face) {
  double a[3], b[3];
  const double *origin = corner[FACE[face][0]];
  vec3_sub(a, corner[FACE[face][1]], origin);
  vec3_sub(b, corner[FACE[face][2]], origin);
  vec3_cross(plane->normal, a, b);
  const double twice = vec3_normalize(plane->normal);
  plane->offset = vec3_dot(plane->normal, origin);
  return twice;
}

/* Fills the faces, those of nonzero pressure first, and the gradient. */
static void cell_faces(field_cell *cell, const double pressure[4], double six_volumes) {
  cell->plane_count = 0;
  vec3_set(cell->gradient, 0.0, 0.0, 0.0);
  for (int zero = 0; zero < 2; ++zero) {
    for (int face = 0; face < 4; ++face) {
      const int *v = FACE[face];
      const int is_zero = pressure[v[0]] == 0.0 && pressure[v[1]] == 0.0 && pressure[v[2]] == 0.0;
      if (is_zero != zero) {
        continue;
      }
      cell->across[cell->plane_count] = face;
      field_plane *plane = cell->plane + cell->plane_count++;
      const double twice = face_plane(plane, cell->corner, face);
      vec3_axpy(cell->gradient, -pressure[face] * twice / six_volumes, plane->normal);
    }
    cell->inner_planes = zero ? cell->inner_planes : cell->plane_count;
  }
}

static double longest_edge(double corner[4][3]) {
  double longest = 0.0;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < i; ++j) {
      double edge[3];
      vec3_sub(edge, corner[i], corner[j]);
      longest = fmax(longest, vec3_norm(edge));
    }
  }
  return longest;
}

static double six_volumes_of(double corner[4][3]) {
  double a[3], b[3], c[3];
  vec3_sub(a, corner[1], corner[0]);
  vec3_sub(b, corner[2], corner[0]);
  vec3_sub(c, corner[3], corner[0]);
  vec3_cross(a, a, b);
  return vec3_dot(a, c);
}

static qd_status cell_fill(field_cell *cell, const qd_field_spec *spec, int element, double zero,
                           const complaint *to) {
  double pressure[4];
  const int32_t *vertex = spec->element + 4 * element;
  cell->element = element;
  cell->least = INFINITY;
  cell->most = 0.0;
  for (int i = 0; i < 4; ++i) {
    vec3_copy(cell->corner[i], spec->vertex + 3 * vertex[i]);
    pressure[i] = spec->pressure[vertex[i]] <= zero ? 0.0 : spec->pressure[vertex[i]];
    cell->least = fmin(cell->least, pressure[i]);
    cell->most = fmax(cell->most, pressure[i]);
  }
  const double volumes = six_volumes_of(cell->corner), edge = longest_edge(cell->corner);
  if (!(fabs(volumes) > NEGLIGIBLE * edge * edge * edge)) {
    return complain(to, "elements: tetrahedron %d is flat", element);
  }
  if (volumes < 0.0) {
    return complain(to, "elements: tetrahedron %d is inverted (negative volume)", element);
  }
  cell_faces(cell, pressure, volumes);
  cell->offset = pressure[0] - vec3_dot(cell->gradient, cell->corner[0]);
  cell->steepness = vec3_norm(cell->gradient);
  if (!(isfinite(cell->steepness) && isfinite(cell->offset))) {
    return complain(to, "pressure: too steep in tetrahedron %d", element);
  }
  return QD_OK;
}

static qd_status soft_fill(qd_field *field, const qd_field_spec *spec, const complaint *to) {
  double most = 0.0;
  for (int i = 0; i < spec->vertex_count; ++i) {
    most = fmax(most, spec->pressure[i]);
  }
  field->element_count = 0;
  for (int i = 0; i < spec->element_count; ++i) {
    field_cell *cell = field->cell + field->element_count;
    const qd_status status = cell_fill(cell, spec, i, SUM_ROUNDING * most, to);
    if (status != QD_OK) {
      return status;
    }
    field->element_count += cell->most > 0.0; /* cells without pressure exert no force */
  }
  return field->element_count > 0 ? QD_OK
                                  : complain(to, "pressure: no vertex inside has any pressure");
}

static qd_status rigid_fill(qd_field *field, const qd_field_spec *spec, const complaint *to) {
  for (int i = 0; i < spec->element_count; ++i) {
    field_triangle *t = field->triangle + i;
    double a[3], b[3];
    for (int k = 0; k < 3; ++k) {
      vec3_copy(t->corner[k], spec->vertex + 3 * spec->element[3 * i + k]);
    }
    vec3_sub(a, t->corner[1], t->corner[0]);
    vec3_sub(b, t->corner[2], t->corner[0]);
    vec3_cross(t->normal, a, b);
    const double size = fmax(vec3_dot(a, a), vec3_dot(b, b));
    if (!(vec3_normalize(t->normal) > NEGLIGIBLE * size)) {
      return complain(to, "elements: triangle %d has no area", i);
    }
  }
  return QD_OK;
}

/* z <= 0 in its own frame; the pressure is slope times depth. */
static qd_status space_fill(qd_field *field, const qd_field_spec *spec, const complaint *to) {
  field_cell *cell = field->cell;
  *cell = (field_cell){.plane_count = 1, .inner_planes = 0, .most = INFINITY};
  vec3_set(cell->plane[0].normal, 0.0, 0.0, 1.0);
  if (spec->kind == QD_FIELD_SOFT_SPACE) {
    if (!(spec->slope > 0.0 && isfinite(spec->slope))) {
      return complain(to, "slope: expected a positive number, got %g", spec->slope);
    }
    vec3_set(cell->gradient, 0.0, 0.0, -spec->slope);
    cell->steepness = spec->slope;
  }
  field->part = calloc(1, sizeof *field->part);
  if (!field->part) {
    return QD_OUT_OF_MEMORY;
  }
  *field->part = (field_part){.from = -INFINITY, .until = INFINITY};
  field->part_count = 1;
  return QD_OK;
}

static int is_space(qd_field_kind kind) {
  return kind == QD_FIELD_SOFT_SPACE || kind == QD_FIELD_RIGID_SPACE;
}

static qd_field *field_allocate(const qd_field_spec *spec) {
  const size_t count = is_space(spec->kind) ? 1 : (size_t)spec->element_count;
  const int is_rigid = spec->kind == QD_FIELD_RIGID;
  qd_field *field = calloc(1, sizeof *field);
  void *elements = calloc(count, is_rigid ? sizeof(field_triangle) : sizeof(field_cell));
  if (!field || !elements) {
    free(field);
    free(elements);
    return NULL;
  }
  *field = (qd_field){.kind = spec->kind, .element_count = (int)count};
  field->cell = is_rigid ? NULL : elements;
  field->triangle = is_rigid ? elements : NULL;
  return field;
}

/* Creates parts and tree; their sizes depend on the shapes of the elements. */
static qd_status tree_make(qd_field *field) {
  size_t parts = 0;
  for (int i = 0; i < field->element_count; ++i) {
    parts += (size_t)field_part_number(field, i);
  }
  field->part = calloc(parts, sizeof *field->part);
  field->node = calloc(parts, sizeof *field->node);
  int *order = calloc(parts, sizeof *order);
  const int has_room = field->part && field->node && order;
  if (has_room) {
    field_tree_build(field, order);
  }
  free(order);
  return has_room ? QD_OK : QD_OUT_OF_MEMORY;
}

qd_status qd_field_create(const qd_field_spec *spec, qd_field **field, char *message,
                          size_t message_size) {
  const complaint to = {message, message_size};
  *field = NULL;
  qd_status status = is_space(spec->kind) ? QD_OK : check_arrays(spec, &to);
  if (status != QD_OK) {
    return status;
  }
  qd_field *made = field_allocate(spec);
  if (!made) {
    return QD_OUT_OF_MEMORY;
  }
  if (is_space(spec->kind)) {
    status = space_fill(made, spec, &to);
  } else {
    status = made->cell ? soft_fill(made, spec, &to) : rigid_fill(made, spec, &to);
    status = status == QD_OK ? tree_make(made) : status;
  }
  if (status == QD_OK) {
    *field = made;
  } else {
    qd_field_destroy(made);
  }
  return status;
}

void qd_field_destroy(qd_field *field) {
  if (field) {
    free(field->cell);
    free(field->triangle);
    free(field->part);
    free(field->node);
    free(field);
  }
}

int qd_field_element_count(const qd_field *field) { return field->element_count; }

double field_depth(const qd_field *field) {
  double most = 0.0, steepest = 0.0;
  for (int i = 0; field_is_soft(field) && i < field->element_count; ++i) {
    const field_cell *cell = field->cell + i;
    most = fmax(most, cell->most < INFINITY ? cell->most : 1.0);
    steepest = fmax(steepest, vec3_norm(cell->gradient));
  }
  return steepest > 0.0 ? most / steepest : INFINITY;
}
