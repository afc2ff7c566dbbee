/* Contacts of two shapes that lie side by side along straight lines: capsules, cylinders on their
 * sides, edges of boxes. */
#ifndef QD_GEOMETRY_LINE_MANIFOLD_H
#define QD_GEOMETRY_LINE_MANIFOLD_H

#include "geometry/collide.h"

/* Two lines lie side by side if the sine of the angle between them, and the cosine of the angles to
 * the contact normal, are below this (half a degree). */
#define PARALLEL_SINE 1e-2

/* Contacts at both ends of the overlap. Each is the end of one line against the other line, with
 * features as of closest points. Returns 2, or 0 if the shapes have no lines here, or if the lines
 * are not parallel (to about half a degree) or do not overlap. */
int line_manifold(const placed_shape *a, const placed_shape *b, const contact_point *closest,
                  contact_point out[2]);

#endif
