/* Converts the triangles of a convex hull to polygons, edges and the tables for queries.
 *
 * Files hold coordinates in single precision: a plane of the design is a set of triangles with
 * different normals, and distant vertices stand out of the planes of small triangles. So triangles
 * are merged: from large triangles to small ones, neighbours join that lie in the plane of the
 * first to SLIGHT. The result must be a polyhedron again: each polygon has at least three
 * neighbours and meets each of them along one edge. Sets that violate this are split into their
 * triangles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/meshes/mesh.h"
#include "geometry/meshes/mesh_braces.h"
#include "geometry/meshes/mesh_topology.h"

/* Relative to the radius: largest height of a vertex above a face of the hull; least thickness of a
 * solid. */
static const double CONVEX = 1e-3, THICK = 1e-5;
/* Up to this product of the numbers of vertices and polygons, all combinations are checked. */
static const double CHECK_ALL_MOST = 1e6;

typedef struct builder {
  mesh_topology t;
  const char *reason;
  int at; /* the face that `reason` is about */
  double center[3], radius;
  double *normal, *area;        /* of triangles */
  double *region_normal;        /* (region_count, 3) */
  int side_count, edge_count;   /* totals */
  int *side_start, *side_first; /* of regions; first half-edge of each side */
} builder;

static qd_status fail(builder *b, const char *reason, int at) {
  b->reason = reason;
  b->at = at;
  return QD_BAD_ARGUMENT;
}

/* ---------------------------------------------------------------- measures */

/* Centroid of the solid from tetrahedra at the first vertex; six times the volume. */
static void solid_centroid(const mesh_topology *t, double center[3], double *six_volume) {
  double sum[3] = {0.0, 0.0, 0.0};
  const double *o = t->vertex;
  *six_volume = 0.0;
  for (int f = 0; f < t->face_count; ++f) {
    double p[3][3], cross[3];
    for (int k = 0; k < 3; ++k) {
      vec3_sub(p[k], t->vertex + 3 * t->face[3 * f + k], o);
    }
    vec3_cross(cross, p[1], p[2]);
    const double part = vec3_dot(p[0], cross);
    *six_volume += part;
    for (int k = 0; k < 3; ++k) {
      vec3_axpy(sum, 0.25 * part, p[k]);
    }
  }
  vec3_copy(center, o);
  if (*six_volume != 0.0) {
    vec3_axpy(center, 1.0 / *six_volume, sum);
  }
}

/* Computes unit normals and areas of the triangles; moves the vertices to the centroid. */
static qd_status measure(builder *b) {
  mesh_topology *t = &b->t;
  double six_volume, total = 0.0;
  solid_centroid(t, b->center, &six_volume);
  for (int i = 0; i < t->vertex_count; ++i) {
    vec3_sub(t->vertex + 3 * i, t->vertex + 3 * i, b->center);
    b->radius = fmax(b->radius, vec3_norm(t->vertex + 3 * i));
  }
  for (int f = 0; f < t->face_count; ++f) {
    const int *corner = t->face + 3 * f;
    double u[3], v[3];
    vec3_sub(u, t->vertex + 3 * corner[1], t->vertex + 3 * corner[0]);
    vec3_sub(v, t->vertex + 3 * corner[2], t->vertex + 3 * corner[0]);
    vec3_cross(b->normal + 3 * f, u, v);
    b->area[f] = 0.5 * vec3_normalize(b->normal + 3 * f);
    total += b->area[f];
  }
  if (!(fabs(six_volume) > 2.0 * THICK * b->radius * total)) {
    return fail(b, "the mesh is flat: a solid shape is needed", -1);
  }
  return six_volume > 0.0 ? QD_OK : fail(b, "faces must be counterclockwise seen from outside", -1);
}

/* ---------------------------------------------------------------- polygons */

/* 1 if the normal of a triangle is meaningless: its height is rounding in single precision. */
static int is_sliver(const builder *b, int f) {
  double longest = 0.0;
  for (int k = 0; k < 3; ++k) {
    double side[3];
    vec3_sub(side, b->t.vertex + 3 * half_edge_to(&b->t, 3 * f + k),
             b->t.vertex + 3 * half_edge_from(&b->t, 3 * f + k));
    longest = fmax(longest, vec3_dot(side, side));
  }
  return !(2.0 * b->area[f] > SLIGHT * b->radius * sqrt(longest));
}

/* 1 if the triangle lies in the plane of another one. */
static int in_plane(const builder *b, int f, int seed) {
  const double *normal = b->normal + 3 * seed;
  const double level = vec3_dot(normal, b->t.vertex + 3 * b->t.face[3 * seed]);
  const double tolerance = SLIGHT * b->radius;
  for (int k = 0; k < 3; ++k) {
    const double height = vec3_dot(normal, b->t.vertex + 3 * b->t.face[3 * f + k]) - level;
    if (!(fabs(height) <= tolerance)) {
      return 0;
    }
  }
  return vec3_dot(normal, b->normal + 3 * f) > 0.0 || is_sliver(b, f);
}

typedef struct sized {
  double area;
  int index;
} sized;

static int larger_first(const void *x, const void *y) {
  const sized *a = x, *b = y;
  if (a->area != b->area) {
    return a->area > b->area ? -1 : 1;
  }
  return a->index - b->index;
}

static qd_status grow_regions(builder *b) {
  mesh_topology *t = &b->t;
  sized *order = malloc((size_t)t->face_count * sizeof *order);
  int *stack = malloc((size_t)t->face_count * sizeof *stack);
  if (order == NULL || stack == NULL) {
    free(order);
    free(stack);
    return QD_OUT_OF_MEMORY;
  }
  for (int f = 0; f < t->face_count; ++f) {
    order[f] = (sized){is_sliver(b, f) ? 0.0 : b->area[f], f};
    t->region[f] = -1;
  }
  qsort(order, (size_t)t->face_count, sizeof *order, larger_first);
  for (int i = 0; i < t->face_count; ++i) {
    const int seed = order[i].index;
    if (t->region[seed] >= 0) {
      continue;
    }
    int count = 0;
    t->region[seed] = t->region_count++;
    stack[count++] = seed;
    while (count > 0) {
      const int f = stack[--count];
      for (int k = 0; k < 3; ++k) {
        const int other = t->twin[3 * f + k] / 3;
        if (t->region[other] < 0 && in_plane(b, other, seed)) {
          t->region[other] = t->region[seed];
          stack[count++] = other;
        }
      }
    }
  }
  free(order);
  free(stack);
  return QD_OK;
}

static qd_status region_normals(builder *b) {
  const mesh_topology *t = &b->t;
  b->region_normal = calloc(3 * (size_t)t->region_count, sizeof(double));
  if (b->region_normal == NULL) {
    return QD_OUT_OF_MEMORY;
  }
  for (int f = 0; f < t->face_count; ++f) {
    vec3_axpy(b->region_normal + 3 * t->region[f], b->area[f], b->normal + 3 * f);
  }
  for (int r = 0; r < t->region_count; ++r) {
    if (!(vec3_normalize(b->region_normal + 3 * r) > 0.0)) {
      return fail(b, "a face has no area", -1);
    }
  }
  return QD_OK;
}

/* ---------------------------------------------------------------- layout */

static void lay_out(convex_mesh *m, arena *a, const builder *b) {
  const mesh_topology *t = &b->t;
  const size_t nv = (size_t)t->vertex_count, np = (size_t)t->region_count;
  const size_t ne = (size_t)b->edge_count, ns = (size_t)b->side_count;
  size_t clip = 0, outline = 0;
  for (int r = 0; r < t->region_count; ++r) {
    const int sides = b->side_start[r + 1] - b->side_start[r];
    clip += (size_t)(sides < MESH_SIDES_MAX ? sides : MESH_SIDES_MAX);
    outline += (size_t)(sides < MESH_OUTLINE_MAX ? sides : MESH_OUTLINE_MAX);
  }
  m->vertex = arena_doubles(a, 3 * nv);
  ARENA_INTS(a, nv + 1, &m->neighbor_start, &m->fan_start);
  m->neighbor = arena_ints(a, 3 * (size_t)t->face_count);
  ARENA_INTS(a, 2 * ne, &m->fan, &m->edge_vertex, &m->edge_polygon);
  m->some_polygon = arena_ints(a, nv);
  m->edge_axis = arena_doubles(a, 3 * ne);
  m->edge_length = arena_doubles(a, ne);
  m->normal = arena_doubles(a, 3 * np);
  ARENA_DOUBLES(a, np, &m->offset, &m->slack, &m->extent);
  ARENA_INTS(a, np + 1, &m->side_start, &m->clip_start, &m->outline_start);
  ARENA_INTS(a, ns, &m->side_vertex, &m->side_edge);
  m->side_normal = arena_doubles(a, 3 * ns);
  m->side_level = arena_doubles(a, ns);
  m->clip = arena_ints(a, clip);
  m->outline = arena_ints(a, outline);
  m->brace_count = arena_ints(a, np);
  m->brace = arena_ints(a, MESH_BRACES_MAX * np);
  ARENA_INTS(a, 6 * MESH_CELLS_MAX * MESH_CELLS_MAX, &m->cell_vertex, &m->cell_polygon);
}

static void fill_vertices(convex_mesh *m, const builder *b) {
  const mesh_topology *t = &b->t;
  m->vertex_count = t->vertex_count;
  m->edge_count = b->edge_count;
  m->polygon_count = t->region_count;
  m->radius = b->radius;
  vec3_copy(m->center, b->center);
  memcpy(m->vertex, t->vertex, 3 * (size_t)t->vertex_count * sizeof(double));
  memcpy(m->neighbor_start, t->out_start, ((size_t)t->vertex_count + 1) * sizeof(int));
  for (int i = 0; i < 3 * t->face_count; ++i) {
    m->neighbor[i] = half_edge_to(t, t->out[i]);
  }
  vec3_copy(m->lower, m->vertex);
  vec3_copy(m->upper, m->vertex);
  for (int i = 0; i < t->vertex_count; ++i) {
    m->some_polygon[i] = t->region[t->out[t->out_start[i]] / 3];
    for (int k = 0; k < 3; ++k) {
      m->lower[k] = fmin(m->lower[k], m->vertex[3 * i + k]);
      m->upper[k] = fmax(m->upper[k], m->vertex[3 * i + k]);
    }
  }
}

/* The twin of a side begins at the twin of the side's last half-edge. */
static void fill_polygons(convex_mesh *m, const builder *b, int *edge_of) {
  const mesh_topology *t = &b->t;
  int edges = 0;
  memcpy(m->side_start, b->side_start, ((size_t)t->region_count + 1) * sizeof(int));
  for (int r = 0; r < t->region_count; ++r) {
    const int begin = b->side_start[r], end = b->side_start[r + 1];
    for (int k = begin; k < end; ++k) {
      const int first = b->side_first[k], next = b->side_first[k + 1 < end ? k + 1 : begin];
      m->side_vertex[k] = half_edge_from(t, first);
      if (edge_of[first] < 0) {
        const int back = t->twin[region_border_before(t, next)];
        edge_of[first] = edge_of[back] = edges;
        m->edge_vertex[2 * edges] = half_edge_from(t, first);
        m->edge_vertex[2 * edges + 1] = half_edge_from(t, next);
        m->edge_polygon[2 * edges] = r;
        m->edge_polygon[2 * edges + 1] = t->region[back / 3];
        ++edges;
      }
      m->side_edge[k] = edge_of[first];
    }
  }
}

static void fill_fans(convex_mesh *m) {
  for (int e = 0; e < 2 * m->edge_count; ++e) {
    ++m->fan_start[m->edge_vertex[e] + 1];
  }
  for (int i = 0; i < m->vertex_count; ++i) {
    m->fan_start[i + 1] += m->fan_start[i];
  }
  for (int e = 2 * m->edge_count - 1; e >= 0; --e) { /* decrements the starts; restored below */
    m->fan[--m->fan_start[m->edge_vertex[e] + 1]] = e / 2;
  }
  for (int i = 0; i < m->vertex_count; ++i) {
    m->fan_start[i] = m->fan_start[i + 1];
  }
  m->fan_start[m->vertex_count] = 2 * m->edge_count;
}

/* Repeatedly removes the corner whose removal costs the least area, until `limit` are left. */
static int thin_out(int *corner, int count, int limit, const double *vertex) {
  while (count > limit) {
    int least = 0;
    double least_area = INFINITY;
    for (int k = 0; k < count; ++k) {
      double u[3], v[3], cross[3];
      const double *x = vertex + 3 * corner[k];
      vec3_sub(u, vertex + 3 * corner[(k + 1) % count], x);
      vec3_sub(v, vertex + 3 * corner[(k + count - 1) % count], x);
      vec3_cross(cross, u, v);
      const double area = vec3_norm(cross);
      if (area < least_area * (1.0 - 1e-9)) {
        least_area = area;
        least = k;
      }
    }
    --count;
    memmove(corner + least, corner + least + 1, (size_t)(count - least) * sizeof(int));
  }
  return count;
}

static void fill_corners(convex_mesh *m, int *scratch) {
  int clip = 0, outline = 0;
  for (int r = 0; r < m->polygon_count; ++r) {
    int count = m->side_start[r + 1] - m->side_start[r];
    memcpy(scratch, m->side_vertex + m->side_start[r], (size_t)count * sizeof(int));
    count = thin_out(scratch, count, MESH_SIDES_MAX, m->vertex);
    m->clip_start[r] = clip;
    memcpy(m->clip + clip, scratch, (size_t)count * sizeof(int));
    clip += count;
    count = thin_out(scratch, count, MESH_OUTLINE_MAX, m->vertex);
    m->outline_start[r] = outline;
    memcpy(m->outline + outline, scratch, (size_t)count * sizeof(int));
    outline += count;
  }
  m->clip_start[m->polygon_count] = clip;
  m->outline_start[m->polygon_count] = outline;
}

/* The plane of a polygon goes through its outermost corner. */
static qd_status fill_planes(convex_mesh *m, builder *b) {
  const int all = (double)m->vertex_count * m->polygon_count <= CHECK_ALL_MOST;
  memcpy(m->normal, b->region_normal, 3 * (size_t)m->polygon_count * sizeof(double));
  for (int r = 0; r < m->polygon_count; ++r) {
    const double *normal = m->normal + 3 * r;
    double low = INFINITY, level = -INFINITY, high = -INFINITY;
    for (int k = m->side_start[r]; k < m->side_start[r + 1]; ++k) {
      const int corner = m->side_vertex[k];
      const double height = vec3_dot(normal, m->vertex + 3 * corner);
      low = fmin(low, height);
      level = fmax(level, height);
      for (int j = m->neighbor_start[corner]; j < m->neighbor_start[corner + 1]; ++j) {
        high = fmax(high, vec3_dot(normal, m->vertex + 3 * m->neighbor[j]));
      }
    }
    for (int i = 0; all && i < m->vertex_count; ++i) {
      high = fmax(high, vec3_dot(normal, m->vertex + 3 * i));
    }
    high = fmax(high, level);
    if (!(high - low <= CONVEX * m->radius) || !(low > 0.0)) {
      return fail(b, "not a face of the convex hull: vertices stand out of it",
                  b->side_first[m->side_start[r]] / 3);
    }
    m->offset[r] = level;
    m->slack[r] = high - level;
    m->roughness = fmax(m->roughness, level - low);
  }
  return QD_OK;
}

static double polygon_extent(const convex_mesh *m, int polygon) {
  const int first = m->side_start[polygon], end = m->side_start[polygon + 1];
  double middle[3] = {0.0, 0.0, 0.0}, arm[3], extent = 0.0;
  for (int k = first; k < end; ++k) {
    vec3_axpy(middle, 1.0 / (end - first), m->vertex + 3 * m->side_vertex[k]);
  }
  for (int k = first; k < end; ++k) {
    vec3_sub(arm, m->vertex + 3 * m->side_vertex[k], middle);
    extent = fmax(extent, vec3_norm(arm));
  }
  return extent;
}

static void fill_sides(convex_mesh *m) {
  for (int e = 0; e < m->edge_count; ++e) {
    double *axis = m->edge_axis + 3 * e;
    vec3_sub(axis, m->vertex + 3 * m->edge_vertex[2 * e + 1],
             m->vertex + 3 * m->edge_vertex[2 * e]);
    m->edge_length[e] = vec3_normalize(axis);
  }
  for (int r = 0; r < m->polygon_count; ++r) {
    m->extent[r] = polygon_extent(m, r);
    for (int k = m->side_start[r]; k < m->side_start[r + 1]; ++k) {
      const int e = m->side_edge[k];
      double *normal = m->side_normal + 3 * k;
      vec3_cross(normal, m->edge_axis + 3 * e, m->normal + 3 * r);
      vec3_scale(normal, normal, m->edge_polygon[2 * e] == r ? 1.0 : -1.0);
      vec3_normalize(normal);
      m->side_level[k] = vec3_dot(normal, m->vertex + 3 * m->side_vertex[k]);
    }
  }
}

static void fill_cells(convex_mesh *m) {
  int cells = (int)sqrt(m->vertex_count / 12.0);
  cells = cells < 1 ? 1 : cells > MESH_CELLS_MAX ? MESH_CELLS_MAX : cells;
  for (int side = 0; side < 6; ++side) {
    for (int u = 0; u < cells; ++u) {
      for (int v = 0; v < cells; ++v) {
        double d[3];
        const int axis = side / 2;
        d[axis] = side % 2 ? 1.0 : -1.0;
        d[(axis + 1) % 3] = (2.0 * u + 1.0) / cells - 1.0;
        d[(axis + 2) % 3] = (2.0 * v + 1.0) / cells - 1.0;
        const int cell = (side * cells + u) * cells + v;
        m->cell_vertex[cell] = mesh_support(m, d);
        m->cell_polygon[cell] = mesh_polygon_behind(m, d);
      }
    }
  }
  m->cells = cells;
}

static qd_status assemble(convex_mesh **out, builder *b) {
  const mesh_topology *t = &b->t;
  arena counting = {NULL, 0};
  convex_mesh sizes;
  arena_take(&counting, sizeof sizes);
  lay_out(&sizes, &counting, b);
  char *block = block_allocate(counting.offset);
  int *scratch = malloc(3 * (size_t)t->face_count * sizeof(int));
  if (block == NULL || scratch == NULL) {
    block_free(block);
    free(scratch);
    return QD_OUT_OF_MEMORY;
  }
  memset(block, 0, counting.offset);
  arena a = {block, 0};
  convex_mesh *m = arena_take(&a, sizeof *m);
  lay_out(m, &a, b);
  fill_vertices(m, b);
  memset(scratch, -1, 3 * (size_t)t->face_count * sizeof(int));
  fill_polygons(m, b, scratch);
  fill_fans(m);
  fill_corners(m, scratch);
  const qd_status status = fill_planes(m, b);
  if (status != QD_OK) {
    free(scratch);
    block_free(block);
    return status;
  }
  fill_sides(m);
  mesh_fill_braces(m, scratch);
  fill_cells(m);
  free(scratch);
  *out = m;
  return QD_OK;
}

static qd_status build(convex_mesh **out, builder *b) {
  const size_t nf = (size_t)b->t.face_count;
  b->normal = malloc(3 * nf * sizeof(double));
  b->area = malloc(nf * sizeof(double));
  b->side_first = malloc(3 * nf * sizeof(int));
  if (b->normal == NULL || b->area == NULL || b->side_first == NULL) {
    return QD_OUT_OF_MEMORY;
  }
  qd_status status = measure(b);
  status = status == QD_OK ? grow_regions(b) : status;
  if (status == QD_OK) {
    status = mesh_topology_sides(&b->t, &b->side_start, b->side_first, &b->side_count);
    b->edge_count = b->side_count / 2;
    if (status == QD_BAD_ARGUMENT) {
      fail(b, "its faces do not make a polyhedron: too thin somewhere", -1);
    }
  }
  status = status == QD_OK ? region_normals(b) : status;
  return status == QD_OK ? assemble(out, b) : status;
}

qd_status convex_mesh_create(convex_mesh **out, const double *vertex, int vertex_count,
                             const int32_t *face, int face_count, const char **reason,
                             int *face_index) {
  builder b;
  memset(&b, 0, sizeof b);
  b.at = -1;
  *out = NULL;
  qd_status status =
      mesh_topology_create(&b.t, vertex, vertex_count, face, face_count, &b.reason, &b.at);
  status = status == QD_OK ? build(out, &b) : status;
  mesh_topology_free(&b.t);
  free(b.normal);
  free(b.area);
  free(b.region_normal);
  free(b.side_start);
  free(b.side_first);
  *reason = b.reason;
  *face_index = b.at;
  return status;
}

void convex_mesh_destroy(convex_mesh *mesh) { block_free(mesh); }
