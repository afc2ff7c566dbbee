/* Reads a fuzzer's bytes as numbers that are worth trying: often round or on a boundary, so that
 * parallel faces, equal centres and touching shapes come up, sometimes anything. */
#ifndef QD_FUZZ_INPUT_H
#define QD_FUZZ_INPUT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fuzz_input {
  const uint8_t *data;
  size_t size;
} fuzz_input;

/* A broken promise stops the fuzzer, which keeps the input. */
#define FUZZ_CHECK(condition, ...)                                                                 \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: failed: %s: ", __FILE__, __LINE__, #condition);                      \
      fprintf(stderr, __VA_ARGS__);                                                                \
      fprintf(stderr, "\n");                                                                       \
      abort();                                                                                     \
    }                                                                                              \
  } while (0)

static inline uint64_t fuzz_bits(fuzz_input *in, size_t bytes) {
  uint64_t value = 0;
  const size_t taken = bytes < in->size ? bytes : in->size;
  memcpy(&value, in->data, taken);
  in->data += taken;
  in->size -= taken;
  return value;
}

static inline int fuzz_integer(fuzz_input *in, int low, int high) {
  return low + (int)(fuzz_bits(in, 1) % (uint64_t)(high - low + 1));
}

/* In [-1, 1]: half of the time a round number. */
static inline double fuzz_unit(fuzz_input *in) {
  static const double ROUND[] = {0, 1, -1, 0.5, -0.5, 0.25, 1e-3, -1e-3, 1e-9, -1e-9, 1e-15, 0.75};
  const uint64_t kind = fuzz_bits(in, 1);
  if (kind < 128) {
    return ROUND[kind % (sizeof ROUND / sizeof *ROUND)];
  }
  return (double)(int64_t)(fuzz_bits(in, 4) - 2147483648u) / 2147483648.0;
}

/* Positive, between low and high, evenly in its logarithm; often the middle. */
static inline double fuzz_size(fuzz_input *in, double low, double high) {
  const double x = fuzz_unit(in);
  return sqrt(low * high) * pow(high / low, 0.5 * x);
}

/* Any double: mostly of moderate size, rarely any bits at all, NaN and infinity among them; but no
 * finite number whose products leave the range of doubles. */
static inline double fuzz_any(fuzz_input *in) {
  const uint64_t kind = fuzz_bits(in, 1);
  double value;
  if (kind < 4) {
    const uint64_t bits = fuzz_bits(in, 8);
    memcpy(&value, &bits, sizeof value);
    return fabs(value) < 1e-12 || (isfinite(value) && fabs(value) > 1e12) ? 0.0 : value;
  }
  value = fuzz_unit(in);
  return kind < 16 ? value * pow(10.0, fuzz_integer(in, -12, 12)) : value;
}

static inline void fuzz_quaternion(fuzz_input *in, double quat[4]) {
  double norm = 0.0;
  for (int i = 0; i < 4; ++i) {
    quat[i] = fuzz_unit(in);
    norm += quat[i] * quat[i];
  }
  if (norm < 1e-6) {
    quat[0] = 1.0;
    quat[1] = quat[2] = quat[3] = 0.0;
    return;
  }
  for (int i = 0; i < 4; ++i) {
    quat[i] /= sqrt(norm);
  }
}

static inline void fuzz_check_finite(const double *values, int count, const char *what) {
  for (int i = 0; i < count; ++i) {
    FUZZ_CHECK(isfinite(values[i]), "%s %d", what, i);
  }
}

#endif
