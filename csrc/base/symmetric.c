#include "base/symmetric.h"

#include <math.h>
#include <string.h>

#define SWEEPS 30

/* Makes A_pq zero by a rotation of rows and columns p and q. */
static void rotate(double *A, double *V, int n, int p, int q) {
  const double apq = A[p * n + q];
  if (apq == 0.0) {
    return;
  }
  const double theta = (A[q * n + q] - A[p * n + p]) / (2.0 * apq);
  const double t = copysign(1.0, theta) / (fabs(theta) + sqrt(theta * theta + 1.0));
  const double c = 1.0 / sqrt(t * t + 1.0), s = t * c;
  for (int k = 0; k < n; ++k) {
    const double kp = A[k * n + p], kq = A[k * n + q];
    A[k * n + p] = c * kp - s * kq;
    A[k * n + q] = s * kp + c * kq;
  }
  for (int k = 0; k < n; ++k) {
    const double pk = A[p * n + k], qk = A[q * n + k];
    A[p * n + k] = c * pk - s * qk;
    A[q * n + k] = s * pk + c * qk;
  }
  for (int k = 0; k < n; ++k) {
    const double kp = V[k * n + p], kq = V[k * n + q];
    V[k * n + p] = c * kp - s * kq;
    V[k * n + q] = s * kp + c * kq;
  }
}

void symmetric_eigen(double *A, double *V, double *values, int n) {
  memset(V, 0, (size_t)(n * n) * sizeof(double));
  for (int i = 0; i < n; ++i) {
    V[i * n + i] = 1.0;
  }
  for (int sweep = 0; sweep < SWEEPS; ++sweep) {
    double off = 0.0, all = 0.0;
    for (int i = 0; i < n * n; ++i) {
      all += A[i] * A[i];
      off += i / n != i % n ? A[i] * A[i] : 0.0;
    }
    if (off <= 1e-30 * all) {
      break;
    }
    for (int p = 0; p < n; ++p) {
      for (int q = p + 1; q < n; ++q) {
        rotate(A, V, n, p, q);
      }
    }
  }
  for (int i = 0; i < n; ++i) {
    values[i] = A[i * n + i];
  }
}
