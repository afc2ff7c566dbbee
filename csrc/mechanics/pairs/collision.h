/* Contacts with contact frames of the candidate pairs in range, and their derivatives with respect
 * to the configuration. */
#ifndef QD_MECHANICS_COLLISION_H
#define QD_MECHANICS_COLLISION_H

#include "geometry/collide.h"
#include "mechanics/kinematics.h"
#include "mechanics/pairs/broad_phase.h"

typedef struct collision {
  placed_shape *shape; /* (geom_count) */
  placed_shape *next;  /* (geom_count) the shapes at another configuration, see missed_pairs.h */
  double *reach, *travel, *joint_reach; /* scratch of missed_pairs.h */
  unsigned char *counts;                /* (pair_count) 1: its contacts are in the list */
  int left_out;                         /* number of pairs whose contacts are not in the list */
  int by_edges;        /* 1: contacts with a friction pyramid in MuJoCo get MuJoCo's tangents */
  qd_contact *contact; /* (capacity) */
  contact_feature *feature; /* (capacity) the smooth branch of each contact, for its derivative */
  int capacity;
  int count;
  broad_phase broad;
} collision;

void collision_lay_out(collision *c, const qd_model *model, int capacity, arena *a);

/* Fills contacts with dist <= max(margin, the pair's margin), with zero forces. QD_OUT_OF_CAPACITY
 * if they do not fit: count is then the required capacity. */
qd_status collision_compute(const qd_model *model, const kinematics *k, double margin,
                            collision *c);

/* Places all shapes by the poses of their bodies. */
void collision_place_shapes(placed_shape *shapes, const qd_model *model, const kinematics *k);

/* 1 if bounding spheres and half spaces prove that two shapes are farther apart than `margin`. */
int collision_out_of_range(const collision *c, const qd_model *model, int a, int b, double margin);

/* Appends all contacts of a pair within range, up to the capacity. `count` increases by all. */
void collision_add_pair(collision *c, const qd_model *model, int pair, double range);

/* Appends one contact of a pair that already has contacts in the list. */
void collision_add_contact(collision *c, const qd_model *model, int pair,
                           const contact_point *contact);

/* Moves the contacts with indices count to end - 1 to index `at`, over removed ones. */
void collision_remove(collision *c, int at, int end);

/* The axis that determines tangent 1: t1 = axis x n / |.|. The normal of a planar model, so that t1
 * lies in its plane; otherwise the world axis least aligned with n, the lowest index on a tie. */
void contact_tangent_axis(double axis[3], const qd_model *model, const double n[3]);
/* The axis that determines tangent 1 of a contact, and the body that it moves with: 0 A, 1 B, -1
 * neither. */
typedef struct tangent_axis {
  double axis[3];
  int side;
} tangent_axis;

/* MuJoCo's axis, up to order and sign of the tangents: that of its collider, i.e. the axis of a
 * capsule on a plane, otherwise world y, or z if y is nearly along the normal. */
void mujoco_tangent_axis(tangent_axis *out, const collision *c, const qd_model *model,
                         const qd_contact *contact);
/* The axis used for a contact in the list: MuJoCo's if by_edges asks for it, or our own. */
void contact_frame_axis(tangent_axis *out, const collision *c, const qd_model *model,
                        const qd_contact *contact);

/* Derivative of a contact with respect to one DOF: midpoint, distance and the axes of the frame. */
typedef struct contact_motion {
  double pos[3];
  double dist;
  double frame[9]; /* rows: d normal, d tangent 1, d tangent 2 */
} contact_motion;

/* The derivative of the pair at a contact; compute it once per contact, */
void contact_derivative_compute(contact_point_derivative *out, const collision *c, int index);
/* The same with respect to sizes: (3) of A, (3) of B. */
void contact_size_derivative_compute(contact_point_derivative *out, const collision *c, int index);
/* then the contact's motion for a DOF that moves body A with twist a and body B with twist b. */
void contact_motion_compute(contact_motion *out, const collision *c, const qd_model *model,
                            const qd_contact *contact, const contact_point_derivative *d,
                            const screw *a, const screw *b);

/* The transpose. In: cotangents of midpoint, distance and axes. Out: wrenches about the world
 * origin whose power with the twists of A and B is the change, and the cotangent of sizes, (3) of A
 * then (3) of B. sizes NULL: not wanted; then by_size is NULL too. */
void contact_motion_pull(wrench *on_a, wrench *on_b, double *by_size, const collision *c,
                         const qd_model *model, const qd_contact *contact,
                         const contact_point_derivative *d, const contact_point_derivative *sizes,
                         const contact_motion *cotangent);
/* The contact's motion if the sizes change by `size` (6) and the bodies are at rest. */
void contact_size_motion(contact_motion *out, const collision *c, const qd_model *model,
                         const qd_contact *contact, const contact_point_derivative *sizes,
                         const double *size);

#endif
