/* Rigid point clouds: points fixed to a frame, each a ball of the same radius (possibly none),
 * found through a tree of discs. Immutable, shared by every geometry that shows the cloud. Floor:
 * geometry. */
#ifndef QD_GEOMETRY_CLOUD_H
#define QD_GEOMETRY_CLOUD_H

#include "geometry/collide.h"
#include "qdsim.h"

/* Contains points x with |normal.(x - center)| <= thickness within radius of the axis through
 * center along normal. Nodes come before their children: the first child is the next node. */
typedef struct cloud_node {
  double center[3], normal[3];
  double radius, thickness;
  int begin, end; /* its points */
  int second;     /* the second child, 0: a leaf, whose points are tested one by one */
  int rank;       /* smallest of its points */
} cloud_node;

struct point_cloud {
  double center[3];  /* centre of the bounding box of the points, given frame: origin of the own
                        frame */
  double half[3];    /* edges of that box */
  double extent;     /* largest distance of a point from the centre */
  int point_count;   /* at least 1 */
  int contact_count; /* k: contacts with one other geometry */
  int node_count;
  double *point;    /* (point_count, 3) own frame, in the order of the tree */
  int *index;       /* (point_count) of each in the given order */
  int *place;       /* (point_count) the inverse permutation */
  int *rank;        /* (point_count) order of points at equal distances */
  cloud_node *node; /* (node_count) */
};

/* A copy, with its tree. NULL if memory is exhausted. Points are finite, at least one. */
point_cloud *point_cloud_create(const double *points, int point_count, int contact_count);
void point_cloud_destroy(point_cloud *cloud);

#endif
