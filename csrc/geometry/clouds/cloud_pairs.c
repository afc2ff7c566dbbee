/* A cloud against a convex shape or another cloud: contacts of the k nearest points (Tracy and
 * Manchester use five), each a ball fixed to the cloud.
 *
 * The signed distance of a convex shape is the largest height above its supporting half spaces,
 * d(x) = max over n of n.x - h(n), outside and inside. So the half space that is tight at the
 * centre c of a node is a lower bound for all its points: d(x) >= d(c) + n.(x - c), and over the
 * node's disc n.(x - c) >= -(|n.m| thickness + |n x m| radius).
 *
 * Distances that differ by less than rounding count as equal; then the rank of the points decides.
 * Thus a flat part at rest touches with the same points in every step. Where normals are not
 * unique, the sphere pairs choose. Contacts come in the given order of the points. The feature of a
 * contact is the index of its point.
 *
 * Two clouds have contacts at the k nearest pairs of points, k the larger of their numbers; nodes
 * are balls then. */
#include <math.h>
#include <string.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/clouds/cloud.h"
#include "geometry/pairs/pairs.h"
#include "geometry/projection.h"
#include "geometry/relative.h"
#include "geometry/surface.h"

enum { DEPTH_MAX = 64 }; /* of the tree: halving 2^31 points needs fewer levels */

/* ---------------------------------------------------------------- the k nearest points */

typedef struct near_point {
  double level; /* distance in units of 1 / per_tie, rounded */
  int64_t rank;
  int place;
  int other; /* the point of the other cloud */
} near_point;

typedef struct nearest {
  near_point found[CONTACTS_PER_PAIR_MAX]; /* nearest first */
  int count, wanted;
  double range; /* points farther away are ignored */
  double per_tie;
  double rounding;
} nearest;

static void nearest_init(nearest *n, int wanted, double range, double extent) {
  const double size = fmax(extent, 1e-100);
  n->count = 0;
  n->wanted = wanted < CONTACTS_PER_PAIR_MAX ? wanted : CONTACTS_PER_PAIR_MAX;
  n->per_tie = 1.0 / (PIVOTED * size);
  n->rounding = SUM_ROUNDING * size;
  n->range = range + n->rounding;
}

static int before(double level_a, int64_t rank_a, double level_b, int64_t rank_b) {
  return level_a != level_b ? level_a < level_b : rank_a < rank_b;
}

/* 1 if no point of this or larger distance, and of this or later rank, can be among the nearest. */
static int too_far(const nearest *n, double distance, int64_t rank) {
  if (distance > n->range) {
    return 1;
  }
  if (n->count < n->wanted) {
    return 0;
  }
  const near_point *last = n->found + n->count - 1;
  return !before(rint(distance * n->per_tie), rank, last->level, last->rank);
}

static void consider(nearest *n, double distance, int64_t rank, int place, int other) {
  if (too_far(n, distance, rank)) {
    return;
  }
  const double level = rint(distance * n->per_tie);
  int at = n->count < n->wanted ? n->count++ : n->count - 1;
  for (; at > 0 && before(level, rank, n->found[at - 1].level, n->found[at - 1].rank); --at) {
    n->found[at] = n->found[at - 1];
  }
  n->found[at] = (near_point){level, rank, place, other};
}

/* ---------------------------------------------------------------- a convex shape */

/* The point x as a ball, for the sphere pairs. */
static void place_ball(placed_shape *ball, const double radius[3], const double x[3]) {
  memset(ball, 0, sizeof *ball);
  ball->type = QD_SPHERE;
  ball->size = radius;
  vec3_copy(ball->pos, x);
}

static const double NO_RADIUS[3] = {0.0, 0.0, 0.0};

/* The shape in the cloud's frame, and a point of radius zero. */
typedef struct question {
  placed_shape shape, point;
} question;

/* Puts the nearest of a shape's contacts with a ball into contact[0]. Height fields may return
 * several: `contact` has room for all. Returns 0 if there is none within the margin. */
static int nearest_contact(const placed_shape *shape, const placed_shape *ball, double margin,
                           contact_point *contact) {
  const int count = SPHERE_COLUMN[shape->type].collide(shape, ball, margin, contact);
  for (int i = 1; i < count; ++i) {
    if (contact[i].dist < contact->dist) {
      *contact = contact[i];
    }
  }
  return count > 0;
}

/* Signed distance of x and its gradient. */
static double shape_distance(question *ask, const double x[3], double gradient[3]) {
  contact_point contact[CONTACTS_PER_PAIR_MAX];
  if (ask->shape.type == QD_PLANE) { /* the most common case */
    double difference[3];
    vec3_sub(difference, x, ask->shape.pos);
    mat3_column(gradient, ask->shape.rot, 2);
    return vec3_dot(gradient, difference);
  }
  vec3_copy(ask->point.pos, x);
  nearest_contact(&ask->shape, &ask->point, INFINITY, contact);
  vec3_copy(gradient, contact->normal);
  return contact->dist;
}

/* Lower bound of the distance over all points of a node. */
static double node_distance(const cloud_node *node, question *ask) {
  double n[3], across[3];
  const double distance = shape_distance(ask, node->center, n);
  if (ask->shape.type == QD_HFIELD) { /* not convex: no supporting half spaces */
    return distance - hypot(node->thickness, node->radius);
  }
  vec3_cross(across, n, node->normal); /* the sine: 1 - cosine^2 would lose small values */
  return distance - fabs(vec3_dot(n, node->normal)) * node->thickness -
         vec3_norm(across) * node->radius;
}

static void search(nearest *n, const point_cloud *cloud, question *ask) {
  struct {
    int node;
    double distance;
  } stack[DEPTH_MAX];
  int depth = 0, here = 0;
  double distance = node_distance(cloud->node, ask) - n->rounding;
  for (;;) {
    const cloud_node *node = cloud->node + here;
    if (!too_far(n, distance, node->rank)) {
      if (node->second > 0) {
        int first = here + 1, second = node->second;
        double d_first = node_distance(cloud->node + first, ask) - n->rounding;
        double d_second = node_distance(cloud->node + second, ask) - n->rounding;
        if (d_second < d_first) {
          const double swap = d_first;
          d_first = d_second, d_second = swap;
          first = second, second = here + 1;
        }
        stack[depth].node = second;
        stack[depth++].distance = d_second;
        here = first;
        distance = d_first;
        continue;
      }
      for (int i = node->begin; i < node->end; ++i) {
        double gradient[3];
        const double d = shape_distance(ask, cloud->point + 3 * i, gradient);
        consider(n, d, cloud->rank[i], i, 0);
      }
    }
    if (depth == 0) {
      return;
    }
    here = stack[--depth].node;
    distance = stack[depth].distance;
  }
}

/* The point at this place in the tree, in the world. */
static void world_point(double out[3], const placed_shape *cloud, int place) {
  mat3_mul_add(out, cloud->rot, cloud->cloud->point + 3 * place, cloud->pos);
}

/* Sorts by the given order of the first cloud's points, then of the second's. */
static void sort_by_index(nearest *n, const int *index, const int *other_index) {
  for (int i = 1; i < n->count; ++i) {
    const near_point moved = n->found[i];
    int at = i;
    for (; at > 0; --at) {
      const near_point *p = n->found + at - 1;
      const int here = index[moved.place], there = index[p->place];
      if (here > there ||
          (here == there && (!other_index || other_index[moved.other] > other_index[p->other]))) {
        break;
      }
      n->found[at] = *p;
    }
    n->found[at] = moved;
  }
}

/* Contact of the point of this given index with a convex shape. */
static void point_contact(const placed_shape *a, const placed_shape *b, contact_feature index,
                          contact_point *out) {
  contact_point found[CONTACTS_PER_PAIR_MAX];
  placed_shape ball;
  double x[3];
  world_point(x, b, b->cloud->place[index]);
  place_ball(&ball, b->size, x);
  nearest_contact(a, &ball, INFINITY, found);
  *out = *found;
}

int convex_cloud_collide(const placed_shape *a, const placed_shape *b, double margin,
                         contact_point *out) {
  const point_cloud *cloud = b->cloud;
  question ask = {.shape = relative_shape(a, b)};
  nearest n;
  int count = 0;
  place_ball(&ask.point, NO_RADIUS, cloud->center);
  nearest_init(&n, cloud->contact_count, margin + b->size[0],
               cloud->extent + shape_extent(a) + vec3_norm(ask.shape.pos));
  search(&n, cloud, &ask);
  sort_by_index(&n, cloud->index, NULL);
  for (int i = 0; i < n.count; ++i) {
    contact_point contact[CONTACTS_PER_PAIR_MAX];
    placed_shape ball;
    double x[3];
    world_point(x, b, n.found[i].place);
    place_ball(&ball, b->size, x);
    if (nearest_contact(a, &ball, margin, contact)) {
      out[count] = *contact;
      out[count++].feature = cloud->index[n.found[i].place];
    }
  }
  return count;
}

/* The contact's point as a ball, and its contact computed again. */
static void find_ball(const placed_shape *a, const placed_shape *b, const contact_point *contact,
                      contact_point *found, placed_shape *ball) {
  double x[3];
  point_contact(a, b, contact->feature, found);
  world_point(x, b, b->cloud->place[contact->feature]);
  place_ball(ball, b->size, x);
}

/* Ball and cloud have the same twist about the contact, so the ball's derivative is the cloud's. */
void convex_cloud_derivative(const placed_shape *a, const placed_shape *b,
                             const contact_point *contact, contact_point_derivative *out) {
  contact_point found;
  placed_shape ball;
  find_ball(a, b, contact, &found, &ball);
  SPHERE_COLUMN[a->type].derivative(a, &ball, &found, out);
}

/* A cloud's size is the radius of its points. */
void convex_cloud_size_derivative(const placed_shape *a, const placed_shape *b,
                                  const contact_point *contact, contact_point_derivative *out) {
  contact_point found;
  placed_shape ball;
  find_ball(a, b, contact, &found, &ball);
  SPHERE_COLUMN[a->type].size_derivative(a, &ball, &found, out);
}

/* ---------------------------------------------------------------- two clouds */

typedef struct node_pair {
  int a, b;
  double distance;
} node_pair;

/* Two clouds, B in the frame of A. */
typedef struct two_clouds {
  const point_cloud *a, *b;
  double pos[3], rot[9];
} two_clouds;

static void from_b(double out[3], const two_clouds *t, const double x[3]) {
  mat3_mul_add(out, t->rot, x, t->pos);
}

static double ball_distance(const two_clouds *t, int a, int b) {
  const cloud_node *A = t->a->node + a, *B = t->b->node + b;
  double center[3], d[3];
  from_b(center, t, B->center);
  vec3_sub(d, center, A->center);
  return vec3_norm(d) - hypot(A->radius, A->thickness) - hypot(B->radius, B->thickness);
}

static int64_t pair_rank(const two_clouds *t, int rank_a, int rank_b) {
  return (int64_t)rank_a * t->b->point_count + rank_b;
}

static void consider_leaves(nearest *n, const two_clouds *t, const cloud_node *a,
                            const cloud_node *b) {
  for (int j = b->begin; j < b->end; ++j) {
    double x[3], d[3];
    from_b(x, t, t->b->point + 3 * j);
    for (int i = a->begin; i < a->end; ++i) {
      vec3_sub(d, x, t->a->point + 3 * i);
      consider(n, vec3_norm(d), pair_rank(t, t->a->rank[i], t->b->rank[j]), i, j);
    }
  }
}

/* Splits the larger node of the pair; the nearer child goes on top of the stack. */
static int push_halves(const two_clouds *t, node_pair pair, double rounding, node_pair *top) {
  const cloud_node *A = t->a->node + pair.a, *B = t->b->node + pair.b;
  const int halve_a = B->second == 0 || (A->second > 0 && A->radius >= B->radius);
  for (int k = 0; k < 2; ++k) {
    top[k] = pair;
    if (halve_a) {
      top[k].a = k ? A->second : pair.a + 1;
    } else {
      top[k].b = k ? B->second : pair.b + 1;
    }
    top[k].distance = ball_distance(t, top[k].a, top[k].b) - rounding;
  }
  if (top[0].distance < top[1].distance) {
    const node_pair swap = top[0];
    top[0] = top[1];
    top[1] = swap;
  }
  return 2;
}

static void search_clouds(nearest *n, const two_clouds *t) {
  node_pair stack[2 * DEPTH_MAX];
  int depth = 1;
  stack[0] = (node_pair){0, 0, ball_distance(t, 0, 0) - n->rounding};
  while (depth > 0) {
    const node_pair pair = stack[--depth];
    const cloud_node *A = t->a->node + pair.a, *B = t->b->node + pair.b;
    if (too_far(n, pair.distance, pair_rank(t, A->rank, B->rank))) {
      continue;
    }
    if (A->second == 0 && B->second == 0) {
      consider_leaves(n, t, A, B);
    } else {
      depth += push_halves(t, pair, n->rounding, stack + depth);
    }
  }
}

/* feature: index of A's point * count of B's + index of B's */
static void points_contact(const placed_shape *a, const placed_shape *b, contact_feature feature,
                           contact_point *out) {
  placed_shape ball_a, ball_b;
  double x[3];
  world_point(x, a, a->cloud->place[feature / b->cloud->point_count]);
  place_ball(&ball_a, a->size, x);
  world_point(x, b, b->cloud->place[feature % b->cloud->point_count]);
  place_ball(&ball_b, b->size, x);
  sphere_sphere_collide(&ball_a, &ball_b, INFINITY, out);
  out->feature = feature;
}

int cloud_cloud_collide(const placed_shape *a, const placed_shape *b, double margin,
                        contact_point *out) {
  const int k_a = a->cloud->contact_count, k_b = b->cloud->contact_count;
  const placed_shape relative = relative_shape(b, a);
  two_clouds t = {.a = a->cloud, .b = b->cloud};
  nearest n;
  int count = 0;
  vec3_copy(t.pos, relative.pos);
  memcpy(t.rot, relative.rot, sizeof t.rot);
  nearest_init(&n, k_a > k_b ? k_a : k_b, margin + a->size[0] + b->size[0],
               a->cloud->extent + b->cloud->extent + vec3_norm(t.pos));
  search_clouds(&n, &t);
  sort_by_index(&n, a->cloud->index, b->cloud->index);
  for (int i = 0; i < n.count; ++i) {
    const contact_feature index_a = a->cloud->index[n.found[i].place];
    const contact_feature feature =
        index_a * b->cloud->point_count + b->cloud->index[n.found[i].other];
    points_contact(a, b, feature, out + count);
    count += out[count].dist <= margin;
  }
  return count;
}

/* Two balls: the derivative needs only the distance and direction of the contact. */
void cloud_cloud_derivative(const placed_shape *a, const placed_shape *b,
                            const contact_point *contact, contact_point_derivative *out) {
  core_projection projection = {.freedom = CORE_POINT};
  vec3_copy(projection.normal, contact->normal);
  projection.gap = contact->dist + a->size[0] + b->size[0];
  if (projection.gap > core_touch_distance(a->size[0] + b->size[0])) {
    projection.curvature = 1.0 / projection.gap;
  }
  round_contact_derivative(out, &projection, a->size[0], b->size[0]);
}

void cloud_cloud_size_derivative(const placed_shape *a, const placed_shape *b,
                                 const contact_point *contact, contact_point_derivative *out) {
  placed_shape ball_a, ball_b;
  place_ball(&ball_a, a->size, contact->pos);
  place_ball(&ball_b, b->size, contact->pos);
  closest_size_derivative(&ball_a, &ball_b, 0, 0, contact, out);
}

/* ---------------------------------------------------------------- one point */

void cloud_contact(const placed_shape *a, const placed_shape *b, contact_feature feature,
                   contact_point *out) {
  if (a->type == QD_CLOUD) {
    points_contact(a, b, feature, out);
  } else {
    point_contact(a, b, feature, out);
  }
  out->feature = feature;
}
