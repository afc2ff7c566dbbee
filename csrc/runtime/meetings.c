/* How far many configurations can move along straight lines before pairs of geometries meet. */
#include <math.h>

#include "runtime/run.h"
#include "runtime/sample.h"

enum { MOST_STRIDES = 10000 };

typedef struct meeting_job {
  const double *q, *rate; /* (sample_count, nq) */
  const double *way;      /* (sample_count, 3): stride, largest travel, tolerance */
  const double *gap;      /* (sample_count, pair_count) distance at which a pair counts as met */
  double *travel;         /* (sample_count) */
  double *distance;       /* (sample_count, pair_count) */
  int32_t *status;
} meeting_job;

/* One sample, and the results of its latest test. */
typedef struct line {
  const qd_model *model;
  participant *p;
  const double *q, *rate, *gap;
  double margin;
  double *distance;
  qd_status status;
} line;

/* 1 if a pair is nearer than its gap at q + s rate, or if the test failed (status is not QD_OK). */
static int meets(line *l, double s) {
  double *q = l->p->q;
  for (int i = 0; i < l->model->nq; ++i) {
    q[i] = l->q[i] + s * l->rate[i];
  }
  l->status = sample_distances(l->p, l->model, q, l->margin, l->distance);
  int near = l->status != QD_OK;
  for (int pair = 0; !near && pair < l->model->pair.count; ++pair) {
    near = l->distance[pair] < l->gap[pair];
  }
  return near;
}

/* Bisects between a free s and one in contact; ends with the distances at the latter. */
static double halved(line *l, double clear, double met, double tolerance) {
  int there = 1;
  while (l->status == QD_OK && met - clear > tolerance) {
    const double middle = clear + 0.5 * (met - clear);
    if (middle <= clear || middle >= met) {
      break; /* no number in between */
    }
    there = meets(l, middle);
    *(there ? &met : &clear) = middle;
  }
  if (!there) {
    meets(l, met);
  }
  return clear;
}

static double travelled(line *l, double stride, double end, double tolerance) {
  double clear = 0.0;
  for (int k = 0; k < MOST_STRIDES; ++k) {
    const double next = fmin(clear + stride, end);
    if (meets(l, next)) {
      return halved(l, clear, next, tolerance);
    }
    clear = next;
    if (clear >= end) {
      break;
    }
  }
  return clear;
}

static void meeting_one(const run *r, int k, int64_t i) {
  const meeting_job *job = r->job;
  const qd_model *model = r->batch->model;
  const double *way = job->way + 3 * i;
  line l = {.model = model,
            .p = r->batch->participants[k],
            .q = job->q + i * model->nq,
            .rate = job->rate + i * model->nq,
            .gap = job->gap + i * model->pair.count,
            .distance = job->distance + i * model->pair.count};
  for (int pair = 0; pair < model->pair.count; ++pair) {
    l.margin = fmax(l.margin, l.gap[pair]);
  }
  job->travel[i] = travelled(&l, way[0], way[1], way[2]);
  if (l.status != QD_OK) {
    job->travel[i] = NAN;
    numbers_fill(l.distance, model->pair.count, NAN);
  }
  job->status[i] = (int32_t)l.status;
}

qd_status qd_meetings_batch(qd_batch *batch, int64_t sample_count, const double *q,
                            const double *rate, const double *way, const double *gap,
                            double *travel, double *distance, int32_t *status) {
  const meeting_job job = {q, rate, way, gap, travel, distance, status};
  run r = {.batch = batch, .sample_count = sample_count, .job = &job, .sample = meeting_one};
  const qd_status ready = run_prepare(&r, 1);
  return ready == QD_OK ? run_all(&r, NULL, 1) : ready;
}
