/* Box against box or capsule; a capsule is a box of zero width with a round skin.
 *
 * Each direction n gives a lower bound of the distance: the separation of the two cores along n.
 * The largest bound over face normals and products of edges is the (negative) distance if the cores
 * overlap. If they do not overlap, it is a lower bound; the distance equals the bound if points on
 * the edges or faces attain it, otherwise it is the distance of a vertex from the other core.
 *
 * Choices: among equal bounds first faces of A, then of B, then edges; lower indices first. For
 * cores that touch in a point without a unique face normal: the direction of the largest bound. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/pairs/face_manifold.h"
#include "geometry/pairs/pairs.h"
#include "geometry/projection.h"
#include "geometry/surface.h"
#include "qdsim.h"

static const int PLACE[3] = {1, 3, 9};

typedef struct core_block {
  const placed_shape *shape;
  double axis[3][3], half[3], skin;
  int is_box;
} core_block;

typedef struct block_pair {
  core_block block[2];
  double d[3]; /* from A's centre to B's */
  double size;
} block_pair;

/* Closest points of the cores, relative to the centre of A. Features as for boxes; n from A into
 * B. */
typedef struct core_contact {
  double gap, n[3], x[2][3];
  int feature[2];
} core_contact;

static void block_init(core_block *out, const placed_shape *shape) {
  out->shape = shape;
  out->is_box = shape->type == QD_BOX;
  out->skin = out->is_box ? 0.0 : shape->size[0];
  vec3_set(out->half, 0.0, 0.0, shape->size[1]);
  if (out->is_box) {
    vec3_copy(out->half, shape->size);
  }
  for (int i = 0; i < 3; ++i) {
    mat3_column(out->axis[i], shape->rot, i);
  }
}

/* Flips n towards B and returns the separation along it. */
static double separation(const block_pair *pair, double n[3]) {
  double sum = vec3_dot(n, pair->d);
  if (sum < 0.0) {
    vec3_scale(n, n, -1.0);
    sum = -sum;
  }
  for (int k = 0; k < 2; ++k) {
    const core_block *block = pair->block + k;
    for (int i = 0; i < 3; ++i) {
      sum -= fabs(vec3_dot(n, block->axis[i])) * block->half[i];
    }
  }
  return sum;
}

/* A bound. face >= 0: 3 * block + axis; otherwise of edges i of A and j of B. */
typedef struct bound {
  double gap, n[3];
  int face, i, j;
} bound;

/* The largest of all bounds, and of the faces alone. Returns 0 as soon as one exceeds the range. */
static int largest_bound(bound *out, bound *faces, const block_pair *pair, double range) {
  double n[3];
  out->gap = -INFINITY;
  for (int k = 0; k < 6; ++k) {
    if (!pair->block[k / 3].is_box) {
      continue;
    }
    vec3_copy(n, pair->block[k / 3].axis[k % 3]);
    const double gap = separation(pair, n);
    if (gap > range) {
      return 0;
    }
    if (gap > out->gap + (out->gap > -INFINITY ? CANCELLED * pair->size : 0.0)) {
      out->gap = gap;
      vec3_copy(out->n, n);
      out->face = k;
    }
  }
  *faces = *out;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      if (!(pair->block[0].half[i] > 0.0 && pair->block[1].half[j] > 0.0)) {
        continue;
      }
      vec3_cross(n, pair->block[0].axis[i], pair->block[1].axis[j]);
      if (vec3_normalize(n) < HALF_DIGITS) {
        continue;
      }
      vec3_normalize(n);
      const double gap = separation(pair, n);
      if (gap > range) {
        return 0;
      }
      if (gap > out->gap + CANCELLED * pair->size) {
        out->gap = gap;
        vec3_copy(out->n, n);
        out->face = -1;
        out->i = i;
        out->j = j;
      }
    }
  }
  return 1;
}

/* Support point of the core along sign * n, at the midpoint of an edge along axis `edge` (3: no
 * edge). Returns the feature. */
static int support(double x[3], const core_block *block, const double n[3], double sign, int edge) {
  int feature = 13;
  vec3_set(x, 0.0, 0.0, 0.0);
  for (int i = 0; i < 3; ++i) {
    if (i != edge) {
      const int side = sign * vec3_dot(n, block->axis[i]) < 0.0 ? -1 : 1;
      vec3_axpy(x, side * block->half[i], block->axis[i]);
      feature += side * PLACE[i];
    }
  }
  return feature;
}

/* The closest points of the bound's two edges. Returns 1 if they attain the bound. */
static int edge_contact(core_contact *out, const block_pair *pair, const bound *best) {
  const double *u = pair->block[0].axis[best->i], *w = pair->block[1].axis[best->j];
  const double half_a = pair->block[0].half[best->i], half_b = pair->block[1].half[best->j];
  double r[3];
  out->gap = best->gap;
  vec3_copy(out->n, best->n);
  out->feature[0] = support(out->x[0], pair->block, best->n, 1.0, best->i);
  out->feature[1] = support(out->x[1], pair->block + 1, best->n, -1.0, best->j);
  vec3_add(out->x[1], out->x[1], pair->d);
  vec3_sub(r, out->x[1], out->x[0]);
  /* u.(r + t w - s u) = 0 = w.(r + t w - s u). t follows from the clamped s, which almost parallel
   * edges determine badly */
  double cross[3], rxw[3];
  vec3_cross(cross, u, w);
  vec3_cross(rxw, r, w);
  const double c = vec3_dot(u, w);
  double s = clamp(vec3_dot(rxw, cross) / vec3_dot(cross, cross), half_a);
  const double t = clamp(c * s - vec3_dot(r, w), half_b);
  s = clamp(c * t + vec3_dot(r, u), half_a);
  vec3_axpy(out->x[0], s, u);
  vec3_axpy(out->x[1], t, w);
  vec3_sub(r, out->x[1], out->x[0]);
  vec3_axpy(r, -best->gap, best->n);
  return vec3_norm(r) <= NEGLIGIBLE * pair->size;
}

/* Distance of a vertex x of the other core (relative to this centre) from this core. */
static double vertex_distance(const core_block *block, const double x[3], double n[3],
                              double foot[3], int *feature) {
  double local[3], square = 0.0;
  *feature = 13;
  vec3_set(foot, 0.0, 0.0, 0.0);
  vec3_set(n, 0.0, 0.0, 0.0);
  for (int i = 0; i < 3; ++i) {
    const double y = vec3_dot(block->axis[i], x), excess = fabs(y) - block->half[i];
    const int side = y < 0.0 ? -1 : 1;
    local[i] = y;
    if (excess > 0.0) {
      local[i] = side * block->half[i];
      vec3_axpy(n, side * excess, block->axis[i]);
      square += excess * excess;
      *feature += side * PLACE[i];
    }
    vec3_axpy(foot, local[i], block->axis[i]);
  }
  const double gap = sqrt(square);
  if (gap > 0.0) {
    vec3_scale(n, n, 1.0 / gap);
  }
  return gap;
}

/* The vertex of block 1 - k nearest to core k. */
static void nearest_vertices(core_contact *out, const block_pair *pair) {
  double center[3], vertex[3], arm[3], n[3], foot[3];
  out->gap = INFINITY;
  for (int k = 0; k < 2; ++k) {
    const core_block *face = pair->block + k, *other = pair->block + 1 - k;
    vec3_scale(center, pair->d, k == 0 ? 1.0 : -1.0);
    for (int v = other->is_box ? 0 : 3; v < 8; v += other->is_box ? 1 : 4) {
      int vertex_feature = 13, feature;
      vec3_copy(vertex, center);
      for (int i = 0; i < 3; ++i) {
        const int side = v >> i & 1 ? 1 : -1;
        vec3_axpy(vertex, side * other->half[i], other->axis[i]);
        vertex_feature += side * PLACE[i];
      }
      const double gap = vertex_distance(face, vertex, n, foot, &feature);
      if (gap < out->gap - CANCELLED * pair->size) {
        out->gap = gap;
        vec3_scale(out->n, n, k == 0 ? 1.0 : -1.0);
        vec3_set(arm, 0.0, 0.0, 0.0);
        if (k == 1) {
          vec3_copy(arm, pair->d);
        }
        vec3_add(out->x[k], foot, arm);
        vec3_add(out->x[1 - k], vertex, arm);
        out->feature[k] = feature;
        out->feature[1 - k] = vertex_feature;
      }
    }
  }
}

/* The largest bound is a face's: takes the other core's support point as if it were over the face.
 * The face's manifold has the true points. */
static void face_contact(core_contact *out, const block_pair *pair, const bound *best) {
  const int k = best->face / 3, axis = best->face % 3;
  const double towards = k == 0 ? 1.0 : -1.0;
  const int side = towards * vec3_dot(best->n, pair->block[k].axis[axis]) < 0.0 ? -1 : 1;
  out->gap = best->gap;
  vec3_copy(out->n, best->n);
  out->feature[k] = 13 + side * PLACE[axis];
  out->feature[1 - k] = support(out->x[1 - k], pair->block + 1 - k, best->n, -towards, 3);
  if (k == 0) {
    vec3_add(out->x[1], out->x[1], pair->d);
  }
  vec3_copy(out->x[k], out->x[1 - k]);
  vec3_axpy(out->x[k], -towards * best->gap, best->n);
}

/* 1 if the face's manifold has a point at the distance of the face's bound. */
static int face_realises(const block_pair *pair, const bound *best) {
  contact_point contacts[FACE_MANIFOLD_CAPACITY];
  const int k = best->face / 3, axis = best->face % 3;
  const core_block *owner = pair->block + k, *other = pair->block + 1 - k;
  const double along = vec3_dot(best->n, owner->axis[axis]);
  const int face = 2 * axis + ((k == 0 ? along : -along) > 0.0);
  const int count = face_manifold(owner->shape, face, other->shape, contacts);
  for (int i = 0; i < count; ++i) {
    if (contacts[i].dist + other->skin <= best->gap + WORKED_OUT * pair->size) {
      return 1;
    }
  }
  return 0;
}

/* range: of the cores; larger distances are not needed. Returns 0 beyond it. */
static int cores_closest(core_contact *out, const block_pair *pair, double range) {
  bound best, faces;
  if (!largest_bound(&best, &faces, pair, range)) {
    return 0;
  }
  if (best.face < 0) {
    if (edge_contact(out, pair, &best) || best.gap <= 0.0) {
      return 1;
    }
  } else if (best.gap <= 0.0) {
    face_contact(out, pair, &best);
    return 1;
  }
  core_contact at_bound = *out;
  nearest_vertices(out, pair);
  if (out->gap > faces.gap + NEGLIGIBLE * pair->size && face_realises(pair, &faces)) {
    face_contact(out, pair, &faces); /* an edge may exceed it because of a negligible tilt */
  } else if (out->gap <= core_touch_distance(pair->size)) {
    if (best.face >= 0) {
      face_contact(out, pair, &best);
    } else {
      *out = at_bound;
    }
  }
  return 1;
}

/* Converts a box feature to a feature of the shape. */
static int shape_feature(const core_block *block, int feature) {
  return block->is_box ? feature : feature / 9;
}

int block_block_collide(const placed_shape *a, const placed_shape *b, double margin,
                        contact_point *out) {
  block_pair pair;
  core_contact core;
  contact_point closest;
  block_init(pair.block, a);
  block_init(pair.block + 1, b);
  vec3_sub(pair.d, b->pos, a->pos);
  pair.size = shape_extent(a) + shape_extent(b);
  const double skin_a = pair.block[0].skin, skin_b = pair.block[1].skin;
  if (!cores_closest(&core, &pair, margin + skin_a + skin_b)) {
    return 0;
  }
  closest.dist = core.gap - skin_a - skin_b;
  if (!(closest.dist <= margin)) {
    return 0;
  }
  vec3_copy(closest.normal, core.n);
  vec3_add(closest.pos, core.x[0], core.x[1]);
  vec3_axpy(closest.pos, skin_a - skin_b, core.n);
  vec3_scale(closest.pos, closest.pos, 0.5);
  vec3_add(closest.pos, closest.pos, a->pos);
  return closest_and_manifold(a, b, &closest, shape_feature(pair.block, core.feature[0]),
                              shape_feature(pair.block + 1, core.feature[1]), margin, out);
}
