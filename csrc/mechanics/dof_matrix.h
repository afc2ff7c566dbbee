/* A square matrix over some of a model's DOFs, with storage for these only. */
#ifndef QD_MECHANICS_DOF_MATRIX_H
#define QD_MECHANICS_DOF_MATRIX_H

#include <stddef.h>

typedef struct dof_matrix {
  int count;        /* number of its DOFs */
  const int *dofs;  /* (count) */
  const int *place; /* (nv) index of a DOF in dofs; arbitrary for other DOFs */
  double *values;   /* (count, count) */
} dof_matrix;

static inline int dof_matrix_has(const dof_matrix *m, int dof) {
  const int place = m->place[dof];
  return place >= 0 && place < m->count && m->dofs[place] == dof;
}

/* The entry of two DOFs, which the matrix must have. */
static inline double *dof_matrix_at(const dof_matrix *m, int i, int j) {
  return m->values + (size_t)m->place[i] * (size_t)m->count + m->place[j];
}

#endif
