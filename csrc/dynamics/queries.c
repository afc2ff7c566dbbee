/* Public queries on a configuration: each runs the stages that it needs. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "dynamics/workspace.h"

void qd_body_poses(const qd_model *model, qd_workspace *workspace, const double *q, double *pos,
                   double *rot) {
  kinematics *k = &workspace->kinematics;
  kinematics_compute(model, q, NULL, k);
  memcpy(pos, k->body_pos, 3 * (size_t)model->body_count * sizeof(double));
  memcpy(rot, k->body_rot, 9 * (size_t)model->body_count * sizeof(double));
}

void qd_point_jacobian(const qd_model *model, qd_workspace *workspace, const double *q, int body,
                       const double *point, double *jacobian) {
  kinematics *k = &workspace->kinematics;
  const int nv = model->nv;
  double p[3];
  int count;
  const int *chain = body_chain(model, body, &count);
  kinematics_compute(model, q, NULL, k);
  mat3_mul_vec(p, k->body_rot + 9 * body, point);
  vec3_axpy(p, 1.0, k->body_pos + 3 * body);
  memset(jacobian, 0, 6 * (size_t)nv * sizeof(double));
  for (int c = 0; c < count; ++c) {
    const screw *s = k->dof_screw + chain[c];
    double velocity[3];
    screw_point_velocity(velocity, s, p);
    for (int i = 0; i < 3; ++i) {
      jacobian[i * nv + chain[c]] = velocity[i];
      jacobian[(3 + i) * nv + chain[c]] = s->w[i];
    }
  }
}

void qd_tendon_lengths(const qd_model *model, qd_workspace *workspace, const double *q,
                       double *length, double *jacobian) {
  const tendons *t = &workspace->problem.tendons;
  kinematics_compute(model, q, NULL, &workspace->kinematics);
  tendons_compute(t, model, &workspace->kinematics, q);
  memcpy(length, t->length, (size_t)model->tendon_count * sizeof(double));
  if (jacobian == NULL) {
    return;
  }
  memset(jacobian, 0, (size_t)model->tendon_count * (size_t)model->nv * sizeof(double));
  for (int i = 0; i < model->tendon_count; ++i, jacobian += model->nv) {
    for (int d = model->tendon_dof_start[i]; d < model->tendon_dof_start[i + 1]; ++d) {
      jacobian[model->tendon_dof[d]] = t->rate[d];
    }
  }
}

void qd_mass_matrix(const qd_model *model, qd_workspace *workspace, const double *q, double *M) {
  kinematics_compute(model, q, NULL, &workspace->kinematics);
  inertia_compute(model, &workspace->kinematics, 1, &workspace->inertia);
  inertia_mass_matrix(M, model, &workspace->kinematics, &workspace->inertia);
}

qd_status qd_collide(const qd_model *model, qd_workspace *workspace, const double *q, double margin,
                     const qd_contact **contacts, int *contact_count) {
  *contacts = NULL;
  *contact_count = 0;
  if (isnan(margin)) {
    return QD_BAD_ARGUMENT;
  }
  if (!all_finite(q, model->nq)) {
    return QD_NOT_FINITE;
  }
  kinematics_compute(model, q, NULL, &workspace->kinematics);
  const qd_status status =
      collision_compute(model, &workspace->kinematics, margin, &workspace->collision);
  *contacts = workspace->collision.contact;
  *contact_count = workspace->collision.count;
  return status;
}

qd_status qd_pair_distances(const qd_model *model, qd_workspace *workspace, const double *q,
                            double margin, double *distance, int *contact_count) {
  const qd_contact *contacts;
  const qd_status status = qd_collide(model, workspace, q, margin, &contacts, contact_count);
  if (status != QD_OK) {
    return status;
  }
  if (!all_finite(workspace->kinematics.body_pos, 3 * model->body_count)) {
    return QD_NOT_FINITE; /* a finite q too large for its poses: nothing would be in range */
  }
  for (int pair = 0; pair < model->pair_count; ++pair) {
    distance[pair] = margin;
  }
  for (int i = 0; i < *contact_count; ++i) {
    double *least = distance + contacts[i].pair;
    *least = contacts[i].dist < *least ? contacts[i].dist : *least;
  }
  return QD_OK;
}
