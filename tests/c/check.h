/* Checks of the C tests: a failed one prints where, and what the values were; the test goes on and
 * its exit status tells. Each test_*.c is a program of its own:
 *   int main(void) { test_this(); test_that(); return check_report(); } */
#ifndef QD_TESTS_CHECK_H
#define QD_TESTS_CHECK_H

#include <math.h>
#include <stdio.h>

static int check_count, check_failures;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    ++check_count;                                                                                 \
    if (!(condition)) {                                                                            \
      ++check_failures;                                                                            \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                      \
    }                                                                                              \
  } while (0)

/* |value - expected| <= tolerance; NaN fails. */
#define CHECK_NEAR(value, expected, tolerance)                                                     \
  do {                                                                                             \
    const double check_value = (value), check_expected = (expected);                               \
    ++check_count;                                                                                 \
    if (!(fabs(check_value - check_expected) <= (tolerance))) {                                    \
      ++check_failures;                                                                            \
      fprintf(stderr, "%s:%d: %s = %.17g, expected %.17g (off by %.3g)\n", __FILE__, __LINE__,     \
              #value, check_value, check_expected, fabs(check_value - check_expected));            \
    }                                                                                              \
  } while (0)

static inline int check_report(void) {
  printf("%d checks, %d failed\n", check_count, check_failures);
  return check_failures > 0 || check_count == 0;
}

#endif
