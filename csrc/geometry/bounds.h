/* Boxes along the world's axes around placed shapes. Floor: geometry. */
#ifndef QD_GEOMETRY_BOUNDS_H
#define QD_GEOMETRY_BOUNDS_H

#include "geometry/collide.h"

/* The smallest box along the world's axes about the shape's centre that holds it: half its edges.
 * Returns 0 for shapes without one (planes) or without a closed form (meshes). */
int shape_half_extents(const placed_shape *shape, double half[3]);

#endif
