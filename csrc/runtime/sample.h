/* One step of one sample, from the participant's copies of its inputs. */
#ifndef QD_RUNTIME_SAMPLE_H
#define QD_RUNTIME_SAMPLE_H

#include "runtime/participant.h"

/* Data shared by all steps of a call. */
typedef struct step_job {
  const qd_model *model;
  const qd_step_options *options;
  const qd_batch_input *input;
  int with_parameters; /* 1: samples have parameters of their own */
  int with_derivative;
  int by_more; /* 1: derivatives with respect to more than q and u are wanted; they come from
                  pullbacks */
} step_job;

step_job step_job_of(const qd_model *model, const qd_step_options *options,
                     const qd_batch_input *input);

/* Copies and checks the inputs of step t of sample i: q (normalised in the copy), v (may be NULL)
 * and the rest. */
qd_status sample_read(const step_job *job, participant *p, int64_t i, int64_t t, const double *q,
                      const double *v);
/* Copies the stretches of bristles; NULL: zero. */
void sample_read_bristles(participant *p, const qd_model *model, const double *bristle);
/* The model for sample i: with the sample's own parameters if it has any. */
const qd_model *sample_model(const step_job *job, participant *p, int64_t i);
/* The warm start given for sample i, or NULL. */
const qd_step_start *sample_start(const step_job *job, int64_t i);
/* Steps from the participant's copies. Grows the workspace if there are too many contacts. */
qd_status sample_step(const step_job *job, participant *p, const qd_model *model,
                      const qd_step_start *start, qd_step_result *result,
                      double *const *derivative);
/* Steps and records on a tape, under these options, with the data for qd_vjp and qd_jvp. */
qd_status sample_record(const step_job *job, const qd_step_options *options, const participant *p,
                        const qd_model *model, const qd_step_start *start, taped_step *s);
/* Fills the results of a failed sample: q and v unchanged, no motion, no forces, no derivative. */
void sample_leave_failed(const qd_model *model, const participant *p, qd_step_result *result,
                         double *const *derivative);
/* Records a failed sample if its index is the smallest so far. */
void sample_note_failure(participant *p, int64_t i, int64_t step, qd_status status,
                         const qd_step_result *result);

/* Distances of all pairs at q, up to a margin. Puts the normalised q into the participant's copy.
 * Grows the workspace if there are too many contacts. */
qd_status sample_distances(participant *p, const qd_model *model, const double *q, double margin,
                           double *distance);
/* Number of entries of the derivative with respect to an argument. */
int derivative_size(const qd_model *model, int argument);
void numbers_fill(double *numbers, int64_t count, double value);

#endif
