/* Derivatives by q of all rows except those of contacts: limits here, equalities in equalities.c.
 */
#include "base/quat.h"
#include "mujoco/parts.h"

/* A limit: its row is the derivative of its gap. */
static void limit_by_position(const qd_mj *mj, qd_mj_workspace *w, int i) {
  const double gap = mj->efc_pos[i] - mj->efc_margin[i];
  const mj_law law = mj_row_law(mj, i);
  if (w->h[i] == 0.0) {
    return;
  }
  const double by_gap = -w->h[i] * mj_law_slope(&law, gap, w->speed[i]) + w->f[i] * law.shrinks;
  const int count = mj_rows_compact(mj, w, i, 1);
  for (int p = 0; p < count; ++p) {
    double *out = w->rhs + (size_t)w->column[p] * (size_t)w->columns;
    for (int c = 0; c < count; ++c) {
      out[w->column[c]] += by_gap * w->compact[p] * w->compact[c];
    }
  }
}

/* The axis of a ball joint's rotation, in body axes, and the derivative of minus the axis, which is
 * the row of its limit: -(1 - n n') J^-1 / angle. 0: no rotation. */
static int axis_turns(const qd_mj *mj, int joint, double n[3], double by[9]) {
  double r[3], inverse[9];
  quat_log(r, mj->qpos + mj->jnt_qposadr[joint]);
  vec3_scale(r, r, -1.0);
  vec3_scale(n, r, -1.0);
  const double angle = vec3_normalize(n);
  if (!(angle > 0.0)) {
    return 0;
  }
  rotation_left_jacobian_inverse(inverse, r);
  for (int c = 0; c < 3; ++c) {
    double column[3];
    mat3_column(column, inverse, c);
    vec3_axpy(column, -vec3_dot(n, column), n);
    for (int a = 0; a < 3; ++a) {
      by[3 * a + c] = -column[a] / angle;
    }
  }
  return 1;
}

static void ball_limit_turns(const qd_mj *mj, qd_mj_workspace *w, int i) {
  const int joint = mj->efc_id[i], dof = mj->jnt_dofadr[joint];
  const double damping = mj_row_law(mj, i).damping;
  double n[3], by[9];
  if (w->h[i] == 0.0 || !axis_turns(mj, joint, n, by)) {
    return;
  }
  for (int c = 0; c < 3; ++c) {
    double change = 0.0; /* change of r = J x + B J v */
    for (int a = 0; a < 3; ++a) {
      change += by[3 * a + c] * (w->x[dof + a] + damping * mj->qvel[dof + a]);
    }
    for (int a = 0; a < 3; ++a) {
      w->rhs[(size_t)(dof + a) * (size_t)w->columns + (size_t)(dof + c)] +=
          by[3 * a + c] * w->f[i] + w->h[i] * n[a] * change;
    }
  }
}

/* R of a row that is no contact. Dry friction at its end does not depend on R. */
static void weigh(const qd_mj *mj, qd_mj_workspace *w, int i) {
  const int type = mj->efc_type[i], joint = mj->efc_id[i];
  double n[3], by[9];
  if (type >= MJ_ROW_FRICTIONLESS || w->h[i] == 0.0 || !mj_share_begin(mj, w, i)) {
    return;
  }
  mj_tendons_turn_row(mj, w, i);
  if (type == MJ_ROW_EQUALITY) {
    mj_equality_turns_row(mj, w, i);
  }
  if (type == MJ_ROW_LIMIT_JOINT && mj->jnt_type[joint] == MJ_BALL &&
      axis_turns(mj, joint, n, by)) {
    const int dof = mj->jnt_dofadr[joint];
    for (int c = 0; c < 3; ++c) {
      for (int a = 0; a < 3; ++a) {
        w->log_R[dof + c] += by[3 * a + c] * w->along[dof + a];
      }
    }
  }
  mj_share_end(mj, w, i, 1);
}

void mj_rows_by_position(const qd_mj *mj, qd_mj_workspace *w) {
  for (int i = 0; i < mj->nefc; ++i) {
    weigh(mj, w, i);
    switch (mj->efc_type[i]) {
    case MJ_ROW_EQUALITY:
      if (i == 0 || mj->efc_type[i - 1] != MJ_ROW_EQUALITY || mj->efc_id[i - 1] != mj->efc_id[i]) {
        mj_equality_by_position(mj, w, i);
      }
      break;
    case MJ_ROW_LIMIT_JOINT:
      if (mj->jnt_type[mj->efc_id[i]] == MJ_BALL) {
        ball_limit_turns(mj, w, i);
      }
      limit_by_position(mj, w, i);
      break;
    case MJ_ROW_LIMIT_TENDON:
      limit_by_position(mj, w, i);
      break;
    default:
      break;
    }
  }
}
