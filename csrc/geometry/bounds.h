/* Axis-aligned bounding boxes of placed shapes, in world axes. */
#ifndef QD_GEOMETRY_BOUNDS_H
#define QD_GEOMETRY_BOUNDS_H

#include "geometry/collide.h"

/* Half lengths of a box with world axes about the shape's centre that contains the shape. Meshes,
 * clouds and height fields are bounded through their own box; for other shapes the result is the
 * smallest such box. Returns 0 for planes, which have none. */
int shape_half_extents(const placed_shape *shape, double half[3]);

#endif
