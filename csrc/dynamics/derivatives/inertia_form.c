#include "dynamics/derivatives/step_point.h"

#include "dynamics/workspace.h"

void inertia_form_pull(double *const gradient[QD_ARGUMENT_COUNT], double on_com[3],
                       const solved_step *s, int b, const double com[3], const screw *Z,
                       const screw *T) {
  const double *R = s->w->kinematics.body_rot + 9 * b;
  const double mass = s->model->parameters.body_mass[b];
  double vT[3], vZ[3];
  screw_point_velocity(vT, T, com);
  screw_point_velocity(vZ, Z, com);
  if (gradient[QD_BY_BODY_MASS] != NULL) {
    gradient[QD_BY_BODY_MASS][b] -= vec3_dot(vZ, vT);
  }
  vec3_add_cross(on_com, -mass, vT, Z->w);
  vec3_add_cross(on_com, -mass, vZ, T->w);
  if (gradient[QD_BY_BODY_INERTIA] != NULL) {
    mat3_tmul_vec(vZ, R, Z->w);
    mat3_tmul_vec(vT, R, T->w);
    for (int i = 0; i < 9; ++i) {
      gradient[QD_BY_BODY_INERTIA][9 * b + i] -=
          0.5 * (vZ[i / 3] * vT[i % 3] + vT[i / 3] * vZ[i % 3]);
    }
  }
}

void inertia_form_push(wrench *out, const solved_step *s,
                       const double *const tangent[QD_ARGUMENT_COUNT], int b, const double com[3],
                       const double d_com[3], const screw *T) {
  const double *R = s->w->kinematics.body_rot + 9 * b;
  const double mass = s->model->parameters.body_mass[b];
  const double d_mass = tangent[QD_BY_BODY_MASS] != NULL ? tangent[QD_BY_BODY_MASS][b] : 0.0;
  wrench part;
  double v[3], f[3], m[3], w_body[3];
  screw_point_velocity(v, T, com);
  vec3_cross(f, T->w, d_com);
  vec3_scale(f, f, mass);
  vec3_axpy(f, d_mass, v);
  vec3_cross(m, d_com, v);
  vec3_scale(m, m, mass);
  if (tangent[QD_BY_BODY_INERTIA] != NULL) {
    double change[3];
    mat3_tmul_vec(w_body, R, T->w);
    mat3_mul_vec(change, tangent[QD_BY_BODY_INERTIA] + 9 * b, w_body);
    mat3_mul_vec(w_body, R, change);
    vec3_axpy(m, 1.0, w_body);
  }
  wrench_at(&part, com, f, m);
  wrench_axpy(out, 1.0, &part);
}
