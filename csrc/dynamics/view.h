/* Observations of a policy that moves a body to a goal: numbers of one configuration. */
#ifndef QD_DYNAMICS_VIEW_H
#define QD_DYNAMICS_VIEW_H

#include "qdsim.h"

/* One configuration and its goal. */
typedef struct view_sample {
  const double *q;    /* (nq) normalised */
  const double *goal; /* (nq) */
  const double *pose; /* (12) the body there: place and rotation matrix */
  const double *more; /* (more_count) */
} view_sample;

/* displacement (nv): scratch. As in qd_observe_batch. */
void view_compute(const qd_model *model, qd_workspace *workspace, const qd_view *view,
                  const view_sample *sample, double *displacement, double *observation,
                  double measure[QD_VIEW_MEASURES]);

#endif
