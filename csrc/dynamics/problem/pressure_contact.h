/* Pairs that press by pressure fields, at one displacement of a step (formulation 8).
 *
 * Bodies move as the step's other rows see it: each one's origin along a straight line and about it
 * by a rotation vector, by the screws of the configuration that the step begins with. Pressing has
 * an energy U of where they come to lie; its gradient is the patch's wrench there, its Hessian that
 * wrench's tangent. DOFs that carry both bodies of a pair do not change it.
 *
 * Friction acts on each polygon, or on the patch as a whole, by at most mu times its force
 * (pressure_friction.h). */
#ifndef QD_DYNAMICS_PRESSURE_CONTACT_H
#define QD_DYNAMICS_PRESSURE_CONTACT_H

#include "geometry/pressure_fields/cell.h"
#include "mechanics/pairs/collision.h"
#include "mechanics/pairs/pressure_pairs.h"

/* A pair's contacts keep a step from going deeper, at once, than this share of the field's depth.
 */
#define PRESSURE_DEPTH_SHARE 0.5
/* What says where both bodies of a pair have come: pressure_energy.h. */
#define PRESSURE_NUMBERS 12
/* Corners of a polygon at most. */
#define PRESSURE_CORNERS POLYGON_MOST

/* A body of a pair: where its frame was, and where the displacement brings it. */
typedef struct pressure_body {
  int body;
  int moves; /* 1: degrees of freedom move it against the other one */
  double at[3];
  double J[9]; /* left Jacobian of its rotation vector */
  screw twist; /* of the displacement */
  body_frame moved;
} pressure_body;

/* Where friction acts: on one polygon, or on the whole patch, which resists spinning besides. */
typedef struct pressure_element {
  double pos[3], frame[9]; /* rows: normal into the second body, two tangents */
  double force;            /* N, along the normal */
  double radius;           /* N, of the disc that friction is in */
  double spin;             /* m, by which turning about the normal counts; 0: not at all */
  double give;             /* m/N, of the tangents: by how much friction lets them slide */
  double before[3];        /* m, likewise: stretch that is there already */
  double slid;             /* m, by how much it has slid at this displacement, beyond both */
  int row;                 /* of the problem: the radius, then the tangents; -1: none */
  int polygon;             /* of the patch; -1: all of it */
} pressure_element;

typedef struct soft_pair {
  int pair;
  int contact;      /* index of the contact that stands for it in islands, -1: none in range */
  int is_active;    /* 1: there is a patch */
  int first, count; /* its elements */
  pressure_body side[2];
  double length;      /* m, of the smaller thing */
  double centre[3];   /* of pressure */
  double wrench[6];   /* on the second body: force, moment about the centre */
  double tangent[36]; /* its change by a motion of the first body: of the centre, then turning */
  /* By the numbers of the bodies' displacement, the first one's before the second one's: what they
   * are, minus the energy's gradient, and its Hessian, cut to be positive; dissipation besides. */
  double numbers[PRESSURE_NUMBERS], load[PRESSURE_NUMBERS],
      hessian[PRESSURE_NUMBERS * PRESSURE_NUMBERS];
  double hold;        /* N/m, by which the program holds both bodies together (pressure_hold.h) */
  double pressed;     /* N, all pressure */
  double friction[6]; /* that of the program on the second body, about the centre at the start */
  double stretch[QD_BRISTLES]; /* as qd_step_input has it */
  double area;
} soft_pair;

/* What a program thought of a pair: the load at its solution. */
typedef struct pressure_thought {
  double load[PRESSURE_NUMBERS], pressed;
  int presses; /* 1: it has not changed its sense */
} pressure_thought;

typedef struct pressure_contact {
  int count; /* pairs with a contact in range */
  int element_count, element_needed, element_capacity;
  int is_full;                /* 1: the last patches had more polygons than there is room for */
  soft_pair *pair;            /* (soft pairs of the model) */
  pressure_element *element;  /* (capacity) */
  qd_patch_polygon *polygon;  /* (capacity) scratch, with the next two */
  double *share;              /* of a polygon's pressure that dissipation leaves or adds */
  double *vertex;             /* (PRESSURE_CORNERS capacity, 3) for derivatives */
  double *delta;              /* (nv) the displacement */
  double *step, *from, *jump; /* (nv) the last program's step, where it began; scratch */
  pressure_thought *thought;  /* (soft pairs) scratch */
  int programs, converged, bounded;
  double led_back; /* how far the last program's step went, if its jump led back; else 0 */
  int holds;       /* programs whose answer was refused */
  int refined;     /* 1: the program at hand is one more, from where they converged */
} pressure_contact;

void pressure_contact_lay_out(pressure_contact *s, const qd_model *model, int element_capacity,
                              arena *a);
/* Which contacts of the list stand for soft pairs; the displacement is zero. bristle: of the step's
 * input. */
void pressure_contact_begin(pressure_contact *s, const qd_model *model, const collision *c,
                            const double *bristle);
/* Patches and elements at the displacement. QD_OUT_OF_CAPACITY: element_needed says for how many.
 */
qd_status pressure_contact_evaluate(pressure_contact *s, const qd_model *model, const kinematics *k,
                                    const qd_step_options *o);
/* Wrenches and loads alone: elements and Hessians stay what they are. */
qd_status pressure_contact_wrenches(pressure_contact *s, const qd_model *model, const kinematics *k,
                                    const qd_step_options *o);

/* One pair at the displacement as evaluate has it, but for its Hessian, which stays, with its
 * polygons and, if there is room for them, their corners in the scratch: returns how many, 0
 * without a patch. */
int pressure_pair_look(pressure_contact *s, soft_pair *pair, const qd_model *model,
                       const kinematics *k, const qd_step_options *o, int with_corners);
/* Share of the pressure that a relative speed takes away, s/m; 0 without dissipation. */
double pressure_pair_dissipation(const qd_model *model, const qd_step_options *o, int pair);
/* Axes whose first is a normal. */
void pressure_frame(double frame[9], const qd_model *model, const double normal[3]);

/* Twists of both bodies by a displacement (nv), of the DOFs that move them against each other. */
void pressure_pair_twists(screw twist[2], const qd_model *model, const kinematics *k,
                          const qd_contact *contact, const double *delta);
static inline int pressure_element_rows(const pressure_element *at) {
  return at->spin > 0.0 ? 4 : 3;
}

/* gap that a pair's contact keeps */
double pressure_guard_gap(const qd_model *model, const qd_contact *contact);

#endif
