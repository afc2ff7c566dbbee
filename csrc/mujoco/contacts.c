/* Derivatives of contacts by the configuration. Gap, position and frame come from this package's
 * geometry, if it finds the same contact as MuJoCo, or from the caller's derivatives.
 *
 * Forces f and the curvature H of all rows are in the contact's frame; edges of a pyramid are E =
 * normal +- friction tangent, so f = E'f_e, H = E'H_e E. A dof moves both bodies together, and B
 * relative to A: twist S of both if it moves A, and +-S of B relative to A if it moves only one. */
#include "geometry/collide.h"
#include "mujoco/parts.h"

typedef struct mj_contact {
  int dim, row, rows, geom[2], body[2];
  double p[3];                         /* position from the origin */
  const double *frame, *friction, *at; /* at: position in the world */
  double dist;
  double f[6], H[36]; /* in the frame; H rows by 6 */
  double by_gap[6];   /* derivative of f by the gap, through H and R */
  double B[6];        /* damping in aref */
  double change[42];  /* (7, 6) of gap, position, normal, by the twist of B minus that of A */
  int spins;          /* 1: rows depend on the frame's rotation about its normal */
  int weighs;         /* 1: R depends on the Jacobian */
} mj_contact;

/* ---------------------------------------------------------------- geometry */

static const int SHAPES[] = {QD_PLANE,     -1,          QD_SPHERE, QD_CAPSULE,
                             QD_ELLIPSOID, QD_CYLINDER, QD_BOX,    QD_MESH};

static int place_shape(const qd_mj *mj, const qd_mj_meshes *meshes, int geom, placed_shape *out) {
  const int type = mj->geom_type[geom];
  if (type < 0 || type >= (int)(sizeof SHAPES / sizeof *SHAPES) || SHAPES[type] < 0) {
    return 0;
  }
  *out = (placed_shape){.type = SHAPES[type], .size = mj->geom_size + 3 * geom};
  vec3_copy(out->pos, mj->geom_xpos + 3 * geom);
  memcpy(out->rot, mj->geom_xmat + 9 * geom, sizeof out->rot);
  if (out->type == QD_MESH) {
    const int mesh = mj->geom_dataid[geom];
    double shift[3];
    if (meshes == NULL || mesh < 0 || mesh >= meshes->count || meshes->mesh[mesh] == NULL) {
      return 0;
    }
    out->mesh = meshes->mesh[mesh];
    mat3_mul_vec(shift, out->rot, out->mesh->center);
    vec3_axpy(out->pos, 1.0, shift);
  }
  return 1;
}

/* Contacts are the same if positions and gaps differ by less than this, m, and normals by less than
 * that. */
static const double SAME = 1e-8, SAME_NORMAL = 1e-7;

static int is_same(const mj_contact *c, const contact_point *point) {
  double off[3], turn[3];
  vec3_sub(off, c->at, point->pos);
  vec3_sub(turn, c->frame, point->normal);
  return fabs(c->dist - point->dist) < SAME && vec3_dot(off, off) < SAME * SAME &&
         vec3_dot(turn, turn) < SAME_NORMAL * SAME_NORMAL;
}

static int change_by_geometry(const qd_mj *mj, const qd_mj_meshes *meshes, mj_contact *c) {
  placed_shape a, b;
  contact_point found[CONTACTS_PER_PAIR_MAX];
  contact_point_derivative by;
  if (!place_shape(mj, meshes, c->geom[0], &a) || !place_shape(mj, meshes, c->geom[1], &b) ||
      !qd_shape_pair_supported(a.type, b.type)) {
    return 0;
  }
  const int count = shapes_collide(&a, &b, fmax(0.0, c->dist) + SAME, found);
  for (int i = 0; i < count; ++i) {
    if (is_same(c, found + i)) {
      shapes_collide_derivative(&a, &b, found + i, &by);
      memcpy(c->change, by.dist, sizeof by.dist);
      memcpy(c->change + 6, by.pos, sizeof by.pos);
      memcpy(c->change + 24, by.normal, sizeof by.normal);
      return 1;
    }
  }
  return 0;
}

/* ---------------------------------------------------------------- the frame about its normal */

/* Rotation of MuJoCo's first tangent about the normal if the normal changes by dn. The tangent is
 * made from the y axis, or from the z axis if the normal is close to y. */
static double frame_spin(const double *frame, const double dn[3]) {
  const int axis = frame[1] < 0.5 && frame[1] > -0.5 ? 1 : 2;
  const double along = frame[axis];
  return -along * vec3_dot(frame + 6, dn) / sqrt(fmax(1.0 - along * along, 1e-30));
}

static int is_made_from_axis(const double *frame) {
  const int axis = frame[1] < 0.5 && frame[1] > -0.5 ? 1 : 2;
  return fabs(frame[6 + axis]) < 1e-9 && frame[3 + axis] > 0.0;
}

/* The first tangent of a capsule on a plane comes from the capsule's axis. */
static int is_along_capsule(const qd_mj *mj, const mj_contact *c) {
  enum { PLANE = 0, CAPSULE = 3 };
  double axis[3];
  if (mj->geom_type[c->geom[0]] != PLANE || mj->geom_type[c->geom[1]] != CAPSULE) {
    return 0;
  }
  mat3_column(axis, mj->geom_xmat + 9 * c->geom[1], 2);
  return fabs(vec3_dot(axis, c->frame + 6)) < 1e-9 && fabs(vec3_dot(axis, c->frame + 3)) > 1e-6;
}

/* ---------------------------------------------------------------- forces in the frame */

static void read_pyramid(const qd_mj_workspace *w, mj_contact *c) {
  for (int e = 0; e < c->rows; ++e) {
    const int a = 1 + e / 2;
    const double mu = (e % 2 == 0 ? 1.0 : -1.0) * c->friction[a - 1];
    const double f = w->f[c->row + e], h = w->h[c->row + e];
    c->f[0] += f;
    c->f[a] += mu * f;
    c->H[0] += h;
    c->H[a] += mu * h;
    c->H[6 * a] += mu * h;
    c->H[7 * a] += mu * mu * h;
  }
}

/* J v of the contact's rows, in the frame. */
static void read_speeds(const qd_mj *mj, const qd_mj_workspace *w, const mj_contact *c,
                        double out[6]) {
  const double *speed = w->speed + c->row;
  const int edges = mj->efc_type[c->row] == MJ_ROW_PYRAMIDAL;
  out[0] = edges ? 0.5 * (speed[0] + speed[1]) : speed[0];
  for (int a = 1; a < c->dim; ++a) {
    out[a] = edges ? (speed[2 * a - 2] - speed[2 * a - 1]) / (2.0 * c->friction[a - 1]) : speed[a];
  }
}

static void read_forces(const qd_mj *mj, const qd_mj_workspace *w, mj_contact *c) {
  const int type = mj->efc_type[c->row];
  const mj_law law = mj_row_law(mj, c->row);
  memset(c->f, 0, sizeof c->f);
  memset(c->H, 0, sizeof c->H);
  if (type == MJ_ROW_PYRAMIDAL) {
    read_pyramid(w, c);
  } else {
    for (int a = 0; a < c->dim; ++a) {
      c->f[a] = w->f[c->row + a];
    }
    if (type == MJ_ROW_ELLIPTIC) {
      memcpy(c->H, w->cone + 6 * c->row, (size_t)(6 * c->dim) * sizeof *c->H);
    } else {
      c->H[0] = w->h[c->row];
    }
  }
  const double gap = mj->efc_pos[c->row] - mj->efc_margin[c->row];
  double speed[6];
  read_speeds(mj, w, c, speed);
  for (int a = 0; a < c->dim; ++a) {
    c->by_gap[a] = c->f[a] * law.shrinks - c->H[6 * a] * mj_law_slope(&law, gap, speed[0]);
    for (int b = 1; type == MJ_ROW_PYRAMIDAL && b < c->dim; ++b) {
      c->by_gap[a] -= c->H[6 * a + b] * law.damping_slope * speed[b];
    }
    c->B[a] = type == MJ_ROW_ELLIPTIC ? mj_row_law(mj, c->row + a).damping : law.damping;
  }
}

/* Returns 0 if the contact has no rows, or no force. */
static int read_contact(const qd_mj *mj, const qd_mj_workspace *w, int i, mj_contact *c) {
  const int64_t stride = mj->contact_stride;
  c->row = *mj_contact_ints(mj->contact_efc_address, stride, i);
  if (c->row < 0) {
    return 0;
  }
  c->dim = *mj_contact_ints(mj->contact_dim, stride, i);
  c->rows = mj->efc_type[c->row] == MJ_ROW_PYRAMIDAL ? 2 * (c->dim - 1) : c->dim;
  c->frame = mj_contact_doubles(mj->contact_frame, stride, i);
  c->friction = mj_contact_doubles(mj->contact_friction, stride, i);
  c->at = mj_contact_doubles(mj->contact_pos, stride, i);
  c->dist = *mj_contact_doubles(mj->contact_dist, stride, i);
  vec3_sub(c->p, c->at, w->origin);
  for (int k = 0; k < 2; ++k) {
    c->geom[k] = mj_contact_ints(mj->contact_geom, stride, i)[k];
    c->body[k] = c->geom[k] < 0 ? 0 : mj->geom_bodyid[c->geom[k]];
  }
  read_forces(mj, w, c);
  const double *mu = c->friction;
  c->spins = (c->dim >= 3 && (mj->efc_type[c->row] == MJ_ROW_PYRAMIDAL || mu[0] != mu[1])) ||
             (c->dim == 6 && mu[3] != mu[4]);
  return c->f[0] != 0.0;
}

/* ---------------------------------------------------------------- columns */

/* Motion of the contact with one dof. */
typedef struct motion {
  double dp[3], turn[3], gap; /* of the position and the frame; of the gap */
} motion;

static void move_contact(const qd_mj *mj, const mj_contact *c, const double S[6], int moves,
                         motion *m) {
  double twist[6], dn[3];
  memset(m, 0, sizeof *m);
  vec3_copy(twist, S);
  six_velocity_at(twist + 3, S, c->p);
  vec3_set(dn, 0.0, 0.0, 0.0);
  if (moves & 1) {
    vec3_copy(m->dp, twist + 3);
    vec3_cross(dn, S, c->frame);
  }
  if (moves != 3) {
    const double sign = moves == 2 ? 1.0 : -1.0;
    m->gap = sign * six_dot(c->change, twist);
    for (int i = 0; i < 3; ++i) {
      m->dp[i] += sign * six_dot(c->change + 6 * (1 + i), twist);
      dn[i] += sign * six_dot(c->change + 6 * (4 + i), twist);
    }
  }
  vec3_cross(m->turn, c->frame, dn);
  if (!c->spins) {
    return;
  }
  double spin = 0.0;
  if (is_along_capsule(mj, c)) {
    double axis[3], d_axis[3] = {0.0, 0.0, 0.0};
    mat3_column(axis, mj->geom_xmat + 9 * c->geom[1], 2);
    if (moves & 2) {
      vec3_cross(d_axis, S, axis);
    }
    const double flat = vec3_dot(axis, c->frame + 3);
    spin =
        (vec3_dot(c->frame + 6, d_axis) - vec3_dot(axis, c->frame) * vec3_dot(c->frame + 6, dn)) /
        flat;
  } else {
    spin = frame_spin(c->frame, dn);
  }
  vec3_axpy(m->turn, spin, c->frame);
}

/* Change of the relative velocity rows (dim), with T the twist (or acceleration) of B minus that of
 * A, by dT and by the motion of the contact. */
static void rows_change(const mj_contact *c, const double T[6], const double dT[6], const motion *m,
                        double out[6]) {
  double u[3], du[3], other[3], dw[3];
  six_velocity_at(u, T, c->p);
  six_velocity_at(du, dT, c->p);
  vec3_add_cross(du, 1.0, T, m->dp);
  vec3_add_cross(du, -1.0, m->turn, u);
  vec3_cross(other, m->turn, T);
  vec3_sub(dw, dT, other);
  for (int a = 0; a < c->dim; ++a) {
    out[a] = a < 3 ? vec3_dot(c->frame + 3 * a, du) : vec3_dot(c->frame + 3 * (a - 3), dw);
  }
}

/* The wrench on B of forces f in the frame. */
static void wrench_of(const mj_contact *c, const double f[6], double out[6]) {
  double force[3] = {0.0, 0.0, 0.0}, moment[3] = {0.0, 0.0, 0.0};
  for (int a = 0; a < c->dim; ++a) {
    vec3_axpy(a < 3 ? force : moment, f[a], c->frame + 3 * (a % 3));
  }
  vec3_cross(out, c->p, force);
  vec3_axpy(out, 1.0, moment);
  vec3_copy(out + 3, force);
}

/* Twist of B minus that of A, for v, for x and for the rates of mj_spread; or their change by q of
 * one dof. */
typedef struct relative {
  double V[6], X[6], W[6];
} relative;

static void relative_change(const qd_mj_workspace *w, const mj_contact *c, const mj_dof *d,
                            int moves, relative *out) {
  memset(out, 0, sizeof *out);
  for (int k = 0; k < 2; ++k) {
    const mj_body *b = w->body + c->body[k];
    double rest[6], turned[6];
    if (!(moves & (1 << k))) {
      continue;
    }
    const double sign = k == 1 ? 1.0 : -1.0;
    six_copy(rest, b->V);
    six_axpy(rest, -1.0, d->before);
    six_cross(turned, d->S, rest);
    six_axpy(out->V, sign, turned);
    six_copy(rest, b->X);
    six_axpy(rest, -1.0, d->x_before);
    six_cross(turned, d->S, rest);
    six_axpy(out->X, sign, turned);
    if (c->weighs) {
      six_copy(rest, b->W);
      six_axpy(rest, -1.0, d->w_before);
      six_cross(turned, d->S, rest);
      six_axpy(out->W, sign, turned);
    }
  }
}

/* Change of the wrench on B by q of dof d. Adds the change of the row that weighs R, the normal or
 * the first edge, to log_R. */
static void wrench_change(const qd_mj *mj, const qd_mj_workspace *w, const mj_contact *c,
                          const relative *now, const double wrench[6], const mj_dof *d, int moves,
                          double out[6], double *log_R) {
  motion m;
  relative change;
  double by_v[6], by_x[6], df[6], force[3], moment[3], other[3];
  move_contact(mj, c, d->S, moves, &m);
  relative_change(w, c, d, moves, &change);
  rows_change(c, now->V, change.V, &m, by_v);
  rows_change(c, now->X, change.X, &m, by_x);
  if (c->weighs) {
    double by_w[6];
    rows_change(c, now->W, change.W, &m, by_w);
    *log_R += by_w[0] + (mj->efc_type[c->row] == MJ_ROW_PYRAMIDAL ? c->friction[0] * by_w[1] : 0.0);
  }
  for (int a = 0; a < c->dim; ++a) {
    by_x[a] += c->B[a] * by_v[a];
  }
  for (int a = 0; a < c->dim; ++a) {
    df[a] = c->by_gap[a] * m.gap;
    for (int b = 0; b < c->dim; ++b) {
      df[a] -= c->H[6 * a + b] * by_x[b];
    }
  }
  wrench_of(c, df, out);
  /* the same forces in the moved frame; the moment about the position rotates, too */
  vec3_cross(force, m.turn, wrench + 3);
  vec3_cross(other, c->p, wrench + 3);
  vec3_sub(moment, wrench, other);
  vec3_add_cross(out, 1.0, m.turn, moment);
  vec3_add_cross(out, 1.0, c->p, force);
  vec3_add_cross(out, 1.0, m.dp, wrench + 3);
  vec3_axpy(out + 3, 1.0, force);
}

static void add_contact(const qd_mj *mj, qd_mj_workspace *w, mj_contact *c) {
  c->weighs = mj_share_begin(mj, w, c->row);
  const int count = mj_dofs_of_two(w, c->body[0], c->body[1]);
  double wrench[6];
  relative now;
  wrench_of(c, c->f, wrench);
  six_axpy(w->body[c->body[1]].wrench, 1.0, wrench);
  six_axpy(w->body[c->body[0]].wrench, -1.0, wrench);
  six_copy(now.V, w->body[c->body[1]].V);
  six_axpy(now.V, -1.0, w->body[c->body[0]].V);
  six_copy(now.X, w->body[c->body[1]].X);
  six_axpy(now.X, -1.0, w->body[c->body[0]].X);
  six_copy(now.W, w->body[c->body[1]].W);
  six_axpy(now.W, -1.0, w->body[c->body[0]].W);
  for (int q = 0; q < count; ++q) {
    const mj_dof *d = w->dof + w->column[q];
    wrench_change(mj, w, c, &now, wrench, d, w->moves[q], w->change + 6 * q,
                  w->log_R + w->column[q]);
  }
  for (int p = 0; p < count; ++p) {
    if (w->moves[p] == 3) {
      continue;
    }
    const double *S = w->dof[w->column[p]].S, sign = w->moves[p] == 2 ? 1.0 : -1.0;
    double *row = w->rhs + (size_t)w->column[p] * (size_t)w->columns;
    for (int q = 0; q < count; ++q) {
      row[w->column[q]] += sign * six_dot(S, w->change + 6 * q);
    }
  }
  if (c->weighs) {
    mj_share_end(mj, w, c->row, c->rows);
  }
}

static int change_given(int contact, int change_count, const qd_mj_change *changes, mj_contact *c) {
  for (int i = 0; i < change_count; ++i) {
    if (changes[i].contact == contact) {
      memcpy(c->change, changes[i].by_twist, sizeof c->change);
      return 1;
    }
  }
  return 0;
}

void mj_contacts_by_position(const qd_mj *mj, const qd_mj_meshes *meshes, int change_count,
                             const qd_mj_change *changes, qd_mj_workspace *w, qd_mj_info *info) {
  for (int i = 0; i < mj->ncon; ++i) {
    mj_contact c;
    if (!read_contact(mj, w, i, &c)) {
      continue;
    }
    const int framed = !c.spins || is_made_from_axis(c.frame) || is_along_capsule(mj, &c);
    if (framed && c.geom[0] >= 0 && c.geom[1] >= 0 &&
        (change_given(i, change_count, changes, &c) || change_by_geometry(mj, meshes, &c))) {
      add_contact(mj, w, &c);
    } else if (info->unknown_count++ < (int)(sizeof info->unknown / sizeof *info->unknown)) {
      info->unknown[info->unknown_count - 1] = i;
    }
  }
}
