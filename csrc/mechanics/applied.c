#include "mechanics/applied.h"

void body_com(double com[3], const qd_model *model, const kinematics *k, int body) {
  mat3_mul_add(com, k->body_rot + 9 * body, model->parameters.body_com + 3 * body,
               k->body_pos + 3 * body);
}

void applied_wrench(wrench *W, const qd_model *model, const kinematics *k, int body,
                    const double *applied) {
  double com[3];
  body_com(com, model, k, body);
  wrench_at(W, com, applied, applied + 3);
}

void applied_add_force(double *force, wrench *scratch, const qd_model *model, const kinematics *k,
                       const double *applied) {
  for (int b = 0; b < model->body.count; ++b) {
    applied_wrench(scratch + b, model, k, b, applied + QD_WRENCH * b);
  }
  for (int b = model->body.count - 1; b > 0; --b) {
    wrench_axpy(scratch + model->body.parent[b], 1.0, scratch + b);
  }
  for (int dof = 0; dof < model->nv; ++dof) {
    force[dof] += screw_dot(k->dof_screw + dof, scratch + model->dof.body[dof]);
  }
}

void applied_subtract_derivative(const dof_matrix *D, const qd_model *model, const kinematics *k,
                                 const double *applied) {
  for (int b = 1; b < model->body.count; ++b) {
    const double *force = applied + QD_WRENCH * b;
    double com[3];
    const int_list chain = body_chain(model, b);
    body_com(com, model, k, b);
    for (int j = 0;
         vec3_dot(force, force) > 0.0 && j < chain.count && dof_matrix_has(D, chain.at[0]); ++j) {
      double d_com[3], d_moment[3];
      screw_point_velocity(d_com, k->dof_screw + chain.at[j], com);
      vec3_cross(d_moment, d_com, force);
      for (int i = 0; i < chain.count; ++i) {
        *dof_matrix_at(D, chain.at[i], chain.at[j]) -=
            vec3_dot(k->dof_screw[chain.at[i]].w, d_moment);
      }
    }
  }
}
