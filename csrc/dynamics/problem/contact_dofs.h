/* The degrees of freedom that affect a contact. */
#ifndef QD_DYNAMICS_CONTACT_DOFS_H
#define QD_DYNAMICS_CONTACT_DOFS_H

#include "mechanics/model.h"

/* DOFs that move bodies A and B of a contact relative to each other: those on the path to one body
 * but not on the path to the other. */
typedef struct contact_dofs {
  const int *a, *b; /* the paths without their common part */
  int a_count, b_count;
} contact_dofs;

static inline void contact_dofs_find(contact_dofs *d, const qd_model *model,
                                     const qd_contact *contact) {
  d->a = body_chain(model, contact->body_a, &d->a_count);
  d->b = body_chain(model, contact->body_b, &d->b_count);
  while (d->a_count > 0 && d->b_count > 0 && *d->a == *d->b) {
    ++d->a;
    ++d->b;
    --d->a_count;
    --d->b_count;
  }
}

#endif
