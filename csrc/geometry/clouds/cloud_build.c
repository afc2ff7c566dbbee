/* Builds a balanced tree over the points. Each set is halved along its longest direction, down to a
 * few points. Discs fit well because most clouds are samples of surfaces. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "base/vec3.h"
#include "geometry/clouds/cloud.h"

/* Largest number of points in a leaf. */
#define LEAF_POINTS 8
/* Number of directions whose outermost points come first, and number of points that are spread
 * apart. */
#define DIRECTIONS 128
#define SPREAD_POINTS 256

/* ---------------------------------------------------------------- ranks */

/* The point farthest along a direction; the first of equals. */
static int outermost(const point_cloud *cloud, const double direction[3]) {
  int best = 0;
  double height = -INFINITY;
  for (int i = 0; i < cloud->point_count; ++i) {
    const double here = vec3_dot(direction, cloud->point + 3 * i);
    if (here > height) {
      height = here;
      best = i;
    }
  }
  return best;
}

/* Assigns ranks from `rank` up to `limit` to points without a rank whose mark is `wanted` (-1: any
 * mark). The next rank always goes to the point farthest from all ranked ones. distance
 * (point_count): square of this distance; at first, from the centre. Returns the next rank. */
static int spread(point_cloud *cloud, const int *mark, int wanted, int rank, int limit,
                  double *distance) {
  const int count = cloud->point_count;
  while (rank < limit) {
    int farthest = -1;
    for (int i = 0; i < count; ++i) {
      if (cloud->rank[i] < 0 && (wanted < 0 || mark[i] == wanted) &&
          (farthest < 0 || distance[i] > distance[farthest])) {
        farthest = i;
      }
    }
    if (farthest < 0) {
      break;
    }
    cloud->rank[farthest] = rank++;
    for (int i = 0; i < count; ++i) {
      double d[3];
      vec3_sub(d, cloud->point + 3 * i, cloud->point + 3 * farthest);
      const double square = vec3_dot(d, d);
      distance[i] = rank == 1 ? square : fmin(distance[i], square);
    }
  }
  return rank;
}

/* Order among equally near points: first outermost points, far apart from each other; then others
 * far apart; then all in their order. If a flat face lies on a plane, all its points are equally
 * near, and this order selects its corners rather than neighbours in one corner. Directions: the
 * diagonals of a cube, and a spiral on the sphere. mark and distance (point_count) are scratch. */
static void fill_ranks(point_cloud *cloud, int *mark, double *distance) {
  const int count = cloud->point_count;
  for (int i = 0; i < count; ++i) {
    distance[i] = vec3_dot(cloud->point + 3 * i, cloud->point + 3 * i);
    cloud->rank[i] = -1;
    mark[i] = 0;
  }
  for (int k = 0; k < DIRECTIONS; ++k) {
    double d[3] = {k & 1 ? 1.0 : -1.0, k & 2 ? 1.0 : -1.0, k & 4 ? 1.0 : -1.0};
    if (k >= 8) {
      const double z = 1.0 - 2.0 * (k - 7.5) / (DIRECTIONS - 8), angle = 2.399963229728653 * k;
      const double across = sqrt(1.0 - z * z);
      vec3_set(d, across * cos(angle), across * sin(angle), z);
    }
    mark[outermost(cloud, d)] = 1;
  }
  int rank = spread(cloud, mark, 1, 0, SPREAD_POINTS, distance);
  rank = spread(cloud, mark, -1, rank, SPREAD_POINTS, distance);
  for (int i = 0; i < count; ++i) {
    if (cloud->rank[i] < 0) {
      cloud->rank[i] = rank++;
    }
  }
}

/* ---------------------------------------------------------------- principal axes */

/* Columns of axes: eigenvectors of the symmetric A by Jacobi rotations. Any orthonormal axes are
 * valid; good ones give small discs, so a few sweeps suffice. */
static void principal_axes(double A[9], double axes[9]) {
  static const int PLANE[3][2] = {{0, 1}, {0, 2}, {1, 2}};
  memset(axes, 0, 9 * sizeof(double));
  axes[0] = axes[4] = axes[8] = 1.0;
  for (int k = 0; k < 15; ++k) {
    const int p = PLANE[k % 3][0], q = PLANE[k % 3][1];
    const double off = A[3 * p + q];
    if (off == 0.0) {
      continue;
    }
    const double angle = 0.5 * atan2(2.0 * off, A[4 * q] - A[4 * p]);
    const double c = cos(angle), s = sin(angle);
    for (int i = 0; i < 3; ++i) {
      const double x = A[3 * i + p], y = A[3 * i + q], u = axes[3 * i + p], v = axes[3 * i + q];
      A[3 * i + p] = c * x - s * y;
      A[3 * i + q] = s * x + c * y;
      axes[3 * i + p] = c * u - s * v;
      axes[3 * i + q] = s * u + c * v;
    }
    for (int i = 0; i < 3; ++i) {
      const double x = A[3 * p + i], y = A[3 * q + i];
      A[3 * p + i] = c * x - s * y;
      A[3 * q + i] = s * x + c * y;
    }
  }
}

/* Axes of a set of points, longest first, and centre and half lengths of its box along them. */
typedef struct point_set {
  double axis[3][3];
  double center[3];
  double half[3];
} point_set;

static void point_set_measure(point_set *set, const point_cloud *cloud, const int *member,
                              int count) {
  double mean[3] = {0.0, 0.0, 0.0}, A[9] = {0.0}, axes[9];
  for (int i = 0; i < count; ++i) {
    vec3_axpy(mean, 1.0 / count, cloud->point + 3 * member[i]);
  }
  for (int i = 0; i < count; ++i) {
    double d[3];
    vec3_sub(d, cloud->point + 3 * member[i], mean);
    vec3_scale(d, d, cloud->extent > 0.0 ? 1.0 / cloud->extent : 0.0);
    for (int j = 0; j < 3; ++j) {
      vec3_axpy(A + 3 * j, d[j], d);
    }
  }
  principal_axes(A, axes);
  vec3_set(set->center, 0.0, 0.0, 0.0);
  for (int k = 0; k < 3; ++k) {
    double axis[3], low = INFINITY, high = -INFINITY;
    mat3_column(axis, axes, k);
    for (int i = 0; i < count; ++i) {
      const double x = vec3_dot(axis, cloud->point + 3 * member[i]);
      low = fmin(low, x);
      high = fmax(high, x);
    }
    vec3_axpy(set->center, 0.5 * (low + high), axis);
    const double half = 0.5 * (high - low);
    int at = k;
    for (; at > 0 && set->half[at - 1] < half; --at) {
      set->half[at] = set->half[at - 1];
      vec3_copy(set->axis[at], set->axis[at - 1]);
    }
    set->half[at] = half;
    vec3_copy(set->axis[at], axis);
  }
}

/* ---------------------------------------------------------------- the tree */

typedef struct builder {
  const point_cloud *cloud; /* points in the given order */
  cloud_node *node;
  int node_count;
  int *member;    /* (point_count) points in the order of the tree */
  double *height; /* (point_count) coordinate along the axis of a split, in the order of the tree */
} builder;

static int comes_before(const builder *b, int i, int j) {
  return b->height[i] != b->height[j] ? b->height[i] < b->height[j] : b->member[i] < b->member[j];
}

static void exchange(builder *b, int i, int j) {
  const int member = b->member[i];
  const double height = b->height[i];
  b->member[i] = b->member[j];
  b->height[i] = b->height[j];
  b->member[j] = member;
  b->height[j] = height;
}

/* Partitions the members at `middle` (quickselect; the pivot is the median of three). */
static void split(builder *b, int begin, int middle, int end) {
  while (end - begin > 1) {
    const int last = end - 1, half = begin + (last - begin) / 2;
    if (comes_before(b, half, begin)) {
      exchange(b, half, begin);
    }
    if (comes_before(b, last, begin)) {
      exchange(b, last, begin);
    }
    if (comes_before(b, last, half)) {
      exchange(b, last, half);
    }
    exchange(b, half, last); /* the pivot is at last */
    int place = begin;
    for (int i = begin; i < last; ++i) {
      if (comes_before(b, i, last)) {
        exchange(b, i, place++);
      }
    }
    exchange(b, place, last);
    if (place == middle) {
      return;
    }
    if (place < middle) {
      begin = place + 1;
    } else {
      end = place;
    }
  }
}

static void fill_node(cloud_node *node, const point_set *set, const builder *b, int begin,
                      int end) {
  node->begin = begin;
  node->end = end;
  node->second = 0;
  vec3_copy(node->center, set->center);
  vec3_copy(node->normal, set->axis[2]);
  node->rank = b->cloud->point_count;
  node->radius = node->thickness = 0.0;
  for (int i = begin; i < end; ++i) {
    double d[3];
    vec3_sub(d, b->cloud->point + 3 * b->member[i], node->center);
    const double along = vec3_dot(d, node->normal);
    vec3_axpy(d, -along, node->normal);
    node->thickness = fmax(node->thickness, fabs(along));
    node->radius = fmax(node->radius, vec3_norm(d));
    const int rank = b->cloud->rank[b->member[i]];
    node->rank = rank < node->rank ? rank : node->rank;
  }
}

/* The recursion is as deep as the tree, whose sets halve. */
static int build(builder *b, int begin, int end) {
  const int here = b->node_count++;
  point_set set;
  point_set_measure(&set, b->cloud, b->member + begin, end - begin);
  fill_node(b->node + here, &set, b, begin, end);
  if (end - begin > LEAF_POINTS) {
    const int middle = begin + (end - begin) / 2;
    for (int i = begin; i < end; ++i) {
      b->height[i] = vec3_dot(set.axis[0], b->cloud->point + 3 * b->member[i]);
    }
    split(b, begin, middle, end);
    build(b, begin, middle);
    const int second = build(b, middle, end);
    b->node[here].second = second;
  }
  return here;
}

/* ---------------------------------------------------------------- the cloud */

static int node_total(int point_count) {
  return point_count <= LEAF_POINTS
             ? 1
             : 1 + node_total(point_count / 2) + node_total(point_count - point_count / 2);
}

static point_cloud *lay_out(int point_count, int node_count, arena *a) {
  const size_t count = (size_t)point_count;
  point_cloud *cloud = arena_take(a, sizeof *cloud);
  point_cloud counted;
  point_cloud *out = cloud != NULL ? cloud : &counted;
  out->point = arena_doubles(a, 3 * count);
  ARENA_INTS(a, count, &out->index, &out->place, &out->rank);
  out->node = arena_take(a, (size_t)node_count * sizeof(cloud_node));
  return cloud;
}

/* Points relative to the centre of their box, in the given order. */
static void copy_points(point_cloud *cloud, const double *points) {
  for (int k = 0; k < 3; ++k) {
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < cloud->point_count; ++i) {
      low = fmin(low, points[3 * i + k]);
      high = fmax(high, points[3 * i + k]);
    }
    cloud->center[k] = 0.5 * low + 0.5 * high;
    cloud->half[k] = 0.5 * high - 0.5 * low;
  }
  cloud->extent = 0.0;
  for (int i = 0; i < cloud->point_count; ++i) {
    vec3_sub(cloud->point + 3 * i, points + 3 * i, cloud->center);
    cloud->extent = fmax(cloud->extent, vec3_norm(cloud->point + 3 * i));
  }
}

/* Permutes points and ranks to the order of the tree. copy (point_count, 3), copy_rank: scratch. */
static void reorder(point_cloud *cloud, double *copy, int *copy_rank) {
  const size_t count = (size_t)cloud->point_count;
  memcpy(copy, cloud->point, 3 * count * sizeof(double));
  memcpy(copy_rank, cloud->rank, count * sizeof(int));
  for (int i = 0; i < cloud->point_count; ++i) {
    const int from = cloud->index[i];
    vec3_copy(cloud->point + 3 * i, copy + 3 * from);
    cloud->rank[i] = copy_rank[from];
    cloud->place[from] = i;
  }
}

point_cloud *point_cloud_create(const double *points, int point_count, int contact_count) {
  const int node_count = node_total(point_count);
  arena counting = {NULL, 0};
  lay_out(point_count, node_count, &counting);
  char *block = block_allocate(counting.offset);
  double *scratch = malloc(4 * (size_t)point_count * sizeof(double));
  if (block == NULL || scratch == NULL) {
    block_free(block);
    free(scratch);
    return NULL;
  }
  memset(block, 0, counting.offset);
  arena a = {block, 0};
  point_cloud *cloud = lay_out(point_count, node_count, &a);
  cloud->point_count = point_count;
  cloud->contact_count = contact_count;
  cloud->node_count = node_count;
  copy_points(cloud, points);
  fill_ranks(cloud, cloud->place, scratch);
  for (int i = 0; i < point_count; ++i) {
    cloud->index[i] = i;
  }
  builder b = {cloud, cloud->node, 0, cloud->index, scratch};
  build(&b, 0, point_count);
  reorder(cloud, scratch, (int *)(scratch + 3 * (size_t)point_count));
  free(scratch);
  return cloud;
}

void point_cloud_destroy(point_cloud *cloud) { block_free(cloud); }
