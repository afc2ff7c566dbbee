/* Boxes along the world's axes around placed shapes. Floor: geometry. */
#ifndef QD_GEOMETRY_BOUNDS_H
#define QD_GEOMETRY_BOUNDS_H

#include "geometry/collide.h"

/* Half the edges of a box along the world's axes, about the shape's centre, that holds it: of
 * meshes, clouds and height fields that of their own box, of other shapes the smallest. Returns 0
 * for planes. */
int shape_half_extents(const placed_shape *shape, double half[3]);

#endif
