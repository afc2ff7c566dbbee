/* Derivatives of a step along directions and back from cotangents: one solve with the factor that
 * qd_differentiate keeps for four of them, and no matrix A or B. */
#include <math.h>
#include <string.h>

#include "dynamics/differential.h"
#include "dynamics/step.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"
#include "mechanics/retraction.h"
#include "numerics/conic/conic.h"

/* ---------------------------------------------------------------- arguments */

const char *qd_argument_name(int argument) {
  static const char *const names[] = {"q", "u", "tau", "wrench"};
  return argument < QD_BY_PARAMETER ? names[argument]
                                    : qd_parameter_name((qd_parameter)(argument - QD_BY_PARAMETER));
}

int qd_argument_size(const qd_model *model, int argument) {
  const int sizes[] = {model->nv, model->nu, model->nv, APPLIED_WRENCH * model->body_count};
  return argument < QD_BY_PARAMETER
             ? sizes[argument]
             : qd_parameter_size(model, (qd_parameter)(argument - QD_BY_PARAMETER));
}

/* ---------------------------------------------------------------- shared pieces */

static void lay_out_field(twist_field *f, const qd_model *model, arena *a) {
  f->body = arena_take(a, (size_t)model->body_count * sizeof(screw));
  f->unmoved = arena_take(a, (size_t)model->nv * sizeof(screw));
}

void differential_lay_out(differential *d, const qd_model *model, int contact_capacity, arena *a) {
  const size_t nb = (size_t)model->body_count, nv = (size_t)model->nv;
  const size_t contacts = (size_t)contact_capacity;
  d->counts = arena_ints(a, contacts);
  d->by_pose = arena_take(a, contacts * sizeof *d->by_pose);
  d->by_size = arena_take(a, contacts * sizeof *d->by_size);
  double **numbers[] = {&d->mass_scale, &d->falls, &d->masked, &d->z, &d->by_delta};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
    *numbers[i] = arena_doubles(a, nv);
  }
  twist_field *fields[] = {&d->delta, &d->mass_delta, &d->by_z, &d->mass_z, &d->gravity_z};
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) {
    lay_out_field(fields[i], model, a);
  }
  wrench **wrenches[] = {&d->forces, &d->momentum,   &d->weight, &d->pose,
                         &d->twist,  &d->momentum_z, &d->scratch};
  for (size_t i = 0; i < sizeof wrenches / sizeof wrenches[0]; ++i) {
    *wrenches[i] = arena_take(a, nb * sizeof(wrench));
  }
  d->body_motion = arena_take(a, nb * sizeof(screw));
  d->d_delta = arena_take(a, nb * sizeof(screw));
  d->d_mass_delta = arena_take(a, nb * sizeof(screw));
  d->axis_motion = arena_take(a, nv * sizeof(screw));
  d->four_r = arena_doubles(a, DIRECTIONS * nv);
  d->four_x = arena_doubles(a, DIRECTIONS * nv);
  d->four_e = arena_doubles(a, DIRECTIONS * (size_t)model->constraint_row_count);
}

void twist_field_compute(twist_field *out, const qd_model *model, const kinematics *k,
                         const double *vector) {
  memset(out->body, 0, sizeof(screw));
  for (int b = 1; b < model->body_count; ++b) {
    screw twist = out->body[model->body_parent[b]];
    for (int joint = model->body_joint_start[b]; joint < model->body_joint_start[b + 1]; ++joint) {
      const int first = model->joint_v[joint];
      for (int j = first; j < first + joint_v_count(model->joint_type[joint]); ++j) {
        screw_axpy(&twist, vector[j], k->dof_screw + j);
        for (int i = model->dof_block_start[j]; j == model->dof_block_last[j] && i <= j; ++i) {
          out->unmoved[i] = twist;
        }
      }
    }
    out->body[b] = twist;
  }
}

void wrench_sum_subtrees(wrench *w, const qd_model *model) {
  for (int b = model->body_count - 1; b > 0; --b) {
    wrench_axpy(w + model->body_parent[b], 1.0, w + b);
  }
}

void wrench_at(wrench *W, const double point[3], const double force[3], const double moment[3]) {
  vec3_cross(W->m, point, force);
  vec3_axpy(W->m, 1.0, moment);
  vec3_copy(W->f, force);
}

void contact_world_force(double force[3], double moment[3], const qd_contact *contact,
                         const double frame_force[MOTION_MAX]) {
  vec3_set(force, 0.0, 0.0, 0.0);
  vec3_set(moment, 0.0, 0.0, 0.0);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(force, frame_force[axis], contact->frame + 3 * axis);
    vec3_axpy(moment, frame_force[3 + axis], contact->frame + 3 * axis);
  }
}

void differential_need_poses(const differential_step *s) {
  differential *d = &s->w->differential;
  for (int i = 0; !d->poses_known && i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      contact_derivative_compute(d->by_pose + i, &s->w->collision, i);
    }
  }
  d->poses_known = 1;
}

void differential_need_sizes(const differential_step *s) {
  differential *d = &s->w->differential;
  for (int i = 0; !d->sizes_known && i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      contact_size_derivative_compute(d->by_size + i, &s->w->collision, i);
    }
  }
  d->sizes_known = 1;
}

/* ---------------------------------------------------------------- the step and its factor */

/* Wrenches of contacts, constraints and the caller, summed over subtrees. */
static void compute_forces(const differential_step *s) {
  const qd_workspace *w = s->w;
  differential *d = &s->w->differential;
  memset(d->forces, 0, (size_t)s->model->body_count * sizeof(wrench));
  for (int i = 0; i < w->collision.count; ++i) {
    const qd_contact *contact = w->collision.contact + i;
    double force[3], moment[3];
    wrench W;
    contact_world_force(force, moment, contact, contact->force);
    wrench_at(&W, contact->pos, force, moment);
    wrench_axpy(d->forces + contact->body_b, 1.0, &W);
    wrench_axpy(d->forces + contact->body_a, -1.0, &W);
  }
  for (int i = 0; i < s->model->constraint_count; ++i) {
    const constraint_state *state = w->problem.constraint + i;
    wrench W[2];
    constraint_wrenches(W, state, w->problem.constraint_force + QD_CONSTRAINT_FORCE * i);
    for (int side = 0; side < 2 && state->rows > 1; ++side) {
      wrench_axpy(d->forces + state->body[side], 1.0, W + side);
    }
  }
  for (int b = 1; s->input->wrench != NULL && b < s->model->body_count; ++b) {
    wrench W;
    applied_wrench(&W, s->model, &w->kinematics, b, s->input->wrench + APPLIED_WRENCH * b);
    wrench_axpy(d->forces + b, 1.0, &W);
  }
  wrench_sum_subtrees(d->forces, s->model);
}

static void compute_bodies(const differential_step *s) {
  const qd_model *model = s->model;
  const qd_workspace *w = s->w;
  differential *d = &s->w->differential;
  for (int j = 0; j < model->nv; ++j) {
    const int actuated = model->dof_actuator[j] >= 0;
    d->mass_scale[j] = actuated ? 0.0 : w->problem.epsilon[j] / (s->options->h * s->options->h);
    d->falls[j] = !actuated || s->options->gravity_on_actuated ? 1.0 : 0.0;
    d->masked[j] = actuated ? 0.0 : s->delta[j];
  }
  twist_field_compute(&d->delta, model, &w->kinematics, s->delta);
  twist_field_compute(&d->mass_delta, model, &w->kinematics, d->masked);
  memset(d->momentum, 0, sizeof(wrench));
  memset(d->weight, 0, sizeof(wrench));
  for (int b = 1; b < model->body_count; ++b) {
    inertia_momentum(d->momentum + b, w->inertia.body + b, d->mass_delta.body + b);
    inertia_gravity_wrench(d->weight + b, model, &w->inertia, b);
  }
  wrench_sum_subtrees(d->momentum, model);
  wrench_sum_subtrees(d->weight, model);
  compute_forces(s);
  d->poses_known = d->sizes_known = 0;
}

/* A contact without force on a certified active set stays without force: its rows do not count. */
static void choose_contacts(const differential_step *s, const island *one, int exact_active_set) {
  const problem *p = &s->w->problem;
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const int index = p->islands.contact_order[i];
    s->w->differential.counts[index] = problem_contact_counts(p, index, exact_active_set);
  }
}

static differential_step step_of(const qd_model *model, qd_workspace *w,
                                 const qd_step_options *options, const qd_step_input *input,
                                 const qd_step_result *result) {
  return (differential_step){model, w, options, input, result->delta};
}

qd_status qd_differentiate(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                           const qd_step_input *input, qd_step_result *result) {
  const step_columns kept = {0, 0};
  qd_status status = step_compute(model, w, options, input, &kept, result);
  if (status != QD_OK) {
    return status;
  }
  const differential_step s = step_of(model, w, options, input, result);
  const problem *p = &w->problem;
  result->derivative_exact = result->relaxed_contacts == 0; /* offsets that do not move */
  memset(w->differential.counts, 0, (size_t)w->collision.count * sizeof(int));
  for (int i = 0; i < p->islands.count; ++i) {
    const island *one = p->islands.island + i;
    int exact = 1;
    status = conic_sensitivity_prepare(one->cone_workspace, &one->info, &exact);
    if (status != QD_OK) {
      result->info.status = status;
      return status;
    }
    result->derivative_exact &= exact;
    choose_contacts(&s, one, isinf(options->kappa) && exact);
  }
  compute_bodies(&s);
  return QD_OK;
}

/* ---------------------------------------------------------------- directions */

static void solve_forward(const qd_workspace *w, int count) {
  const problem *p = &w->problem;
  const differential *d = &w->differential;
  for (int i = 0; i < p->islands.count; ++i) {
    const island *one = p->islands.island + i;
    conic_sensitivity_solve(one->cone_workspace, count, d->four_r + one->variable * count,
                            p->four_w + one->row * count, d->four_e + one->equality * count,
                            d->four_x + one->variable * count, NULL, NULL);
  }
}

void qd_jvp(const qd_model *model, qd_workspace *w, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *const tangent[QD_ARGUMENT_COUNT], double *out) {
  const differential_step s = step_of(model, w, options, input, result);
  const problem *p = &w->problem;
  differential *d = &w->differential;
  for (int first = 0; first < count; first += DIRECTIONS) {
    const int width = count - first < DIRECTIONS ? count - first : DIRECTIONS;
    const double *one[QD_ARGUMENT_COUNT];
    for (int k = 0; k < width; ++k) {
      for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
        const size_t size = (size_t)qd_argument_size(model, i);
        one[i] = tangent[i] != NULL ? tangent[i] + (size_t)(first + k) * size : NULL;
      }
      pushforward_compute(&s, one, d->four_r + k, p->four_w + k, d->four_e + k, width);
    }
    solve_forward(w, width);
    for (int k = 0; k < width; ++k) {
      const size_t at = (size_t)(first + k) * (size_t)model->nv;
      for (int j = 0; j < model->nv; ++j) {
        const int variable = p->variable_of_dof[j];
        d->by_delta[j] = variable >= 0 ? d->four_x[variable * width + k] : 0.0;
        d->masked[j] = tangent[QD_BY_Q] != NULL ? tangent[QD_BY_Q][at + (size_t)j] : 0.0;
      }
      retraction_push(out + at, model, s.delta, d->masked, d->by_delta);
    }
  }
}

/* ---------------------------------------------------------------- cotangents */

/* Cotangent `index` of q_next: a row, or a unit vector. */
static void cotangent_take(double *y, const double *cotangent, int index, int nv) {
  if (cotangent != NULL) {
    memcpy(y, cotangent + (size_t)index * (size_t)nv, (size_t)nv * sizeof(double));
  } else {
    memset(y, 0, (size_t)nv * sizeof(double));
    y[index] = 1.0;
  }
}

/* four_r = -J_l' y of the free DOFs, then four_x = z, four_w = mu, four_e = nu */
static void solve_backward(const differential_step *s, const double *cotangent, int first,
                           int width) {
  const problem *p = &s->w->problem;
  differential *d = &s->w->differential;
  for (int k = 0; k < width; ++k) {
    cotangent_take(d->z, cotangent, first + k, s->model->nv);
    retraction_pull(d->masked, d->by_delta, s->model, s->delta, d->z);
    for (int i = 0; i < p->n; ++i) {
      d->four_r[i * width + k] = -d->by_delta[p->dof_of_variable[i]];
    }
  }
  for (int i = 0; i < p->islands.count; ++i) {
    const island *one = p->islands.island + i;
    conic_sensitivity_solve(one->cone_workspace, width, d->four_r + one->variable * width, NULL,
                            NULL, d->four_x + one->variable * width, p->four_w + one->row * width,
                            d->four_e + one->equality * width);
  }
}

void qd_vjp(const qd_model *model, qd_workspace *w, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *cotangent, double *const gradient[QD_ARGUMENT_COUNT]) {
  const differential_step s = step_of(model, w, options, input, result);
  const problem *p = &w->problem;
  differential *d = &w->differential;
  for (int first = 0; first < count; first += DIRECTIONS) {
    const int width = count - first < DIRECTIONS ? count - first : DIRECTIONS;
    solve_backward(&s, cotangent, first, width);
    for (int k = 0; k < width; ++k) {
      double *one[QD_ARGUMENT_COUNT];
      for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
        const size_t size = (size_t)qd_argument_size(model, i);
        one[i] = gradient[i] != NULL ? gradient[i] + (size_t)(first + k) * size : NULL;
      }
      for (int j = 0; j < model->nv; ++j) {
        const int variable = p->variable_of_dof[j];
        d->z[j] = variable >= 0 ? d->four_x[variable * width + k] : 0.0;
      }
      pullback_compute(&s, p->four_w + k, d->four_e + k, width, one);
      if (one[QD_BY_Q] != NULL) {
        cotangent_take(d->z, cotangent, first + k, model->nv);
        retraction_pull(d->masked, d->by_delta, model, s.delta, d->z);
        for (int j = 0; j < model->nv; ++j) {
          one[QD_BY_Q][j] += d->masked[j];
        }
      }
    }
  }
}
