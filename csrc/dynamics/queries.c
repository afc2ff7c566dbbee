/* Public queries on a configuration: each runs the stages that it needs. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "dynamics/workspace.h"
#include "mechanics/actuator.h"
#include "mechanics/pairs/soft_pairs.h"

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

static void spread_over_dofs(double *out, const qd_model *model, const double *rate) {
  memset(out, 0, (size_t)model->tendon_count * (size_t)model->nv * sizeof(double));
  for (int i = 0; i < model->tendon_count; ++i, out += model->nv) {
    for (int d = model->tendon_dof_start[i]; d < model->tendon_dof_start[i + 1]; ++d) {
      out[model->tendon_dof[d]] = rate[d];
    }
  }
}

void qd_tendon_lengths(const qd_model *model, qd_workspace *workspace, const double *q,
                       double *length, double *jacobian, double *moment) {
  const tendons *t = &workspace->problem.tendons;
  kinematics_compute(model, q, NULL, &workspace->kinematics);
  tendons_compute(t, model, &workspace->kinematics, q);
  memcpy(length, t->length, (size_t)model->tendon_count * sizeof(double));
  if (jacobian != NULL) {
    spread_over_dofs(jacobian, model, t->slope);
  }
  if (moment != NULL) {
    spread_over_dofs(moment, model, t->rate);
  }
}

void qd_mass_matrix(const qd_model *model, qd_workspace *workspace, const double *q, double *M) {
  kinematics_compute(model, q, NULL, &workspace->kinematics);
  inertia_compute(model, &workspace->kinematics, 1, &workspace->inertia);
  inertia_mass_matrix(M, model, &workspace->kinematics, &workspace->inertia);
}

/* The motion at v without acceleration. */
static void coast(const qd_model *model, qd_workspace *w, const double *q, const double *v) {
  memset(w->problem.rate, 0, (size_t)model->nv * sizeof(double));
  kinematics_compute(model, q, NULL, &w->kinematics);
  inertia_compute(model, &w->kinematics, 1, &w->inertia);
  body_motion_compute(&w->problem.motion_in_time, model, &w->kinematics, v, w->problem.rate);
}

void qd_bias_force(const qd_model *model, qd_workspace *workspace, const double *q, const double *v,
                   double *force) {
  coast(model, workspace, q, v);
  inertial_force(force, workspace->inertia.momentum, model, &workspace->kinematics,
                 &workspace->inertia, &workspace->problem.motion_in_time);
}

void qd_energy(const qd_model *model, qd_workspace *workspace, const double *q, const double *v,
               double *kinetic, double *potential) {
  const model_parameters *par = &model->parameters;
  coast(model, workspace, q, v);
  *kinetic = *potential = 0.0;
  for (int b = 1; b < model->body_count; ++b) {
    const screw *T = workspace->problem.motion_in_time.velocity.body + b;
    wrench h;
    inertia_momentum(&h, workspace->inertia.body + b, T);
    *kinetic += 0.5 * screw_dot(T, &h);
    *potential -= model->body_fall[b] * vec3_dot(par->gravity, workspace->inertia.body[b].moment);
  }
  for (int dof = 0; dof < model->nv; ++dof) {
    const int joint = model->dof_joint[dof];
    const double bent = par->joint_stiffness[joint] > 0.0 ? joint_stretch(model, dof, q) : 0.0;
    *kinetic += 0.5 * par->joint_armature[joint] * v[dof] * v[dof];
    *potential += 0.5 * par->joint_stiffness[joint] * bent * bent;
  }
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

/* The place of a listed contact in the list of all, or -1: the step found it beyond the margin. All
 * of the first `count` are in the order of the pairs. */
static int place_of(const collision *c, int count, const qd_contact *listed) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (c->contact[middle].pair < listed->pair) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; low < count && c->contact[low].pair == listed->pair; ++low) {
    const qd_contact *own = c->contact + low;
    if (own->dist == listed->dist && memcmp(own->pos, listed->pos, sizeof own->pos) == 0) {
      return low;
    }
  }
  return -1;
}

qd_status qd_step_contacts(const qd_model *model, qd_workspace *workspace, const double *q,
                           const double *mocap, double margin, const qd_contact *listed,
                           int listed_count, const qd_contact **contacts, int *contact_count) {
  collision *c = &workspace->collision;
  *contacts = NULL;
  *contact_count = 0;
  if (isnan(margin)) {
    return QD_BAD_ARGUMENT;
  }
  if (!all_finite(q, model->nq) ||
      (mocap != NULL && !all_finite(mocap, MOCAP_POSE * model->mocap_count))) {
    return QD_NOT_FINITE;
  }
  kinematics_compute(model, q, mocap, &workspace->kinematics);
  if (collision_compute(model, &workspace->kinematics, margin, c) != QD_OK) {
    *contact_count = c->count + listed_count;
    return QD_OUT_OF_CAPACITY;
  }
  const int count = c->count;
  for (int i = 0; i < listed_count; ++i) {
    const int place = place_of(c, count, listed + i);
    const int at = place >= 0 ? place : c->count++;
    if (at < c->capacity) {
      c->contact[at] = listed[i];
    }
  }
  *contacts = c->contact;
  *contact_count = c->count;
  return c->count <= c->capacity ? QD_OK : QD_OUT_OF_CAPACITY;
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

qd_status qd_pressure_surface(const qd_model *model, qd_workspace *workspace, const double *q,
                              int number, int *pair, qd_patch *patch, qd_patch_polygon *polygons,
                              int polygon_capacity, double *vertices, int vertex_capacity) {
  kinematics *k = &workspace->kinematics;
  const patch_room room = {polygons, vertices, polygon_capacity, vertex_capacity};
  *pair = model->soft_pair[number];
  kinematics_compute(model, q, NULL, k);
  const int *geom = model->pair_geom + 2 * *pair;
  const body_frame a = body_frame_of(k, model->geom_body[geom[0]]);
  const body_frame b = body_frame_of(k, model->geom_body[geom[1]]);
  return soft_pair_patch(model, *pair, &a, &b, patch, &room);
}
