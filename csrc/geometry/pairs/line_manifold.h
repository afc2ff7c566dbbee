/* Contacts of two shapes that lie side by side along straight lines: capsules, cylinders on their
 * sides, edges of boxes. Floor: geometry. */
#ifndef QD_GEOMETRY_LINE_MANIFOLD_H
#define QD_GEOMETRY_LINE_MANIFOLD_H

#include "geometry/collide.h"

/* Lines closer to parallel than this (half a degree), and as close to normal to the contact's
 * normal, lie side by side. */
#define PARALLEL_SINE 1e-2

/* Contacts at both ends of the overlap, each the end of one line against the other line, features
 * as of closest points: 2, or 0 where the shapes have no lines here, or these are not parallel (to
 * about half a degree), or do not overlap. */
int line_manifold(const placed_shape *a, const placed_shape *b, const contact_point *closest,
                  contact_point out[2]);

#endif
