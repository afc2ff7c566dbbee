/* The half extent along a world axis e is the support function of the shape along e. */
#include "geometry/bounds.h"

#include <math.h>
#include <stddef.h>

#include "base/vec3.h"
#include "geometry/clouds/cloud.h"
#include "geometry/height_fields/height_field.h"
#include "qdsim.h"

/* Half extent of a disc perpendicular to the axis: radius times the sine of the angle between axis
 * and e. */
static double disc_half_extent(double radius, double axis_component) {
  return radius * sqrt(fmax(1.0 - axis_component * axis_component, 0.0));
}

int shape_half_extents(const placed_shape *shape, double half[3]) {
  const double *size = shape->size;
  for (int i = 0; i < 3; ++i) {
    const double *R = shape->rot + 3 * i;
    switch (shape->type) {
    case QD_SPHERE:
      half[i] = size[0];
      break;
    case QD_CAPSULE:
      half[i] = size[0] + size[1] * fabs(R[2]);
      break;
    case QD_BOX:
      half[i] = size[0] * fabs(R[0]) + size[1] * fabs(R[1]) + size[2] * fabs(R[2]);
      break;
    case QD_CYLINDER:
      half[i] = disc_half_extent(size[0], R[2]) + size[1] * fabs(R[2]);
      break;
    case QD_ELLIPSOID: {
      const double scaled[3] = {size[0] * R[0], size[1] * R[1], size[2] * R[2]};
      half[i] = vec3_norm(scaled);
      break;
    }
    case QD_MESH: /* the box is not symmetric about the centroid */
      half[i] = 0.0;
      for (int k = 0; k < 3 && shape->mesh != NULL; ++k) {
        half[i] += fmax(-shape->mesh->lower[k], shape->mesh->upper[k]) * fabs(R[k]);
      }
      break;
    case QD_CLOUD: {
      const double *edge = shape->cloud->half;
      half[i] = edge[0] * fabs(R[0]) + edge[1] * fabs(R[1]) + edge[2] * fabs(R[2]) + size[0];
      break;
    }
    case QD_HFIELD: { /* about the frame's origin */
      const height_field *field = shape->heights;
      half[i] = field->half[0] * fabs(R[0]) + field->half[1] * fabs(R[1]) +
                fmax(fabs(field->highest), fabs(field->bottom)) * fabs(R[2]);
      break;
    }
    default:
      return 0;
    }
  }
  return 1;
}
