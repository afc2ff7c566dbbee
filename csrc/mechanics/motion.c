#include "mechanics/motion.h"

void twist_field_lay_out(twist_field *field, const qd_model *model, arena *a) {
  field->body = arena_take(a, (size_t)model->body.count * sizeof(screw));
  field->unmoved = arena_take(a, (size_t)model->nv * sizeof(screw));
}

void body_motion_lay_out(body_motion *m, const qd_model *model, arena *a) {
  twist_field_lay_out(&m->velocity, model, a);
  twist_field_lay_out(&m->acceleration, model, a);
  m->before = arena_take(a, (size_t)model->nv * sizeof(screw));
}

/* The DOFs of a body are [*first, *end). */
static void body_dofs(const qd_model *model, int body, int *first, int *end) {
  const int joint = model->body.joint_start[body], last = model->body.joint_start[body + 1] - 1;
  *first = joint <= last ? model->joint.v[joint] : 0;
  *end = joint <= last ? model->joint.v[last] + joint_v_count(model->joint.type[last]) : 0;
}

/* At the last DOF of a block: sets the twist that the block's DOFs do not move. */
static void close_block(twist_field *out, const qd_model *model, int j, const screw *now) {
  for (int i = model->dof.block_start[j]; j == model->dof.block_last[j] && i <= j; ++i) {
    out->unmoved[i] = *now;
  }
}

void twist_field_compute(twist_field *out, const qd_model *model, const kinematics *k,
                         const double *vector) {
  memset(out->body, 0, sizeof(screw));
  for (int b = 1; b < model->body.count; ++b) {
    screw twist = out->body[model->body.parent[b]];
    int j, end;
    for (body_dofs(model, b, &j, &end); j < end; ++j) {
      screw_axpy(&twist, vector[j], k->dof_screw + j);
      close_block(out, model, j, &twist);
    }
    out->body[b] = twist;
  }
}

void body_motion_compute(body_motion *m, const qd_model *model, const kinematics *k,
                         const double *v, const double *a) {
  memset(m->velocity.body, 0, sizeof(screw));
  memset(m->acceleration.body, 0, sizeof(screw));
  for (int b = 1; b < model->body.count; ++b) {
    const int parent = model->body.parent[b];
    screw T = m->velocity.body[parent], A = m->acceleration.body[parent], before = T, turned;
    int j, end;
    for (body_dofs(model, b, &j, &end); j < end; ++j) {
      const screw *S = k->dof_screw + j;
      if (j == model->dof.block_start[j]) {
        before = T;
      }
      m->before[j] = before;
      screw_bracket(&turned, &before, S);
      screw_axpy(&A, v[j], &turned);
      if (a != NULL) {
        screw_axpy(&A, a[j], S);
      }
      screw_axpy(&T, v[j], S);
      close_block(&m->velocity, model, j, &T);
      close_block(&m->acceleration, model, j, &A);
    }
    m->velocity.body[b] = T;
    m->acceleration.body[b] = A;
  }
}

void inertial_wrench(wrench *F, const spatial_inertia *I, const screw *T, const screw *A) {
  wrench h, part;
  inertia_momentum(&h, I, T);
  inertia_momentum(F, I, A);
  screw_cross_wrench(&part, T, &h);
  wrench_axpy(F, 1.0, &part);
}

void wrench_sum_subtrees(wrench *w, const qd_model *model) {
  for (int b = model->body.count - 1; b > 0; --b) {
    wrench_axpy(w + model->body.parent[b], 1.0, w + b);
  }
}

void inertial_force(double *force, wrench *scratch, const qd_model *model, const kinematics *k,
                    const inertia *I, const body_motion *m) {
  memset(scratch, 0, sizeof(wrench));
  for (int b = 1; b < model->body.count; ++b) {
    inertial_wrench(scratch + b, I->body + b, m->velocity.body + b, m->acceleration.body + b);
  }
  wrench_sum_subtrees(scratch, model);
  for (int j = 0; j < model->nv; ++j) {
    force[j] = screw_dot(k->dof_screw + j, scratch + model->dof.body[j]);
  }
}
