/* Capsule against capsule: closest points of two segments, and a manifold if they lie side by side.
 *
 * Segments sA + s u, |s| <= lA and sB + t w, |t| <= lB; d = sB - sA. Each closest point is an end
 * (-1, +1) or interior (0) to its segment: nine features, each one smooth branch.
 *
 * Side by side (angle below PARALLEL_SINE and overlapping): contacts at both ends of the overlap,
 * each with an end of one capsule. They hold a capsule on another like a capsule on a plane, both
 * at angle zero (where closest points are not unique) and at small angles. The closest points are
 * added if they are closer than both, which happens if the axes cross inside the overlap.
 *
 * Choices if the axes meet in a point. Both interior: u x w, as at a small gap. An end: away from
 * the middle of the other capsule; if that is zero, the other capsule's first axis. The normal then
 * rotates with the other capsule. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/pairs/line_manifold.h"
#include "geometry/pairs/pairs.h"
#include "geometry/projection.h"
#include "geometry/surface.h"

typedef struct segment_pair {
  const placed_shape *a, *b;
  double u[3], w[3];  /* axes of A and B, unit */
  double d[3];        /* centre of B minus centre of A */
  double cross[3];    /* u x w */
  double cosine;      /* u . w */
  double sine_square; /* |u x w|^2 */
  double size;        /* sum of radii and half lengths */
} segment_pair;

static void segment_pair_init(segment_pair *pair, const placed_shape *a, const placed_shape *b) {
  pair->a = a;
  pair->b = b;
  mat3_column(pair->u, a->rot, 2);
  mat3_column(pair->w, b->rot, 2);
  vec3_sub(pair->d, b->pos, a->pos);
  vec3_cross(pair->cross, pair->u, pair->w);
  pair->cosine = vec3_dot(pair->u, pair->w);
  pair->sine_square = vec3_dot(pair->cross, pair->cross);
  pair->size = a->size[0] + a->size[1] + b->size[0] + b->size[1];
}

/* Feature of a coordinate clamped to [-half, half]; a segment of length zero has only its lower
 * end. */
static int segment_region(double x, double half) {
  if (x <= -half) {
    return -1;
  }
  return x >= half ? 1 : 0;
}

static int feature_code(int region_a, int region_b) { return region_a + 1 + 3 * (region_b + 1); }

/* Closest points of the segments. Minimises the convex quadratic |d + t w - s u|^2 over the box:
 * clamps the s of the lines' closest points (for parallel lines any s is optimal: takes an end of
 * A, so that one point is an end), finds the best t for it, and, if t was clamped, the best s for
 * that t. */
static void segment_closest(const segment_pair *pair, double *s, double *t) {
  const double half_a = pair->a->size[1], half_b = pair->b->size[1];
  const double du = vec3_dot(pair->d, pair->u), dw = vec3_dot(pair->d, pair->w);
  if (pair->sine_square > 1e-24) {
    double dxw[3];
    vec3_cross(dxw, pair->d, pair->w);
    *s = clamp(vec3_dot(dxw, pair->cross) / pair->sine_square, half_a);
  } else {
    *s = -half_a;
  }
  *t = pair->cosine * *s - dw;
  if (fabs(*t) >= half_b) {
    *t = clamp(*t, half_b);
    *s = clamp(pair->cosine * *t + du, half_a);
  }
}

/* The normal if an end lies on the owner's core: along d, without its component along `axis` (if
 * given); if that is zero, the owner's first axis. */
static void spare_normal(double spare[3], const segment_pair *pair, const placed_shape *owner,
                         const double *axis) {
  vec3_copy(spare, pair->d);
  if (axis) {
    vec3_axpy(spare, -vec3_dot(spare, axis), axis);
  }
  if (vec3_normalize(spare) <= 1e-9 * pair->size) {
    mat3_column(spare, owner->rot, 0);
  }
}

static void segment_end(double end[3], const placed_shape *capsule, const double axis[3],
                        int region) {
  vec3_copy(end, capsule->pos);
  vec3_axpy(end, region * capsule->size[1], axis);
}

/* Projection for a feature with an end: B's end onto A (point or line). If B's point is interior,
 * A's end onto B's line, and *exchanged is 1. c is the projected end. */
static void end_project(core_projection *out, const segment_pair *pair, int region_a, int region_b,
                        double c[3], int *exchanged) {
  double spare[3], end[3];
  *exchanged = region_b == 0;
  if (region_b == 0) {
    spare_normal(spare, pair, pair->b, pair->w);
    vec3_scale(spare, spare, -1.0);
    segment_end(c, pair->a, pair->u, region_a);
    project_on_line(out, pair->b->pos, pair->w, c, spare, pair->size);
    return;
  }
  segment_end(c, pair->b, pair->w, region_b);
  if (region_a == 0) {
    spare_normal(spare, pair, pair->a, pair->u);
    project_on_line(out, pair->a->pos, pair->u, c, spare, pair->size);
  } else {
    spare_normal(spare, pair, pair->a, NULL);
    segment_end(end, pair->a, pair->u, region_a);
    project_on_point(out, end, c, spare, pair->size);
  }
}

static void end_contact(contact_point *out, const segment_pair *pair, int region_a, int region_b) {
  core_projection projection;
  double c[3];
  int exchanged;
  const double radius_a = pair->a->size[0], radius_b = pair->b->size[0];
  const int feature = feature_code(region_a, region_b);
  end_project(&projection, pair, region_a, region_b, c, &exchanged);
  if (exchanged) {
    round_contact(out, &projection, c, radius_b, radius_a, feature);
    contact_point_exchange(out);
  } else {
    round_contact(out, &projection, c, radius_a, radius_b, feature);
  }
}

/* Both points interior: the normal is along u x w. At very small angles the difference of the
 * points is more accurate. */
static void crossing_contact(contact_point *out, const segment_pair *pair, double s, double t) {
  const double radius_a = pair->a->size[0], radius_b = pair->b->size[0];
  double difference[3], c[3];
  core_projection projection;
  vec3_copy(c, pair->b->pos);
  vec3_axpy(c, t, pair->w);
  vec3_copy(difference, pair->d);
  vec3_axpy(difference, t, pair->w);
  vec3_axpy(difference, -s, pair->u);
  projection.gap = vec3_norm(difference);
  if (pair->sine_square < PARALLEL_SINE * PARALLEL_SINE && projection.gap > 1e-6 * pair->size) {
    vec3_scale(projection.normal, difference, 1.0 / projection.gap);
  } else {
    const double along = vec3_dot(pair->cross, pair->d);
    vec3_scale(projection.normal, pair->cross,
               (along < 0.0 ? -1.0 : 1.0) / sqrt(pair->sine_square));
    projection.gap = fabs(along) / sqrt(pair->sine_square);
  }
  round_contact(out, &projection, c, radius_a, radius_b, feature_code(0, 0));
}

/* Contacts at the two ends of the overlap along u; 0 if the capsules do not lie side by side. */
static int overlap_contacts(contact_point out[2], const segment_pair *pair) {
  const double half_a = pair->a->size[1], half_b = pair->b->size[1];
  if (pair->sine_square >= PARALLEL_SINE * PARALLEL_SINE || !(half_a > 0.0 && half_b > 0.0)) {
    return 0;
  }
  const double middle = vec3_dot(pair->d, pair->u), reach = half_b * fabs(pair->cosine);
  const double low = fmax(-half_a, middle - reach), high = fmin(half_a, middle + reach);
  if (!(high - low > SLIGHT * pair->size)) {
    return 0;
  }
  const int same_way = pair->cosine > 0.0 ? 1 : -1;
  for (int k = 0; k < 2; ++k) {
    const int side = k == 0 ? -1 : 1;
    if (side * (middle + side * reach) >= half_a) { /* A ends first */
      const double t = side * half_a * pair->cosine - vec3_dot(pair->d, pair->w);
      end_contact(out + k, pair, side, segment_region(t, half_b));
    } else {
      end_contact(out + k, pair, segment_region(middle + side * reach, half_a), side * same_way);
    }
  }
  return 2;
}

int capsule_capsule_collide(const placed_shape *a, const placed_shape *b, double margin,
                            contact_point *out) {
  segment_pair pair;
  contact_point candidate[3];
  double s, t;
  int count = 0;
  segment_pair_init(&pair, a, b);
  const double bound = margin + pair.size; /* centres farther apart have no contact */
  if (bound >= 0.0 && vec3_dot(pair.d, pair.d) > bound * bound) {
    return 0;
  }
  int candidate_count = overlap_contacts(candidate, &pair);
  contact_point *closest = candidate + candidate_count;
  segment_closest(&pair, &s, &t);
  const int region_a = segment_region(s, a->size[1]), region_b = segment_region(t, b->size[1]);
  if (region_a == 0 && region_b == 0) {
    crossing_contact(closest, &pair, s, t);
  } else {
    end_contact(closest, &pair, region_a, region_b);
  }
  ++candidate_count;
  if (candidate_count == 3 &&
      !(closest->dist < fmin(candidate[0].dist, candidate[1].dist) - WORKED_OUT * pair.size)) {
    candidate_count = 2;
  }
  for (int k = 0; k < candidate_count; ++k) {
    if (candidate[k].dist <= margin) {
      out[count++] = candidate[k];
    }
  }
  return count;
}

/* Derivative if both points are interior. With r = xB - xA = gap n, m = v + omega x (xB - pos) the
 * material velocity of B at xB = pos + lever n, and dw = omega x w, differentiate u.r = w.r = 0:
 *
 *   ds - cos dt = u.m,   cos ds - dt = w.m + dw.r = w.m + gap omega.(w x n)
 *   dt = (cos u.m - w.m - gap omega.(w x n)) / sin^2,   ds = u.m + cos dt
 *
 * From n.u = n.w = 0, dn is in the plane of u and w, dn.u = 0 and dn.w = -n.dw = -omega.(w x n):
 *
 *   dn = -omega.(w x n) (w - cos u) / sin^2
 *
 * This is finite at gap = 0. pos = 1/2 (xA + xB + (ra - rb) n), d dist = n.m = n.v. */
static void crossing_derivative(contact_point_derivative *out, const segment_pair *pair,
                                const contact_point *contact) {
  const double radius_a = pair->a->size[0], radius_b = pair->b->size[0];
  const double gap = contact->dist + radius_a + radius_b;
  const double lever = 0.5 * (gap - radius_a + radius_b), inverse = 1.0 / pair->sine_square;
  const double *n = contact->normal, *u = pair->u, *w = pair->w;
  double wxn[3];
  vec3_cross(wxn, w, n);
  for (int j = 0; j < 6; ++j) {
    double unit[3] = {0.0, 0.0, 0.0}, m[3], turn = 0.0;
    unit[j % 3] = 1.0;
    if (j < 3) {
      vec3_cross(m, unit, n);
      vec3_scale(m, m, lever);
      turn = wxn[j];
    } else {
      vec3_copy(m, unit);
    }
    const double um = vec3_dot(u, m), wm = vec3_dot(w, m);
    const double dt = inverse * (pair->cosine * um - wm - gap * turn);
    const double ds = um + pair->cosine * dt;
    out->dist[j] = j < 3 ? 0.0 : n[j - 3];
    for (int i = 0; i < 3; ++i) {
      const double dn = -turn * inverse * (w[i] - pair->cosine * u[i]);
      out->normal[6 * i + j] = dn;
      out->pos[6 * i + j] = 0.5 * (ds * u[i] + m[i] + dt * w[i] + (radius_a - radius_b) * dn);
    }
  }
}

void capsule_capsule_derivative(const placed_shape *a, const placed_shape *b,
                                const contact_point *contact, contact_point_derivative *out) {
  segment_pair pair;
  core_projection projection;
  double c[3];
  int exchanged;
  segment_pair_init(&pair, a, b);
  const int feature = (int)contact->feature;
  const int region_a = feature % 3 - 1, region_b = feature / 3 - 1;
  if (region_a == 0 && region_b == 0) {
    crossing_derivative(out, &pair, contact);
    return;
  }
  end_project(&projection, &pair, region_a, region_b, c, &exchanged);
  if (exchanged) {
    round_contact_derivative(out, &projection, b->size[0], a->size[0]);
    contact_point_derivative_exchange(out, contact->normal);
  } else {
    round_contact_derivative(out, &projection, a->size[0], b->size[0]);
  }
}

void capsule_capsule_size_derivative(const placed_shape *a, const placed_shape *b,
                                     const contact_point *contact, contact_point_derivative *out) {
  const int feature = (int)contact->feature;
  closest_size_derivative(a, b, feature % 3, feature / 3, contact, out);
}
