/* Pairs of bodies with pressure fields, at one displacement of a step (formulation 8).
 *
 * Bodies move as in the step's other rows: the origin of each along a straight line, and about it
 * by a rotation vector, with the screws at the step's initial configuration. The pressure has an
 * energy U of the bodies' poses. Its gradient is the patch's wrench, its Hessian the tangent of
 * that wrench. DOFs that move both bodies of a pair alike do not change U.
 *
 * Friction acts on each polygon, or on the whole patch, and is at most mu times its normal force
 * (pressure_friction.h). */
#ifndef QD_DYNAMICS_PRESSURE_CONTACT_H
#define QD_DYNAMICS_PRESSURE_CONTACT_H

#include "geometry/pressure_fields/cell.h"
#include "mechanics/pairs/collision.h"
#include "mechanics/pairs/pressure_pairs.h"

/* A pair's contacts limit the increase of depth in one program to this share of the field's depth.
 */
#define PRESSURE_DEPTH_SHARE 0.5
/* Numbers that describe the displacements of a pair's two bodies (pressure_energy.h). */
#define PRESSURE_NUMBERS 12
/* Largest number of corners of a polygon. */
#define PRESSURE_CORNERS POLYGON_MOST

/* A body of a pair: its frame at the start, and after the displacement. */
typedef struct pressure_body {
  int body;
  int moves; /* 1: some DOF moves it relative to the other body */
  double at[3];
  double J[9]; /* left Jacobian of its rotation vector */
  screw twist; /* of the displacement */
  body_frame moved;
} pressure_body;

/* Where friction acts: on one polygon, or on the whole patch, which also resists spin. */
typedef struct pressure_element {
  double pos[3], frame[9]; /* rows: normal into the second body, two tangents */
  double force;            /* N, along the normal */
  double radius;           /* N, of the friction disc */
  double spin;             /* m, arm of the rotation about the normal; 0: not resisted */
  double give; /* m/N, compliance of the tangents: friction allows them to slide by this much */
  double before[3]; /* m, along the same rows: initial stretch */
  double slid;      /* m, how much further than these two it has slid at this displacement */
  int row;          /* first row in the problem: the radius, then the tangents; -1: none */
  int polygon;      /* of the patch; -1: the whole patch */
} pressure_element;

typedef struct soft_pair {
  int pair;
  int contact;      /* index of the contact that represents it in islands, -1: not in range */
  int is_active;    /* 1: there is a patch */
  int first, count; /* its elements */
  pressure_body side[2];
  double length;      /* m, size of the smaller body */
  double centre[3];   /* of pressure */
  double wrench[6];   /* on the second body: force, moment about the centre */
  double tangent[36]; /* change of the wrench with a motion of the first body: of the centre, then
                         rotation */
  /* In the numbers of the bodies' displacements, first body first: the numbers, minus the energy's
   *    gradient, and its Hessian, projected to be positive semidefinite; with dissipation. */
  double numbers[PRESSURE_NUMBERS], load[PRESSURE_NUMBERS],
      hessian[PRESSURE_NUMBERS * PRESSURE_NUMBERS];
  double hold; /* N/m, stiffness that holds both bodies together in the program (pressure_hold.h) */
  double pressed;     /* N, sum of the pressure */
  double friction[6]; /* friction of the program on the second body, about the initial centre */
  double stretch[QD_BRISTLES]; /* as qd_step_input has it */
  double area;
} soft_pair;

/* A program's prediction for a pair: the load at its solution. */
typedef struct pressure_thought {
  double load[PRESSURE_NUMBERS], pressed;
  int presses; /* 1: the predicted force does not reverse */
} pressure_thought;

typedef struct pressure_contact {
  const qd_model *model; /* with the next two, of the step (workspace_begin) */
  const qd_step_options *options;
  const kinematics *kinematics;
  int count; /* pairs with a contact in range */
  int element_count, element_needed, element_capacity;
  int is_full;                /* 1: the last patches had more polygons than the capacity */
  soft_pair *pair;            /* (soft pairs of the model) */
  pressure_element *element;  /* (capacity) */
  qd_patch_polygon *polygon;  /* (capacity) scratch, with the next two */
  double *share;              /* factor of a polygon's pressure, by dissipation and lift */
  double *vertex;             /* (PRESSURE_CORNERS capacity, 3) for derivatives */
  double *delta;              /* (nv) the displacement */
  double *step, *from, *jump; /* (nv) the last program's step, where it began; scratch */
  pressure_thought *thought;  /* (soft pairs) scratch */
  int programs, converged, bounded;
  double led_back; /* length of the last program's step, if its extrapolation led back; else 0 */
  int holds;       /* number of rejected programs */
  int refined;     /* 1: this program is the additional one, at the converged solution */
} pressure_contact;

void pressure_contact_lay_out(pressure_contact *s, const qd_model *model, int element_capacity,
                              arena *a);
/* Finds the contacts of the list that represent soft pairs; sets the displacement to zero. bristle:
 * as in the step's input. */
void pressure_contact_begin(pressure_contact *s, const qd_model *model, const collision *c,
                            const double *bristle);
/* Computes patches and elements at the displacement. QD_OUT_OF_CAPACITY: element_needed is the
 * number required. */
qd_status pressure_contact_evaluate(pressure_contact *s);
/* Computes only wrenches and loads; elements and Hessians keep their values. */
qd_status pressure_contact_wrenches(pressure_contact *s);

/* Computes one pair at the displacement, without its Hessian, and its polygons and (if wanted)
 * their corners in the scratch arrays. Returns the number of polygons, 0 without a patch. */
int pressure_pair_look(pressure_contact *s, soft_pair *pair, int with_corners);
/* Share of the pressure by which a relative speed reduces it, s/m; 0 without dissipation. */
double pressure_pair_dissipation(const qd_model *model, const qd_step_options *o, int pair);
/* Three axes, of which the first is the normal. */
void pressure_frame(double frame[9], const qd_model *model, const double normal[3]);

/* Twists of both bodies for a displacement (nv) of the DOFs that move them relative to each other.
 */
void pressure_pair_twists(screw twist[2], const qd_model *model, const kinematics *k,
                          const qd_contact *contact, const double *delta);
static inline int pressure_element_rows(const pressure_element *at) {
  return at->spin > 0.0 ? 4 : 3;
}

/* The gap of the contact that limits a pair's depth. */
double pressure_guard_gap(const qd_model *model, const qd_contact *contact);

#endif
