/* One step of one sample, from a participant's copies of its inputs. */
#ifndef QD_RUNTIME_SAMPLE_H
#define QD_RUNTIME_SAMPLE_H

#include "runtime/participant.h"

/* Common data of all steps of a call. */
typedef struct step_job {
  const qd_model *model;
  const qd_step_options *options;
  const qd_batch_input *input;
  int with_parameters; /* of the samples' own */
  int with_derivative;
  int by_more; /* than q and u: by pullbacks */
} step_job;

step_job step_job_of(const qd_model *model, const qd_step_options *options,
                     const qd_batch_input *input);

/* Copies and checks the inputs of step t of sample i, from q and (NULL: none) v; normalises q. */
qd_status sample_read(const step_job *job, participant *p, int64_t i, int64_t t, const double *q,
                      const double *v);
/* Likewise stretches of bristles, NULL: zero. */
void sample_read_bristles(participant *p, const qd_model *model, const double *bristle);
/* The model that a sample is stepped with. */
const qd_model *sample_model(const step_job *job, participant *p, int64_t i);
/* The guess that a sample is given. */
const qd_step_start *sample_start(const step_job *job, int64_t i);
/* The step from the participant's copies; grows the workspace as needed. */
qd_status sample_step(const step_job *job, participant *p, const qd_model *model,
                      const qd_step_start *start, qd_step_result *result,
                      double *const *derivative);
/* The same onto a tape, under these options, with what qd_vjp and qd_jvp need. */
qd_status sample_record(const step_job *job, const qd_step_options *options, const participant *p,
                        const qd_model *model, const qd_step_start *start, taped_step *s);
/* Results of a failed sample: its own q and v, no motion, no forces, no derivative. */
void sample_leave_failed(const qd_model *model, const participant *p, qd_step_result *result,
                         double *const *derivative);
/* The participant remembers the failed sample of the smallest index. */
void sample_note_failure(participant *p, int64_t i, int64_t step, qd_status status,
                         const qd_step_result *result);

/* Distances of all pairs, up to a margin, at q, which goes normalised into the participant's copy;
 * grows the workspace as needed. */
qd_status sample_distances(participant *p, const qd_model *model, const double *q, double margin,
                           double *distance);
/* Number of entries of the derivative with respect to an argument. */
int derivative_size(const qd_model *model, int argument);
void numbers_fill(double *numbers, int64_t count, double value);

#endif
