/* Spatial tendons, whose Jacobian J changes with q. A force f along a tendon acts as J' f; rows,
 * dampers and actuators depend on J x and J v. So rhs by q receives (dJ)' f and, with their
 * coefficients, u_x d(J x) + u_v d(J v). J'f is the effect of forces on the points, which are added
 * to w->body[..].wrench, where the change of the screws is included; here the points and forces
 * change. */
#include "mujoco/parts.h"

enum { WRAP_JOINT = 1, WRAP_PULLEY, WRAP_SITE, WRAP_SPHERE, WRAP_CYLINDER };
enum { TRN_TENDON = 3 };

/* ---------------------------------------------------------------- position */

static void from_origin(double out[3], const qd_mj_workspace *w, const double *world) {
  vec3_sub(out, world, w->origin);
}

static int add_arc(const qd_mj *mj, const qd_mj_workspace *w, strand *s, int index, double share,
                   int i) {
  const int geom = mj->wrap_objid[i], side = (int)lround(mj->wrap_prm[i]);
  wrap_shape *shape = &s->wrap[index].shape;
  double to[3], at_side[3];
  from_origin(shape->centre, w, mj->geom_xpos + 3 * geom);
  mat3_column(shape->axis, mj->geom_xmat + 9 * geom, 2);
  mat3_column(shape->front, mj->geom_xmat + 9 * geom, 0);
  shape->radius = mj->geom_size[3 * geom];
  shape->is_cylinder = mj->wrap_type[i] == WRAP_CYLINDER;
  from_origin(to, w, mj->site_xpos + 3 * mj->wrap_objid[i + 1]);
  if (side >= 0) {
    from_origin(at_side, w, mj->site_xpos + 3 * side);
  }
  return strand_add_arc(s, index, mj->geom_bodyid[geom], share, to, side >= 0 ? at_side : NULL);
}

static strand place(const qd_mj *mj, const qd_mj_workspace *w, int tendon) {
  strand s = {w->point, w->motion, w->arc, 0};
  double share = 1.0, p[3];
  int arcs = 0;
  for (int i = mj->tendon_adr[tendon]; i < mj->tendon_adr[tendon] + mj->tendon_num[tendon]; ++i) {
    if (mj->wrap_type[i] == WRAP_PULLEY) {
      share = 1.0 / mj->wrap_prm[i];
      strand_cut(&s);
    } else if (mj->wrap_type[i] == WRAP_SITE) {
      from_origin(p, w, mj->site_xpos + 3 * mj->wrap_objid[i]);
      strand_add(&s, mj->site_bodyid[mj->wrap_objid[i]], share, p);
    } else {
      arcs += add_arc(mj, w, &s, arcs, share, i);
    }
  }
  strand_close(&s);
  strand_differentiate(&s);
  return s;
}

/* ---------------------------------------------------------------- uses */

/* The force along a tendon, and u_x and u_v. */
typedef struct tendon_use {
  double force, *by_x, *by_v; /* (nv) */
} tendon_use;

static double dot(const qd_mj *mj, int tendon, const double *dense) {
  const int from = mj->ten_J_rowadr[tendon];
  double sum = 0.0;
  for (int p = from; p < from + mj->ten_J_rownnz[tendon]; ++p) {
    sum += mj->ten_J[p] * dense[mj->ten_J_colind[p]];
  }
  return sum;
}

/* A damper, and springs and dampers of the metric, which is a force -(scale J x + stiff J v). */
static void add_rates(const qd_mj *mj, const qd_mj_workspace *w, tendon_use *use, int tendon,
                      double damping, const mj_bar *bar) {
  const int from = mj->ten_J_rowadr[tendon];
  use->force -= bar->scale * dot(mj, tendon, w->x) + bar->stiff * dot(mj, tendon, mj->qvel);
  for (int p = from; p < from + mj->ten_J_rownnz[tendon]; ++p) {
    const int j = mj->ten_J_colind[p];
    use->by_v[j] -= (damping + bar->stiff) * mj->ten_J[p];
    use->by_x[j] -= bar->scale * mj->ten_J[p];
  }
}

int mj_tendon_is_spatial(const qd_mj *mj, int tendon) {
  return mj->wrap_type[mj->tendon_adr[tendon]] != WRAP_JOINT;
}

static void add_passive(const qd_mj *mj, const qd_mj_workspace *w, tendon_use *use, int tendon) {
  const double *rest = mj->tendon_lengthspring + 2 * tendon, length = mj->ten_length[tendon];
  if (!(mj->disableflags & MJ_NO_SPRING)) {
    const double off = length < rest[0] ? rest[0] - length : fmin(0.0, rest[1] - length);
    use->force += mj->tendon_stiffness[tendon] * off;
  }
  const double damping = mj->disableflags & MJ_NO_DAMPER ? 0.0 : mj->tendon_damping[tendon];
  const mj_bar bar = mj_tendon_bar(mj, tendon);
  use->force -= damping * dot(mj, tendon, mj->qvel);
  add_rates(mj, w, use, tendon, damping, &bar);
}

static int is_on_tendon(const qd_mj *mj, int actuator, int tendon) {
  return mj->actuator_trntype[actuator] == TRN_TENDON && mj->actuator_trnid[2 * actuator] == tendon;
}

mj_bar mj_tendon_drives(const qd_mj *mj, int tendon) {
  mj_bar sum = {0};
  for (int i = 0; i < mj->nactuator; ++i) {
    mj_drive d;
    if (is_on_tendon(mj, i, tendon) && mj_drive_read(mj, i, &d)) {
      const double gear = mj->actuator_gear[6 * i];
      const mj_bar bar = mj_drive_bar(mj, &d);
      sum.scale += gear * gear * bar.scale;
      sum.stiff += gear * gear * bar.stiff;
    }
  }
  return sum;
}

static void add_actuators(const qd_mj *mj, const qd_mj_workspace *w, tendon_use *use, int tendon) {
  const mj_bar bar = mj_tendon_drives(mj, tendon);
  double damping = 0.0;
  for (int i = 0; i < mj->nactuator; ++i) {
    mj_drive d;
    if (is_on_tendon(mj, i, tendon)) {
      const double gear = mj->actuator_gear[6 * i];
      use->force += gear * mj->actuator_force[i];
      damping -= mj_drive_read(mj, i, &d) ? gear * gear * d.by_velocity : 0.0;
    }
  }
  add_rates(mj, w, use, tendon, damping, &bar);
}

/* Coefficient of the tendon's J in a row; 0: none. */
static double share_of_row(const qd_mj *mj, qd_mj_workspace *w, int row, int tendon) {
  const int type = mj->efc_type[row], id = mj->efc_id[row];
  if (type == MJ_ROW_FRICTION_TENDON || type == MJ_ROW_LIMIT_TENDON) {
    if (id != tendon) {
      return 0.0;
    }
    const int count = mj_rows_compact(mj, w, row, 1);
    memset(w->scratch, 0, (size_t)mj->nv * sizeof *w->scratch);
    for (int p = 0; p < count; ++p) {
      w->scratch[w->column[p]] = w->compact[p];
    }
    return dot(mj, tendon, w->scratch) < 0.0 ? -1.0 : 1.0; /* the row of an upper limit is -J */
  }
  if (type != MJ_ROW_EQUALITY || mj->eq_type[id] != MJ_EQ_TENDON) {
    return 0.0;
  }
  return (mj->eq_obj1id[id] == tendon ? 1.0 : 0.0) -
         (mj->eq_obj2id[id] == tendon ? mj_follower_slope(mj, id) : 0.0);
}

static void add_rows(const qd_mj *mj, qd_mj_workspace *w, tendon_use *use, int tendon) {
  for (int i = 0; i < mj->nefc; ++i) {
    const double share = share_of_row(mj, w, i, tendon);
    if (share == 0.0) {
      continue;
    }
    const int count = mj_rows_compact(mj, w, i, 1);
    const double damping = mj_row_law(mj, i).damping;
    use->force += share * w->f[i];
    for (int p = 0; p < count; ++p) {
      const double s = -w->h[i] * share * w->compact[p];
      use->by_x[w->column[p]] += s;
      use->by_v[w->column[p]] += s * damping;
    }
  }
}

/* ---------------------------------------------------------------- changes */

static int moves(const qd_mj_workspace *w, int dof, int body) {
  int deepest = w->last_dof[body];
  while (deepest > dof) {
    deepest = w->dof[deepest].parent;
  }
  return deepest == dof;
}

static int moves_any(const qd_mj_workspace *w, const strand *s, int dof) {
  int any = 0;
  for (int i = 0; i < s->count && !any; ++i) {
    any = moves(w, dof, s->point[i].body);
  }
  return any;
}

/* Rates of the dofs: v, x, or those of mj_spread. */
typedef enum rates { OF_V, OF_X, OF_W } rates;

static const double *twist_of(const mj_body *body, rates of) {
  return of == OF_V ? body->V : of == OF_X ? body->X : body->W;
}

/* The change of J rates with dof k. */
static double change_along(const qd_mj_workspace *w, const strand *s, int dof, rates of) {
  static const double still[6] = {0.0};
  const mj_dof *d = w->dof + dof;
  double out[2];
  for (int i = 0; i < s->count; ++i) {
    const mj_body *body = w->body + s->point[i].body;
    const double *twist = twist_of(body, of), *p = s->point[i].pos;
    strand_motion *m = s->motion + i;
    memset(m, 0, sizeof *m);
    six_velocity_at(m->velocity, twist, p);
    if (moves(w, dof, s->point[i].body)) {
      double rest[6], turned[6];
      six_copy(rest, twist);
      six_axpy(rest, -1.0, of == OF_V ? d->before : of == OF_X ? d->x_before : d->w_before);
      six_cross(turned, d->S, rest);
      six_velocity_at(m->d_pos, d->S, p);
      six_velocity_at(m->d_velocity, turned, p);
      vec3_add_cross(m->d_velocity, 1.0, twist, m->d_pos);
    }
  }
  for (int i = 0; i < s->count; ++i) {
    if (s->point[i].wrap >= 0) {
      const mj_body *body = w->body + s->point[i].body;
      const double *S = moves(w, dof, s->point[i].body) ? d->S : still;
      strand_slide(s, i, S, S + 3, twist_of(body, of), 0.0);
    }
  }
  strand_change(out, s);
  return out[1];
}

/* rhs += the change of a force's wrenches, as points and pulls move with dof k */
static void add_wrench_changes(qd_mj_workspace *w, const strand *s, int dof, double force) {
  for (int i = 0; i < s->count; ++i) {
    double pull[3], change[6];
    strand_pull(pull, s, i);
    vec3_scale(change + 3, s->motion[i].d_pull, force);
    vec3_cross(change, s->point[i].pos, change + 3);
    vec3_add_cross(change, force, s->motion[i].d_pos, pull);
    for (int j = w->last_dof[s->point[i].body]; j >= 0; j = w->dof[j].parent) {
      w->rhs[(size_t)j * (size_t)w->columns + (size_t)dof] += six_dot(w->dof[j].S, change);
    }
  }
}

static int is_used(const qd_mj *mj, const tendon_use *use) {
  int used = use->force != 0.0;
  for (int j = 0; j < mj->nv && !used; ++j) {
    used = use->by_x[j] != 0.0 || use->by_v[j] != 0.0;
  }
  return used;
}

static void add_changes(const qd_mj *mj, qd_mj_workspace *w, const strand *s,
                        const tendon_use *use) {
  const int nv = (int)mj->nv;
  for (int k = 0; k < nv; ++k) {
    if (!moves_any(w, s, k)) {
      continue;
    }
    const double of_x = change_along(w, s, k, OF_X), of_v = change_along(w, s, k, OF_V);
    add_wrench_changes(w, s, k, use->force);
    for (int j = 0; j < nv; ++j) {
      w->rhs[(size_t)j * (size_t)w->columns + (size_t)k] +=
          use->by_x[j] * of_x + use->by_v[j] * of_v;
    }
  }
}

void mj_tendons_by_position(const qd_mj *mj, qd_mj_workspace *w) {
  const size_t nv = (size_t)mj->nv;
  for (int t = 0; t < mj->ntendon; ++t) {
    tendon_use use = {0.0, w->wide, w->wide + nv};
    if (!mj_tendon_is_spatial(mj, t)) {
      continue;
    }
    memset(w->wide, 0, 2 * nv * sizeof *w->wide);
    add_passive(mj, w, &use, t);
    add_actuators(mj, w, &use, t);
    add_rows(mj, w, &use, t);
    if (!is_used(mj, &use)) {
      continue;
    }
    const strand s = place(mj, w, t);
    for (int i = 0; i < s.count; ++i) {
      double wrench[6];
      strand_pull(wrench + 3, &s, i);
      vec3_scale(wrench + 3, wrench + 3, use.force);
      vec3_cross(wrench, s.point[i].pos, wrench + 3);
      six_axpy(w->body[s.point[i].body].wrench, 1.0, wrench);
    }
    add_changes(mj, w, &s, &use);
  }
}

/* ---------------------------------------------------------------- R */

void mj_tendon_turns(const qd_mj *mj, qd_mj_workspace *w, int tendon, double s, double *out) {
  const strand at = place(mj, w, tendon);
  for (int k = 0; k < mj->nv; ++k) {
    out[k] += moves_any(w, &at, k) ? s * change_along(w, &at, k, OF_W) : 0.0;
  }
}

void mj_tendons_turn_row(const qd_mj *mj, qd_mj_workspace *w, int row) {
  for (int t = 0; t < mj->ntendon; ++t) {
    const double share = mj_tendon_is_spatial(mj, t) ? share_of_row(mj, w, row, t) : 0.0;
    if (share != 0.0) {
      mj_tendon_turns(mj, w, t, share, w->log_R);
    }
  }
}
