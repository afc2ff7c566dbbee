/* The pair functions behind the table in collide.c: one collide and one derivative per pair of
 * shape types, each in the order that makes its formulas short. Floor: geometry. */
#ifndef QD_GEOMETRY_PAIRS_H
#define QD_GEOMETRY_PAIRS_H

#include "geometry/collide.h"

typedef int (*pair_collide)(const placed_shape *a, const placed_shape *b, double margin,
                            contact_point *out);
typedef void (*pair_derivative)(const placed_shape *a, const placed_shape *b,
                                const contact_point *contact, contact_point_derivative *out);

/* sphere_pairs.c */
int plane_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                         contact_point *out);
void plane_sphere_derivative(const placed_shape *a, const placed_shape *b,
                             const contact_point *contact, contact_point_derivative *out);
int sphere_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                          contact_point *out);
void sphere_sphere_derivative(const placed_shape *a, const placed_shape *b,
                              const contact_point *contact, contact_point_derivative *out);
int capsule_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                           contact_point *out);
void capsule_sphere_derivative(const placed_shape *a, const placed_shape *b,
                               const contact_point *contact, contact_point_derivative *out);
int box_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                       contact_point *out);
void box_sphere_derivative(const placed_shape *a, const placed_shape *b,
                           const contact_point *contact, contact_point_derivative *out);

/* plane_pairs.c */
int plane_capsule_collide(const placed_shape *a, const placed_shape *b, double margin,
                          contact_point *out);
void plane_capsule_derivative(const placed_shape *a, const placed_shape *b,
                              const contact_point *contact, contact_point_derivative *out);
int plane_box_collide(const placed_shape *a, const placed_shape *b, double margin,
                      contact_point *out);
void plane_box_derivative(const placed_shape *a, const placed_shape *b,
                          const contact_point *contact, contact_point_derivative *out);

/* capsule_capsule.c */
int capsule_capsule_collide(const placed_shape *a, const placed_shape *b, double margin,
                            contact_point *out);
void capsule_capsule_derivative(const placed_shape *a, const placed_shape *b,
                                const contact_point *contact, contact_point_derivative *out);

/* block_pairs.c: boxes and capsules, at least one box */
int block_block_collide(const placed_shape *a, const placed_shape *b, double margin,
                        contact_point *out);

/* convex_pairs.c: capsules, boxes, cylinders, ellipsoids and meshes */
int convex_convex_collide(const placed_shape *a, const placed_shape *b, double margin,
                          contact_point *out);

/* curved_pairs.c */
int plane_cylinder_collide(const placed_shape *a, const placed_shape *b, double margin,
                           contact_point *out);
int plane_ellipsoid_collide(const placed_shape *a, const placed_shape *b, double margin,
                            contact_point *out);
int cylinder_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                            contact_point *out);
int ellipsoid_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                             contact_point *out);

/* mesh_pairs.c */
int plane_mesh_collide(const placed_shape *a, const placed_shape *b, double margin,
                       contact_point *out);
int mesh_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                        contact_point *out);

/* cloud_pairs.c */
int convex_cloud_collide(const placed_shape *a, const placed_shape *b, double margin,
                         contact_point *out);
void convex_cloud_derivative(const placed_shape *a, const placed_shape *b,
                             const contact_point *contact, contact_point_derivative *out);
int cloud_cloud_collide(const placed_shape *a, const placed_shape *b, double margin,
                        contact_point *out);
void cloud_cloud_derivative(const placed_shape *a, const placed_shape *b,
                            const contact_point *contact, contact_point_derivative *out);

/* size_derivative.c: the derivative of any pair of the table by sizes, (3) of A, (3) of B. */
void pair_size_derivative(const placed_shape *a, const placed_shape *b,
                          const contact_point *contact, contact_point_derivative *out);
/* Of two closest points with these features of surface.h. */
void closest_size_derivative(const placed_shape *a, const placed_shape *b, int feature_a,
                             int feature_b, const contact_point *contact,
                             contact_point_derivative *out);
/* Seen from the other side: A and B exchanged. */
void size_derivative_exchange(contact_point_derivative *derivative);
/* cloud_pairs.c: of a cloud as B. */
void cloud_size_derivative(const placed_shape *a, const placed_shape *b,
                           const contact_point *contact, contact_point_derivative *out);

#endif
