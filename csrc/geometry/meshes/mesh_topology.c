#include "geometry/meshes/mesh_topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec3.h"

static qd_status fail(const char **reason, int *at, const char *why, int where) {
  *reason = why;
  *at = where;
  return QD_BAD_ARGUMENT;
}

/* ---------------------------------------------------------------- neighbours */

static qd_status check_faces(const double *vertex, int vertex_count, const int32_t *face,
                             int face_count, const char **reason, int *at) {
  if (face_count < 4) {
    return fail(reason, at, "a solid has four faces at least", -1);
  }
  for (int i = 0; i < 3 * vertex_count; ++i) {
    if (!isfinite(vertex[i])) {
      fail(reason, at, "a vertex is not finite", -1);
      return QD_NOT_FINITE;
    }
  }
  for (int f = 0; f < face_count; ++f) {
    const int32_t *corner = face + 3 * f;
    for (int k = 0; k < 3; ++k) {
      if (corner[k] < 0 || corner[k] >= vertex_count) {
        return fail(reason, at, "no such vertex", f);
      }
    }
    if (corner[0] == corner[1] || corner[1] == corner[2] || corner[2] == corner[0]) {
      return fail(reason, at, "a vertex twice", f);
    }
  }
  return QD_OK;
}

/* Copies the vertices that a face names. scratch: (vertex_count). */
static void copy_used(mesh_topology *t, const double *vertex, int vertex_count, const int32_t *face,
                      int *scratch) {
  memset(scratch, 0, (size_t)vertex_count * sizeof(int));
  for (int i = 0; i < 3 * t->face_count; ++i) {
    scratch[face[i]] = 1;
  }
  for (int i = 0; i < vertex_count; ++i) {
    if (scratch[i]) {
      vec3_copy(t->vertex + 3 * t->vertex_count, vertex + 3 * i);
      scratch[i] = t->vertex_count++;
    }
  }
  for (int i = 0; i < 3 * t->face_count; ++i) {
    t->face[i] = scratch[face[i]];
  }
}

/* Sorts half-edges by start vertex, then by end vertex. */
static void sort_half_edges(mesh_topology *t) {
  const int count = 3 * t->face_count;
  for (int h = 0; h < count; ++h) {
    ++t->out_start[half_edge_from(t, h) + 1];
  }
  for (int i = 0; i < t->vertex_count; ++i) {
    t->out_start[i + 1] += t->out_start[i];
  }
  memset(t->twin, 0, (size_t)count * sizeof(int)); /* half-edges placed so far, by vertex */
  for (int h = 0; h < count; ++h) {
    const int from = half_edge_from(t, h), begin = t->out_start[from];
    int k = begin + t->twin[from]++;
    for (; k > begin && half_edge_to(t, t->out[k - 1]) > half_edge_to(t, h); --k) {
      t->out[k] = t->out[k - 1];
    }
    t->out[k] = h;
  }
}

static int find_half_edge(const mesh_topology *t, int from, int to) {
  for (int k = t->out_start[from]; k < t->out_start[from + 1]; ++k) {
    if (half_edge_to(t, t->out[k]) == to) {
      return t->out[k];
    }
  }
  return -1;
}

static qd_status find_twins(mesh_topology *t, const char **reason, int *at) {
  for (int i = 0; i < 3 * t->face_count; ++i) {
    const int h = t->out[i];
    if (i > 0 && half_edge_from(t, h) == half_edge_from(t, t->out[i - 1]) &&
        half_edge_to(t, h) == half_edge_to(t, t->out[i - 1])) {
      return fail(reason, at, "an edge is that of another face too, run the same way", h / 3);
    }
    t->twin[h] = find_half_edge(t, half_edge_to(t, h), half_edge_from(t, h));
    if (t->twin[h] < 0) {
      return fail(reason, at, "the surface is not closed: an edge has no second face", h / 3);
    }
  }
  return QD_OK;
}

/* Checks that all faces are connected and that the Euler characteristic is that of a sphere. */
static qd_status check_whole(mesh_topology *t, const char **reason, int *at) {
  int count = 1, reached = 1;
  int *stack = t->region; /* not used yet: (face_count) */
  char *seen = calloc((size_t)t->face_count, 1);
  if (seen == NULL) {
    return QD_OUT_OF_MEMORY;
  }
  stack[0] = 0;
  seen[0] = 1;
  while (count > 0) {
    const int f = stack[--count];
    for (int k = 0; k < 3; ++k) {
      const int other = t->twin[3 * f + k] / 3;
      if (!seen[other]) {
        seen[other] = 1;
        stack[count++] = other;
        ++reached;
      }
    }
  }
  free(seen);
  if (reached < t->face_count) {
    return fail(reason, at, "the surface is in several pieces", -1);
  }
  return 2 * t->vertex_count - t->face_count == 4
             ? QD_OK
             : fail(reason, at, "the surface is not that of a solid without holes", -1);
}

qd_status mesh_topology_create(mesh_topology *t, const double *vertex, int vertex_count,
                               const int32_t *face, int face_count, const char **reason, int *at) {
  memset(t, 0, sizeof *t);
  qd_status status = check_faces(vertex, vertex_count, face, face_count, reason, at);
  if (status != QD_OK) {
    return status;
  }
  const size_t nv = (size_t)vertex_count, nf = (size_t)face_count;
  t->face_count = face_count;
  t->vertex = malloc(3 * nv * sizeof(double));
  t->face = malloc(3 * nf * sizeof(int));
  t->out_start = calloc(nv + 1, sizeof(int));
  t->out = malloc(3 * nf * sizeof(int));
  t->twin = malloc((3 * nf > nv ? 3 * nf : nv) * sizeof(int));
  t->region = malloc(nf * sizeof(int));
  if (!t->vertex || !t->face || !t->out_start || !t->out || !t->twin || !t->region) {
    return QD_OUT_OF_MEMORY;
  }
  copy_used(t, vertex, vertex_count, face, t->twin);
  sort_half_edges(t);
  status = find_twins(t, reason, at);
  return status == QD_OK ? check_whole(t, reason, at) : status;
}

void mesh_topology_free(mesh_topology *t) {
  free(t->vertex);
  free(t->face);
  free(t->out_start);
  free(t->out);
  free(t->twin);
  free(t->region);
}

/* ---------------------------------------------------------------- regions */

static int region_of(const mesh_topology *t, int h) { return t->region[h / 3]; }
static int neighbor_of(const mesh_topology *t, int h) { return t->region[t->twin[h] / 3]; }
static int half_edge_before(int h) { return h % 3 == 0 ? h + 2 : h - 1; }

int region_border_before(const mesh_topology *t, int h) {
  int g = half_edge_before(h);
  while (neighbor_of(t, g) == region_of(t, h)) {
    g = half_edge_before(t->twin[g]);
  }
  return g;
}

static int region_border_after(const mesh_topology *t, int h) {
  int g = half_edge_next(h);
  while (neighbor_of(t, g) == region_of(t, h)) {
    g = half_edge_next(t->twin[g]);
  }
  return g;
}

/* Walks around a region's border from h, where a side begins, and writes the first half-edge of
 * each side. Returns their number, or 0 if the region is not a polygon. stamp: (region_count)
 * marks; no old mark equals `mark`. */
static int walk_sides(const mesh_topology *t, int h, int border_count, int *stamp, int mark,
                      int *first) {
  int sides = 0, walked = 0, g = h;
  do {
    const int neighbor = neighbor_of(t, g);
    if (neighbor != neighbor_of(t, region_border_before(t, g))) {
      if (stamp[neighbor] == mark) {
        return 0;
      }
      stamp[neighbor] = mark;
      first[sides++] = g;
    }
    ++walked;
    g = region_border_after(t, g);
  } while (g != h);
  return walked == border_count && sides >= 3 ? sides : 0;
}

/* Gives every face of a region but the first its own region. Returns 0 if it has one face only. */
static int fall_apart(mesh_topology *t, int region) {
  int kept = 0;
  const int before = t->region_count;
  for (int f = 0; f < t->face_count; ++f) {
    if (t->region[f] == region && kept++) {
      t->region[f] = t->region_count++;
    }
  }
  return t->region_count > before;
}

/* Splits a region that is not a polygon; if it is a single face, splits the larger regions around
 * it. */
static int repair(mesh_topology *t, int region) {
  int changed = fall_apart(t, region);
  for (int h = 0; h < 3 * t->face_count && !changed; ++h) {
    if (region_of(t, h) == region) {
      changed = fall_apart(t, neighbor_of(t, h));
    }
  }
  return changed;
}

/* One attempt: *bad is the first region that is not a polygon, or -1. scratch: (3 region_count). */
static void find_sides(const mesh_topology *t, int *start, int *first, int *scratch, int *bad) {
  int *border = scratch, *begin = scratch + t->region_count, *stamp = begin + t->region_count;
  for (int r = 0; r < t->region_count; ++r) {
    border[r] = 0;
    begin[r] = stamp[r] = -1;
  }
  for (int h = 0; h < 3 * t->face_count; ++h) {
    const int r = region_of(t, h);
    if (neighbor_of(t, h) != r) {
      ++border[r];
      /* sides begin at corners; takes the first corner in the order of half-edges */
      if (begin[r] < 0 && neighbor_of(t, region_border_before(t, h)) != neighbor_of(t, h)) {
        begin[r] = h;
      }
    }
  }
  start[0] = 0;
  *bad = -1;
  for (int r = 0; r < t->region_count && *bad < 0; ++r) {
    const int sides =
        begin[r] < 0 ? 0 : walk_sides(t, begin[r], border[r], stamp, r, first + start[r]);
    *bad = sides == 0 ? r : -1;
    start[r + 1] = start[r] + sides;
  }
}

qd_status mesh_topology_sides(mesh_topology *t, int **start, int *first, int *side_count) {
  /* there are at most as many regions as faces */
  int *scratch = malloc(3 * (size_t)t->face_count * sizeof(int)), bad = 0;
  *start = malloc(((size_t)t->face_count + 1) * sizeof(int));
  if (scratch == NULL || *start == NULL) {
    free(scratch);
    return QD_OUT_OF_MEMORY;
  }
  int going = 1;
  while (going) {
    find_sides(t, *start, first, scratch, &bad);
    going = bad >= 0 && repair(t, bad);
  }
  free(scratch);
  *side_count = bad < 0 ? (*start)[t->region_count] : 0;
  return bad < 0 ? QD_OK : QD_BAD_ARGUMENT;
}
