/* Axis-aligned boxes (world axes) around placed shapes. Floor: geometry. */
#ifndef QD_GEOMETRY_BOUNDS_H
#define QD_GEOMETRY_BOUNDS_H

#include "geometry/collide.h"

/* Half lengths of an axis-aligned box (world axes) about the shape's centre that contains it: for
 * meshes, clouds and height fields that of their own box, for other shapes the smallest one.
 * Returns 0 for planes. */
int shape_half_extents(const placed_shape *shape, double half[3]);

#endif
