/* Rigid point clouds: points fixed to a frame, each a ball of the same radius, which may be zero. A
 * tree of discs finds the nearest ones. Immutable, shared by all geometries with the same cloud. */
#ifndef QD_GEOMETRY_CLOUD_H
#define QD_GEOMETRY_CLOUD_H

#include "geometry/collide.h"
#include "qdsim.h"

/* A disc. Its points x satisfy |normal.(x - center)| <= thickness and lie within `radius` of the
 * axis through center along normal. Nodes precede their children; the first child is the next
 * node. */
typedef struct cloud_node {
  double center[3], normal[3];
  double radius, thickness;
  int begin, end; /* its points */
  int second;     /* index of the second child; 0: a leaf, whose points are tested one by one */
  int rank;       /* smallest rank of its points */
} cloud_node;

struct point_cloud {
  double center[3]; /* centre of the points' bounding box, in the given frame: origin of the cloud's
                       frame */
  double half[3];   /* half lengths of that box */
  double extent;    /* largest distance of a point from the centre */
  int point_count;  /* at least 1 */
  int contact_count; /* largest number of contacts with one other geometry */
  int node_count;
  double *point;    /* (point_count, 3) in the cloud's frame, in the order of the tree */
  int *index;       /* (point_count) given index of each point */
  int *place;       /* (point_count) the inverse permutation */
  int *rank;        /* (point_count) order among points at equal distances */
  cloud_node *node; /* (node_count) */
};

/* Copies the points (finite, at least one) and builds the tree. NULL if memory is exhausted. */
point_cloud *point_cloud_create(const double *points, int point_count, int contact_count);
void point_cloud_destroy(point_cloud *cloud);

#endif
