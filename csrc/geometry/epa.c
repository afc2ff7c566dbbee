/* Van den Bergen's expanding polytope algorithm, started from any tetrahedron of support points of
 * D = B - A; the origin need not be inside. The facet of least offset (outward normal m, m.w =
 * offset, negative if the origin is outside of it) is pushed out to the support point along m until
 * this gains nothing. The depth is the minimum of h(m) = max m.D over unit m. Offsets of the
 * polytope inside D are lower bounds of it, and h(m) of any m is an upper bound. n = -m. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/convex.h"

enum { EPA_EDGES = 3 * EPA_VERTICES };

/* Facets whose normals differ by less than this, rad, give the same separating direction. */
static const double LEAN = 1e-3;

/* Adds the support point along m; returns h(m). */
static double add_vertex(polytope *p, const convex_pair *pair, const double m[3]) {
  const int i = p->vertex_count++;
  double n[3];
  vec3_scale(n, m, -1.0);
  const double gap = convex_support(pair, n, p->x[i][0], p->x[i][1]);
  vec3_sub(p->w[i], p->x[i][1], p->x[i][0]);
  return -gap;
}

/* Returns 0 if the corners are collinear. */
static int add_face(polytope *p, int i, int j, int k) {
  facet *f = p->face + p->face_count;
  double u[3], v[3];
  vec3_sub(u, p->w[j], p->w[i]);
  vec3_sub(v, p->w[k], p->w[i]);
  vec3_cross(f->m, u, v);
  if (!(vec3_normalize(f->m) > 1e-14 * (vec3_dot(u, u) + vec3_dot(v, v)))) {
    return 0;
  }
  vec3_normalize(f->m);
  f->offset = (vec3_dot(f->m, p->w[i]) + vec3_dot(f->m, p->w[j]) + vec3_dot(f->m, p->w[k])) / 3.0;
  f->corner[0] = i;
  f->corner[1] = j;
  f->corner[2] = k;
  ++p->face_count;
  return 1;
}

/* Adds the support point along m or -m that is farther from w along m. Any three directions that
 * are not in a plane give a start; the axis of A or B along which D is thinnest would be a bad
 * one. */
static void add_farther(polytope *p, const convex_pair *pair, const double m[3], const double *w) {
  double minus[3], up[3], down[3];
  vec3_scale(minus, m, -1.0);
  const int i = p->vertex_count;
  add_vertex(p, pair, m);
  add_vertex(p, pair, minus);
  vec3_sub(up, p->w[i], w);
  vec3_sub(down, p->w[i + 1], w);
  if (fabs(vec3_dot(m, down)) > fabs(vec3_dot(m, up))) {
    memcpy(p->w[i], p->w[i + 1], sizeof p->w[i]);
    memcpy(p->x[i], p->x[i + 1], sizeof p->x[i]);
  }
  --p->vertex_count;
}

static void start(polytope *p, const convex_pair *pair) {
  double m[3], u[3], v[3];
  p->vertex_count = p->face_count = 0;
  p->whole = 1;
  vec3_copy(m, pair->d);
  if (vec3_normalize(m) == 0.0) {
    vec3_set(m, 0.0, 0.0, 1.0);
  }
  add_vertex(p, pair, m);
  vec3_scale(m, m, -1.0);
  add_vertex(p, pair, m);
  vec3_sub(u, p->w[1], p->w[0]);
  vec3_normalize(u);
  const int least = fabs(u[0]) < fabs(u[1]) ? (fabs(u[0]) < fabs(u[2]) ? 0 : 2)
                                            : (fabs(u[1]) < fabs(u[2]) ? 1 : 2);
  vec3_set(m, 0.0, 0.0, 0.0);
  m[least] = 1.0;
  vec3_axpy(m, -u[least], u);
  vec3_normalize(m);
  add_farther(p, pair, m, p->w[0]);
  vec3_sub(v, p->w[2], p->w[0]);
  vec3_cross(m, u, v);
  vec3_normalize(m);
  add_farther(p, pair, m, p->w[0]);
  const int flip = vec3_dot_sub(m, p->w[3], p->w[0]) > 0.0;
  add_face(p, 0, flip ? 2 : 1, flip ? 1 : 2);
  add_face(p, 0, flip ? 1 : 3, flip ? 3 : 1);
  add_face(p, 1, flip ? 2 : 3, flip ? 3 : 2);
  add_face(p, 2, flip ? 0 : 3, flip ? 3 : 0);
}

/* ---------------------------------------------------------------- expansion */

/* Faces that a new vertex replaces ("inside"), and their border. */
typedef struct horizon {
  unsigned char inside[EPA_FACES];
  int edge[EPA_EDGES][2], edge_count, inside_count;
} horizon;

static int has_edge(const facet *f, int from, int to) {
  return (f->corner[0] == from && f->corner[1] == to) ||
         (f->corner[1] == from && f->corner[2] == to) ||
         (f->corner[2] == from && f->corner[0] == to);
}

static void find_seeing(horizon *h, const polytope *p, int first, double tolerance) {
  const double *w = p->w[p->vertex_count - 1];
  for (int f = 0; f < p->face_count; ++f) {
    h->inside[f] =
        (unsigned char)(f == first || vec3_dot(p->face[f].m, w) > p->face[f].offset + tolerance);
  }
}

/* Keeps only the faces connected with the first one. Others see the vertex because of rounding; all
 * together would have several borders. */
static void find_connected(horizon *h, const polytope *p, int first) {
  int seeing[EPA_FACES], count = 0, found[EPA_FACES], found_count = 0;
  for (int f = 0; f < p->face_count; ++f) {
    if (h->inside[f]) {
      seeing[count++] = f;
      h->inside[f] = 0;
    }
  }
  h->inside[first] = 1;
  found[found_count++] = first;
  for (int i = 0; i < found_count; ++i) {
    const facet *face = p->face + found[i];
    for (int k = 0; k < count; ++k) {
      const facet *other = p->face + seeing[k];
      if (!h->inside[seeing[k]] && (has_edge(other, face->corner[1], face->corner[0]) ||
                                    has_edge(other, face->corner[2], face->corner[1]) ||
                                    has_edge(other, face->corner[0], face->corner[2]))) {
        h->inside[seeing[k]] = 1;
        found[found_count++] = seeing[k];
      }
    }
  }
}

/* Finds the edges between faces inside and outside. Returns 0 if there are too many. */
static int find_border(horizon *h, const polytope *p) {
  h->edge_count = h->inside_count = 0;
  for (int f = 0; f < p->face_count; ++f) {
    if (!h->inside[f]) {
      continue;
    }
    ++h->inside_count;
    for (int k = 0; k < 3; ++k) {
      const int from = p->face[f].corner[k], to = p->face[f].corner[(k + 1) % 3];
      int inner = -1;
      for (int e = 0; e < h->edge_count; ++e) {
        if (h->edge[e][0] == to && h->edge[e][1] == from) {
          inner = e;
        }
      }
      if (inner >= 0) {
        --h->edge_count;
        h->edge[inner][0] = h->edge[h->edge_count][0];
        h->edge[inner][1] = h->edge[h->edge_count][1];
      } else if (h->edge_count < EPA_EDGES) {
        h->edge[h->edge_count][0] = from;
        h->edge[h->edge_count++][1] = to;
      } else {
        return 0;
      }
    }
  }
  return h->edge_count >= 3 && p->face_count - h->inside_count + h->edge_count <= EPA_FACES;
}

static void take_inside(horizon *h, const polytope *p, int from, int to) {
  for (int f = 0; f < p->face_count; ++f) {
    h->inside[f] |= (unsigned char)has_edge(p->face + f, from, to);
  }
}

/* An edge collinear with the new vertex gives no face. The face beyond it contains the vertex in
 * its plane, so this face is moved inside. Returns the number of such edges. */
static int take_slivers(horizon *h, const polytope *p) {
  const int vertex = p->vertex_count - 1;
  int count = 0;
  for (int e = 0; e < h->edge_count; ++e) {
    double u[3], v[3], cross[3];
    vec3_sub(u, p->w[h->edge[e][1]], p->w[h->edge[e][0]]);
    vec3_sub(v, p->w[vertex], p->w[h->edge[e][0]]);
    vec3_cross(cross, u, v);
    if (!(vec3_norm(cross) > NEGLIGIBLE * (vec3_dot(u, u) + vec3_dot(v, v)))) {
      take_inside(h, p, h->edge[e][1], h->edge[e][0]);
      ++count;
    }
  }
  return count;
}

/* 1 if the border is a single loop. */
static int is_loop(const horizon *h) {
  int leaving[EPA_VERTICES], length = 0, at = h->edge[0][0];
  for (int e = 0; e < h->edge_count; ++e) {
    leaving[h->edge[e][0]] = h->edge[e][1];
  }
  do {
    at = leaving[at];
    ++length;
  } while (at != h->edge[0][0] && length < h->edge_count);
  return at == h->edge[0][0] && length == h->edge_count;
}

/* If the border has several loops, moves the faces beyond the shorter loops inside. Returns the
 * number of their edges. */
static int take_islands(horizon *h, const polytope *p) {
  unsigned char longest[EPA_EDGES] = {0}, walked[EPA_EDGES], seen[EPA_EDGES] = {0};
  int most = 0, count = 0;
  for (int start = 0; start < h->edge_count; ++start) {
    int length = 0;
    if (seen[start]) {
      continue;
    }
    memset(walked, 0, sizeof walked);
    for (int e = start; e >= 0 && !seen[e];) {
      int next = -1;
      seen[e] = walked[e] = 1;
      ++length;
      for (int k = 0; k < h->edge_count; ++k) {
        next = !seen[k] && h->edge[k][0] == h->edge[e][1] ? k : next;
      }
      e = next;
    }
    if (length > most) {
      most = length;
      memcpy(longest, walked, sizeof longest);
    }
  }
  for (int e = 0; e < h->edge_count && most < h->edge_count; ++e) {
    if (!longest[e]) {
      take_inside(h, p, h->edge[e][1], h->edge[e][0]);
      ++count;
    }
  }
  return count;
}

/* Replaces the faces that see the last vertex by a cone from the vertex over their border. Returns
 * 0 if rounding prevents this. */
static int expand(polytope *p, int first, double tolerance) {
  horizon h;
  int kept = 0, whole = 1, careful = 0, settled = 0, before = 0;
  find_seeing(&h, p, first, tolerance);
  while (!settled) {
    if (!find_border(&h, p) || h.inside_count <= before) { /* no progress */
      return 0;
    }
    before = h.inside_count;
    settled = take_slivers(&h, p) == 0 && (is_loop(&h) || take_islands(&h, p) == 0);
    if (!settled && !careful) { /* start again with connected faces */
      find_seeing(&h, p, first, tolerance);
      find_connected(&h, p, first);
      careful = 1;
      before = 0;
    }
  }
  for (int f = 0; f < p->face_count; ++f) {
    if (!h.inside[f]) {
      p->face[kept++] = p->face[f];
    }
  }
  p->face_count = kept;
  for (int e = 0; e < h.edge_count; ++e) {
    whole &= add_face(p, h.edge[e][0], h.edge[e][1], p->vertex_count - 1);
  }
  return whole;
}

/* ---------------------------------------------------------------- search */

/* The points of A and B behind the origin's projection on the facet. */
static void facet_points(double x[2][3], const polytope *p, const facet *f) {
  double foot[3], u[3], v[3], c[3], weight[3], sum = 0.0;
  vec3_scale(foot, f->m, f->offset);
  for (int k = 0; k < 3; ++k) {
    vec3_sub(u, p->w[f->corner[(k + 1) % 3]], foot);
    vec3_sub(v, p->w[f->corner[(k + 2) % 3]], foot);
    vec3_cross(c, u, v);
    weight[k] = fmax(vec3_dot(c, f->m), 0.0);
    sum += weight[k];
  }
  for (int s = 0; s < 2; ++s) {
    vec3_set(x[s], 0.0, 0.0, 0.0);
    for (int k = 0; k < 3; ++k) {
      vec3_axpy(x[s], sum > 0.0 ? weight[k] / sum : 1.0 / 3.0, p->x[f->corner[k]][s]);
    }
  }
}

int epa_deepest(polytope *p, const convex_pair *pair, double tolerance, double depth,
                convex_witness *out) {
  double best = INFINITY;
  start(p, pair);
  while (p->face_count > 0) {
    int least = 0;
    for (int f = 1; f < p->face_count; ++f) {
      least = p->face[f].offset < p->face[least].offset ? f : least;
    }
    const facet nearest = p->face[least];
    if (nearest.offset >= depth - CANCELLED * pair->size && best < INFINITY) {
      return 0;
    }
    const double height = add_vertex(p, pair, nearest.m);
    if (height < best) {
      best = height;
      out->gap = -height;
      vec3_scale(out->n, nearest.m, -1.0);
      facet_points(out->x, p, &nearest);
    }
    if (height - nearest.offset <= tolerance || p->vertex_count >= EPA_VERTICES) {
      break;
    }
    p->whole = expand(p, least, LAST_DIGITS * pair->size);
    if (!p->whole) {
      break;
    }
  }
  if (best == INFINITY) { /* D has no volume */
    vec3_set(out->n, 0.0, 0.0, 1.0);
    out->gap = convex_support(pair, out->n, out->x[0], out->x[1]);
  }
  return 1;
}

/* 1 if directions at the facet, away from n, may have a depth below `depth`. */
static int may_hide(const facet *f, const double n[3], double depth) {
  return f->offset < depth && 1.0 + vec3_dot(f->m, n) > 0.5 * LEAN * LEAN;
}

int epa_other(polytope *p, const convex_pair *pair, const double n[3], double depth,
              convex_witness *out) {
  while (p->whole && p->vertex_count < EPA_VERTICES) {
    int least = -1;
    for (int f = 0; f < p->face_count; ++f) {
      if (may_hide(p->face + f, n, depth) &&
          (least < 0 || p->face[f].offset < p->face[least].offset)) {
        least = f;
      }
    }
    if (least < 0) {
      return 0;
    }
    const facet nearest = p->face[least];
    const double height = add_vertex(p, pair, nearest.m);
    p->whole = expand(p, least, LAST_DIGITS * pair->size);
    if (height < depth) {
      out->gap = -height;
      vec3_scale(out->n, nearest.m, -1.0);
      facet_points(out->x, p, &nearest);
      return 1;
    }
  }
  return 0;
}
