/* The degrees of freedom that affect a contact. */
#ifndef QD_DYNAMICS_CONTACT_DOFS_H
#define QD_DYNAMICS_CONTACT_DOFS_H

#include "mechanics/model.h"

/* DOFs that move bodies A and B of a contact relative to each other: those on the path to one body
 * but not on the path to the other. */
typedef struct contact_dofs {
  int_list on[2]; /* the paths without their common part */
} contact_dofs;

static inline contact_dofs contact_dofs_find(const qd_model *model, int body_a, int body_b) {
  int_list a = body_chain(model, body_a), b = body_chain(model, body_b);
  for (; a.count > 0 && b.count > 0 && *a.at == *b.at; --a.count, --b.count) {
    ++a.at;
    ++b.at;
  }
  return (contact_dofs){{a, b}};
}

#endif
