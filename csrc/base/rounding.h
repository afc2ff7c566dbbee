/* Relative tolerances for rounding errors, one for each way in which a number came about. Each is
 * relative to the numbers from which the tested one was computed. "Larger" and "smaller" say what
 * fails if a constant is made ten times larger or smaller. */
#ifndef QD_BASE_ROUNDING_H
#define QD_BASE_ROUNDING_H

/* Rounding error of one number, and of a difference of two; a pivot below this share of its
 * diagonal entry is zero. Larger: solutions with a true residual are accepted. Smaller: rounding
 * counts as a residual. */
#define LAST_DIGITS 1e-15

/* Rounding error of a sum, relative to its terms or to a natural size. Larger: small slacks and
 * forces beside large ones are lost. Smaller: iterations follow rounding errors up to their
 * limit. */
#define SUM_ROUNDING 1e-14

/* Rounding error after cancellation: of the difference of two numbers, or of squares of a length.
 * Larger differences count as nonzero. */
#define CANCELLED 1e-13

/* Error relative to the largest number of the whole problem, or to the largest pivot. If all errors
 * are below, none matters. Larger: entries that are small beside the largest are ignored. Smaller:
 * rounding errors are refined again and again. */
#define NEGLIGIBLE 1e-12

/* Rounding error of entries of size one after pivoting: smaller entries are zero, and values this
 * close are ties. Larger: different values count as equal. Smaller: rounding decides between equal
 * values. */
#define PIVOTED 1e-11

/* Error of the result of an iteration, of a chain of products, or of a factorisation with weak
 * pivots. Larger: neighbouring values count as equal. Smaller: rounding decides. */
#define WORKED_OUT 1e-10

/* Error of numbers that a caller computed, and accuracy of answers: a value this close to a limit
 * is at the limit. Larger: inconsistent programs are solved. Smaller: the caller's rounding errors
 * are rejected. */
#define CALLERS_ROUNDING 1e-9

/* Half of the digits: the sine of an angle whose cosine is one to rounding, an error whose square
 * is rounding, and the best accuracy of numbers in single precision. Larger: nearly parallel
 * vectors count as parallel. Smaller: directions are computed from rounding errors. */
#define HALF_DIGITS 1e-8

/* A share that is negligible but above rounding: of a size, a motion, a sine, a full step; of a
 * row's curvature relative to others; of what is left of a direction; of the tolerance at which
 * rounding may end a path; of a barrier's g'z relative to its terms; of natural sizes, between
 * cones that touch; and the relative error of a point that is almost the solution. Larger: paths
 * that would recover are given up, derivatives that depend on a choice of forces are called exact,
 * cuts begin at points that have diverged. Smaller: iterations and refinements that change nothing,
 * and derivatives at a kink without a warning. */
#define SLIGHT 1e-6

#endif
