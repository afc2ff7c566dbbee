#include "dynamics/derivatives/differential.h"
#include "dynamics/workspace.h"

int form_knows_masses(const linear_form *f) {
  return form_knows(f, QD_BY_BODY_MASS) || form_knows(f, QD_BY_BODY_COM) ||
         form_knows(f, QD_BY_BODY_INERTIA);
}

void form_com(linear_form *f, const solved_step *s, int b, const double on_com[3]) {
  double own[3];
  mat3_tmul_vec(own, s->w->kinematics.body_rot + 9 * b, on_com);
  for (int i = 0; i < 3; ++i) {
    form_add(f, QD_BY_BODY_COM, 3 * b + i, own[i]);
  }
}

void form_inertia(linear_form *f, double on_com[3], const solved_step *s, int b,
                  const double com[3], const screw *Z, const screw *T) {
  const double *R = s->w->kinematics.body_rot + 9 * b;
  const double mass = s->model->parameters.body_mass[b];
  double vT[3], vZ[3];
  screw_point_velocity(vT, T, com);
  screw_point_velocity(vZ, Z, com);
  form_add(f, QD_BY_BODY_MASS, b, -vec3_dot(vZ, vT));
  vec3_add_cross(on_com, -mass, vT, Z->w);
  vec3_add_cross(on_com, -mass, vZ, T->w);
  mat3_tmul_vec(vZ, R, Z->w);
  mat3_tmul_vec(vT, R, T->w);
  for (int i = 0; i < 9 && form_knows(f, QD_BY_BODY_INERTIA); ++i) {
    form_add(f, QD_BY_BODY_INERTIA, 9 * b + i,
             -0.5 * (vZ[i / 3] * vT[i % 3] + vT[i / 3] * vZ[i % 3]));
  }
}
