/* What counts as nothing beside the numbers that it is left of, by how those came about. */
#ifndef QD_BASE_ROUNDING_H
#define QD_BASE_ROUNDING_H

/* Of a number: what its last digits may be off by, and what a difference of such numbers, or a
 * pivot beside its diagonal, may leave. More: answers that miss something; less: rounding counts as
 * missed. */
#define LAST_DIGITS 1e-15

/* Of the numbers that a sum is made of, or of a natural size: less is rounding of the sum. More:
 * small slacks and forces beside large ones are lost; less: rounding is followed to the limit of
 * iterations. */
#define SUM_ROUNDING 1e-14

/* Of two numbers that cancel, or squares of a length: less is zero. */
#define CANCELLED 1e-13

/* Of the largest numbers of all, and of pivots: where no more is missed, none of their places
 * matters. More: what is small beside them is not looked at; less: rounding is looked at again and
 * again. */
#define NEGLIGIBLE 1e-12

/* Of numbers that callers have worked out, or that answers are known to: what hold to so much, or
 * are at a limit. More: programs are solved that are none; less: rounding of the caller's is
 * refused. */
#define CALLERS_ROUNDING 1e-9

#endif
