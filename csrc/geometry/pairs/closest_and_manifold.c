/* Contacts of the closest points and of a face's manifold. Closest points alone would let a
 * standing box fall: they are a single point, which jumps from vertex to vertex.
 *
 * If the closest points' normal is that of a face, the manifold contains the closest points
 * (polytopes) or a point nearby (the hexagon of a cap). If it only almost is (an edge of one box
 * crosses the rim of the other's face), both are contacts. The vertex where these edges cross is
 * then the closest points again, at dist / cos along the face's normal, and is left out. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/pairs/face_manifold.h"
#include "geometry/pairs/line_manifold.h"
#include "geometry/pairs/pairs.h"
#include "geometry/projection.h"
#include "geometry/surface.h"

/* Faces inclined by more than this (some six degrees) to the normal of the closest points have no
 * manifold. */
static const double MANIFOLD_COSINE = 0.995;
/* 1 - cosine of normals that count as equal to a face's, some 1e-5 rad; dist / cos then differs
 * from dist by 5e-11. If both shapes have such a face, A owns the manifold, so that resting shapes
 * stay on one branch. */
static const double ALIGNED = 5e-11;
/* The same for caps, whose hexagons are no more accurate: some 1e-3 rad (CAP_COVERED). */
static const double CAP_ALIGNED = 5e-7;

static double known_to(const placed_shape *a, const placed_shape *b) {
  return WORKED_OUT * (shape_extent(a) + shape_extent(b)) + shape_roughness(a) + shape_roughness(b);
}

int contacts_reduce(contact_point *contacts, int count, int limit, int nearest) {
  double apart[FACE_MANIFOLD_CAPACITY];
  int kept[FACE_MANIFOLD_CAPACITY] = {0}, kept_count = 0, next = 0;
  if (count <= limit) {
    return count;
  }
  for (int i = 0; i < count; ++i) {
    apart[i] = INFINITY;
    next = contacts[i].dist < contacts[next].dist ? i : next;
  }
  for (int k = 1; k <= limit; ++k) {
    kept[next] = 1;
    int best = -1;
    for (int i = 0; i < count; ++i) {
      double difference[3];
      vec3_sub(difference, contacts[i].pos, contacts[next].pos);
      apart[i] = fmin(apart[i], vec3_dot(difference, difference));
      if (!kept[i] && (best < 0 || (k < nearest ? contacts[i].dist < contacts[best].dist
                                                : apart[i] > apart[best]))) {
        best = i;
      }
    }
    next = best;
  }
  for (int i = 0; i < count; ++i) {
    if (kept[i]) {
      contacts[kept_count++] = contacts[i];
    }
  }
  return kept_count;
}

/* Removes contacts nearer than the closest points, and the one vertex that equals the closest
 * points (their crossing, seen along the face's normal). skin: of the shape without a face here. */
static int drop_crossing(contact_point *contacts, int count, const contact_point *closest,
                         double cosine, double skin, double tolerance) {
  int crossing = -1, kept = 0;
  double least = INFINITY;
  for (int i = 0; i < count; ++i) {
    double difference[3];
    vec3_sub(difference, contacts[i].pos, closest->pos);
    const double apart = vec3_dot(difference, difference);
    const double along = (contacts[i].dist + skin) * cosine - skin;
    if (fabs(along - closest->dist) <= tolerance && apart < least) {
      least = apart;
      crossing = i;
    }
  }
  for (int i = 0; i < count; ++i) {
    if (i != crossing && contacts[i].dist >= closest->dist - tolerance) {
      contacts[kept++] = contacts[i];
    }
  }
  return kept;
}

/* The manifold at the closest points; *covered: 1 if it contains them. */
static int manifold(const placed_shape *a, const placed_shape *b, const contact_point *closest,
                    contact_point *out, int *covered) {
  double minus[3], normal[3], cosine[2] = {0.0, 0.0};
  vec3_scale(minus, closest->normal, -1.0);
  const int face[2] = {face_towards(a, closest->normal), face_towards(b, minus)};
  for (int k = 0; k < 2; ++k) {
    if (face[k] >= 0) {
      face_normal(normal, k ? b : a, face[k]);
      cosine[k] = vec3_dot(normal, k ? minus : closest->normal);
    }
  }
  const int exchanged = cosine[1] > cosine[0] + ALIGNED;
  *covered = 0;
  if (!(cosine[exchanged] > MANIFOLD_COSINE)) {
    return 0;
  }
  const placed_shape *owner = exchanged ? b : a, *other = exchanged ? a : b;
  const double known = known_to(a, b);
  double aligned = ALIGNED;
  int count = face_manifold(owner, face[exchanged], other, out);
  for (int i = 0; i < count; ++i) {
    const double coarse = face_manifold_coarseness(owner, other, out[i].feature);
    if (fabs(out[i].dist - closest->dist) <= fmax(known, coarse)) {
      *covered = 1;
      aligned = coarse > known ? CAP_ALIGNED : aligned;
    }
    if (exchanged) {
      contact_point_exchange(out + i);
      out[i].feature |= FACE_MANIFOLD_EXCHANGED;
    }
  }
  if (cosine[exchanged] < 1.0 - aligned) {
    *covered = 0;
    count = drop_crossing(out, count, closest, cosine[exchanged], face_manifold_skin(other), known);
  }
  return count;
}

/* The contacts along parallel lines that are not nearer than the closest points. */
static int lines(const placed_shape *a, const placed_shape *b, const contact_point *closest,
                 contact_point *out, int *covered) {
  const double known = known_to(a, b);
  const int found = line_manifold(a, b, closest, out);
  int kept = 0;
  *covered = 0;
  for (int i = 0; i < found; ++i) {
    if (out[i].dist >= closest->dist - known) {
      *covered |= out[i].dist <= closest->dist + known;
      out[kept++] = out[i];
    }
  }
  return kept;
}

int closest_and_manifold(const placed_shape *a, const placed_shape *b, const contact_point *closest,
                         int feature_a, int feature_b, double margin, contact_point *out) {
  contact_point candidates[FACE_MANIFOLD_CAPACITY];
  int covered, count = 0;
  if (!(closest->dist <= margin)) {
    return 0;
  }
  int found = manifold(a, b, closest, candidates, &covered);
  if (found == 0) {
    found = lines(a, b, closest, candidates, &covered);
  }
  found = contacts_reduce(candidates, found, CONTACTS_PER_PAIR_MAX - !covered, 1);
  if (!covered) {
    out[count] = *closest;
    out[count++].feature = closest_feature(feature_a, feature_b);
  }
  for (int i = 0; i < found; ++i) {
    if (candidates[i].dist <= margin) {
      out[count++] = candidates[i];
    }
  }
  return count;
}

void closest_and_manifold_derivative(const placed_shape *a, const placed_shape *b,
                                     const contact_point *contact, contact_point_derivative *out) {
  const contact_feature feature = contact->feature;
  if (feature < FACE_MANIFOLD_FEATURE) {
    closest_derivative(a, b, (int)(feature % SURFACE_FEATURE_COUNT),
                       (int)(feature / SURFACE_FEATURE_COUNT), contact, out);
  } else if (feature & FACE_MANIFOLD_EXCHANGED) {
    face_manifold_derivative(b, a, contact, out);
    contact_point_derivative_exchange(out, contact->normal);
  } else {
    face_manifold_derivative(a, b, contact, out);
  }
}

void closest_and_manifold_size_derivative(const placed_shape *a, const placed_shape *b,
                                          const contact_point *contact,
                                          contact_point_derivative *out) {
  const contact_feature feature = contact->feature;
  if (feature < FACE_MANIFOLD_FEATURE) {
    closest_size_derivative(a, b, (int)(feature % SURFACE_FEATURE_COUNT),
                            (int)(feature / SURFACE_FEATURE_COUNT), contact, out);
  } else if (feature & FACE_MANIFOLD_EXCHANGED) {
    face_manifold_size_derivative(b, a, contact, out);
    size_derivative_exchange(out);
  } else {
    face_manifold_size_derivative(a, b, contact, out);
  }
}
