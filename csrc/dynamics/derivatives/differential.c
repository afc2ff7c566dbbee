#include "dynamics/derivatives/differential.h"

#include "dynamics/workspace.h"

void differential_lay_out(differential *d, const qd_model *model, int contact_capacity, arena *a) {
  const size_t nb = (size_t)model->body.count, nv = (size_t)model->nv;
  const size_t contacts = (size_t)contact_capacity;
  d->counts = arena_ints(a, contacts);
  d->by_pose = arena_take(a, contacts * sizeof *d->by_pose);
  d->by_size = arena_take(a, contacts * sizeof *d->by_size);
  ARENA_DOUBLES(a, nv, &d->masked, &d->by_q, &d->z, &d->by_delta);
  twist_field *fields[] = {&d->by_z, &d->mass_z, &d->gravity_z};
  for (size_t i = 0; i < sizeof fields / sizeof fields[0]; ++i) {
    twist_field_lay_out(fields[i], model, a);
  }
  wrench **wrenches[] = {&d->pose,       &d->twist,     &d->momentum_z, &d->scratch,
                         &d->velocity_z, &d->carried_z, &d->bounce};
  for (size_t i = 0; i < sizeof wrenches / sizeof wrenches[0]; ++i) {
    *wrenches[i] = arena_take(a, nb * sizeof(wrench));
  }
  d->body_motion = arena_take(a, nb * sizeof(screw));
  d->d_delta = arena_take(a, nb * sizeof(screw));
  d->d_mass_delta = arena_take(a, nb * sizeof(screw));
  d->d_velocity = arena_take(a, nb * sizeof(screw));
  d->d_stirred = arena_take(a, nb * sizeof(screw));
  ARENA_DOUBLES(a, nv, &d->d_coasting, &d->by_coasting);
  d->axis_motion = arena_take(a, nv * sizeof(screw));
  d->tendon_change = arena_doubles(a, (size_t)model->tendon.count);
  ARENA_DOUBLES(a, DIRECTIONS * islands_variable_capacity(model), &d->four_r, &d->four_x,
                &d->side_x, &d->late_r);
  d->late_z = arena_doubles(a, DIRECTIONS * nv);
  d->four_e = arena_doubles(a, DIRECTIONS * (size_t)model->constraint.row_count);
}

void differential_need_poses(const solved_step *s) {
  differential *d = &s->w->differential;
  for (int i = 0; !d->poses_known && i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      contact_derivative_compute(d->by_pose + i, &s->w->collision, i);
    }
  }
  d->poses_known = 1;
}

void differential_need_sizes(const solved_step *s) {
  differential *d = &s->w->differential;
  for (int i = 0; !d->sizes_known && i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      contact_size_derivative_compute(d->by_size + i, &s->w->collision, i);
    }
  }
  d->sizes_known = 1;
}
