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

/* Of entries of size one, behind pivots: less is zero, and ties. More: what differs counts as the
 * same; less: rounding decides between equals. */
#define PIVOTED 1e-11

/* Of what an iteration, a chain of products or a factor with weak pivots has led to: as much as
 * that is known to. More: neighbours count as the same; less: what rounding has left decides. */
#define WORKED_OUT 1e-10

/* Of numbers that callers have worked out, or that answers are known to: what hold to so much, or
 * are at a limit. More: programs are solved that are none; less: rounding of the caller's is
 * refused. */
#define CALLERS_ROUNDING 1e-9

/* Half of the digits: the sine of an angle whose cosine is one to rounding, an error whose square
 * is rounding, and what numbers in single precision are known to at best. More: nearly parallel
 * things count as parallel; less: directions are taken from rounding. */
#define HALF_DIGITS 1e-8

/* Share that is next to nothing: of a size, a motion, a sine; of a full step, of a row's curvature
 * beside others, of a direction that is left, of the tolerance where rounding is to end a path, of
 * a barrier's g'z beside what it is a sum of, of natural sizes between cones that touch; a relative
 * error of a point that is all but the solution. More: paths are given up on that recover,
 * derivatives are called exact that depend on a choice of forces, cuts begin at points that have
 * diverged; less: iterations and refinements that change nothing, derivatives at a kink that nobody
 * is told of. */
#define SLIGHT 1e-6

#endif
