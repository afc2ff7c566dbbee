/* The cone solver's numbers that are choices, in the order of its methods: unit, effect, and what
 * goes wrong with more or less of it. None of them decides what counts as an answer: those are at
 * the head of conic/certificate/certificate.c.
 *
 * "Measured" is a count over some 1200 programs: the problem set, exact, smoothed and from starts,
 * steps with derivatives of the published motions, exact and smoothed, the found steps, random
 * programs, weak costs and the smaller friction problems; factors are those of all of them. It was
 * taken before polishes went on with softer rows. benchmarks/results/tuning.md has all of them, ten
 * times larger and smaller, on 2293 programs. */
#ifndef QD_NUMERICS_CONIC_TUNING_H
#define QD_NUMERICS_CONIC_TUNING_H

#include "base/rounding.h"

/* ------------------------------------------------------------ rounding */

/* Of the largest curvature: less is none. */
#define NO_COST 1e-20

/* ------------------------------------------------------------ shared */

/* Tolerance that callers get who ask for none; also of what is solved for
 * derivatives alone, and the tolerance up to which a polish counts that does not get to rounding.
 */
#define DEFAULT_TOLERANCE 1e-9

/* Relative error from which on a point shows something of the solution: no gap between held and
 * free directions means anything before, and nobody looks at the true residual. More: polishes that
 * fail; less: iterations that a polish would save. */
#define SHOWS 0.1

/* Relative error that counts as arrived where rounding has ended the path. More: answers that the
 * certificate refuses; less: programs without an answer. */
#define ACCEPTABLE 1e-7

/* Share that is small: of a ray's largest force, in what is no part of a proof; of what is allowed,
 * for a residual that nobody looked at before; of an error, below which no progress means rounding;
 * of a multiplier in natural units, beside which a slack is open. */
#define SMALL 1e-3

/* Relative error of a point that shows where the way leads: a caller may stop there for more rows,
 * a guess may be polished, and a polish that gets softer may rise so far. From 0.3 to 1e-3 as good
 * for the first (1001 spheres within a tenth). Also the share of an error by which one that is
 * settled still changes, and of what the free motion violates a cone by: an offset that is less
 * touches already. */
#define ROUGHLY 1e-2

/* Of an error or a slope: what a good step leaves at most. More: factors for guesses that are
 * wrong, steps that are no minimum; less: guesses are left that would arrive. */
#define WELL_LESS 0.3

/* Times a size: where a step that hardly moves aims, beside mu; natural force over length where
 * cuts end (from 30 to 100 within 10 %, from 1000 on slower); the penalty before, while that helps;
 * what another way to an answer may find beside its error; natural energies, the product of each
 * cone where an exact path begins at a guess that no polish has led on from (more: iterations on
 * the way back; less: steps that are short). */
#define TENFOLD 10.0

/* Times that something small is repeated: Newton steps to where a multiplier begins between two
 * ends, rigid rows beside springs renewed about the multipliers found. */
#define FEW_TIMES 6

/* Of an error: an iteration that leaves more is hardly worth it. */
#define HARDLY_LESS 0.9

/* Repetitions with a penalty or a shift of 1e-8 or less, each of which leaves that share. */
#define ROUNDS 4

/* Share of a natural force or length. A cone whose multiplier and slack are both smaller is near
 * two states, and its set is not called strict. More: contacts that carry a little count as
 * undecided, and their steps go along the path for derivatives. Less: rounding of the polish
 * (ACCEPTED beside large forces) decides between states. Measured: ten times more and less the
 * same. */
#define WEAK 1e-9

/* Share of a full step. A shorter one is replaced by pure centring, and starts the search for
 * proofs that there is no solution. More: centring steps and looks for rays that are not needed;
 * less: the path creeps along the boundary. */
#define SHORT_STEP 0.3

/* Penalty of a hard row over the compliance it works against: large against 1, small against the
 * 1e16 at which rounding takes over; repeated solves remove what it leaves. Less: more repetitions;
 * more: rounding in redundant rows. */
#define HARD_ROW_PENALTY 1e8

/* The same where the set is all but certain: from the path's end, and of derivatives. With 3e11
 * forward and reverse products of one derivative differ by 1e-8 where contacts are redundant, with
 * 1e10 by 1e-9. Measured: ten times more, 1 program more solved, 7 % fewer factors; ten times less,
 * 1 program not solved, 7 fewer polished, 2 % more factors. */
#define STIFFEST_ROW 1e10

/* Of unit diagonals: a proximal term where Q alone does not hold x, and what a cost may lack of
 * being semidefinite. More bends steps, which then take more repetitions; less leaves pivots of
 * rounding. */
#define PROXIMAL_SHIFT 1e-10

/* ------------------------------------------------------------ the order of methods */

/* Tiles. So many of a factor's column are taken for one with springs of a contact, until one turns
 * out to need more. More: memory; less: workspaces that are laid out again. */
#define COMPLIANT_TILES 24

/* Powers of two between held and free directions at which the path stops for a polish, and by which
 * they are to be farther apart for the next one. A guess counts only with its certificate, so an
 * early failure costs a few factors and no accuracy. More: iterations that the polish would save;
 * less: polishes from sets that are not yet right. */
#define CLEAR_WIDTH 10

/* Iterations that the path leaves for the method of multipliers, of exact programs: so many, or
 * half of fewer than twice that. More: paths end early that would arrive; less: no answer where
 * rounding ends the path. */
#define KEPT_ITERATIONS 40

/* ------------------------------------------------------------ dense programs */

/* Variables up to which equalities are taken out first; beyond, only of programs that are not
 * solved with them: their rows have few entries as a rule, and would have all. More: time with the
 * cube of it; less: nearly dependent equalities end at their penalty's accuracy. */
#define SPACE_LIMIT 64

/* Variables up to which a program stays as it is; larger ones go into tiles that begin where their
 * blocks do. Less: a stack of ten boxes (69) takes a fifth longer. */
#define FEW_COLUMNS 128

/* ------------------------------------------------------------ the path: where it begins */

/* Natural force over length, of the penalised problem whose path begins the path. */
#define PATH_START_STIFFNESS 2.0

/* Natural energies: product of each cone there. With 0.01 problem set and motions took up to three
 * times the iterations. Measured: ten times more, 4 % more factors; ten times less, 1 program more
 * solved, 2 % more factors. */
#define PATH_START_PRODUCT 6.0

/* Natural length over the mean offset. With FORCE_SHARE within a factor 3 of the best pair picked
 * by hand; violation alone took up to twice the iterations. */
#define LENGTH_SHARE 0.5

/* Natural force over what the cost asks of the largest row. Measured: ten times more, 1 program not
 * solved, 4 % more factors; ten times less, 21 fewer polished, 4 % more factors. */
#define FORCE_SHARE 2.0

/* ------------------------------------------------------------ the path: its end */

/* Iterations without progress that end a path whose error is below SMALL. */
#define STALLED_COUNT 15

/* ------------------------------------------------------------ the path: proofs */

/* Iterations before proofs are looked for, unless steps are short. More: infeasible programs take
 * longer; less: a product with all rows in each step of the others. */
#define CERTIFICATE_FROM 8

/* Natural sizes: a ray excludes every solution up to so many. Less calls far solutions infeasible,
 * for the certificate to refute; more only lets the path go on. */
#define CERTIFICATE_SCALE 1e6

/* Natural sizes: a point farther out is asked whether the cost falls for ever from there. More:
 * unbounded programs take longer; less: products with all rows in vain. */
#define FAR_OUT 1e4

/* ------------------------------------------------------------ its steps */

/* Of the way to the boundary. Nearer to 1: points from which the next step is short; less: a factor
 * that errors cannot fall below in a step. */
#define STEP_FRACTION 0.99

/* Iterations without progress after which a barrier's steps do without the second-order term, which
 * can send programs round for ever whose intervals are wide beside their forces, and after which an
 * exact path from a guess is left for one from the cold start. More: longer detours; less: steps
 * that are shorter than they could be. */
#define PATIENCE 5

/* Such corrections at most, while steps get longer. Shaken heaps of 270 spheres take 8 % fewer
 * products of tiles with 2, 13 to 15 % with 3, one of 1001 at rest 30 and 27 %; with 5 or 8 the
 * back-solves cost what the factors save. */
#define CORRECTIONS 3

/* Share of a full step, below which the path goes up without feasibility, where proofs are; and of
 * sqrt(mu), a change of the second-order term beyond which it is solved for again (one back-solve,
 * and a fifth fewer iterations). More: feasible programs are driven outwards; less: infeasible ones
 * creep. */
#define TINY_STEP 0.03

/* ------------------------------------------------------------ the polish */

/* Newton steps. More (20) solve two of forty rest states more and cost the others time; less: sets
 * that are still to change. */
#define NEWTON_LIMIT 12

/* Natural forces: contacts nearer than this share of a near length come to rest. Measured: ten
 * times more and less the same. */
#define REST_FORCE 0.1

/* Relative error of the natural map of an answer that counts as polished. Less: sets that are right
 * go on to the next method; more: derivatives of sets that are not quite right. */
#define ACCEPTED 1e-11

/* ------------------------------------------------------------ cuts */

/* Violated blocks at the minimiser of the cost: with more, cuts take longer than the path.
 * Measured: ten times more, the same; ten times less, 19 % more factors. */
#define CUTS_START_LIMIT 24

/* Their number times columns, likewise. */
#define CUTS_START_WORK 900

/* Rows brought in, and looks at all rows. More: programs that go along the path in the end have
 * lost more before; less: programs that the path takes longer for. */
#define CUTS_ROUND_LIMIT 64

/* Near lengths, where the polish has to finish. Less: more cuts; more: polishes that fail.
 * Measured: ten times more, 4 % more factors; ten times less, 2 % fewer factors. */
#define NEAR_ENOUGH 3e-3

/* ------------------------------------------------------------ path or cuts */

/* Rows of the program over rows that are dragged: with fewer, the path may be the way. */
#define IDLE_SHARE 2.0

/* Dragged rows over unknowns: with fewer, cuts are tried first. Without this choice a power grasp
 * at rest takes 1.3 times as long, all other sets as long as with it. */
#define MANY_DRAGGED 0.8

/* Violated rows over unknowns: with more, a guess that all of them rest comes before cuts. More:
 * cuts and the path for what lies on many contacts, twice to four times as many factors; from 2 on,
 * 1 % more factors: guesses that are wrong. */
#define CROWD 4.0

/* ------------------------------------------------------------ the method of multipliers */

/* Newton steps of one inner problem. */
#define INNER_LIMIT 60

/* Penalty over the compliance it works against, at first. */
#define FIRST_STIFFNESS 1e3

/* Points on one line. */
#define SEARCH_LIMIT 20

/* ------------------------------------------------------------ derivatives */

/* Weakest pivot of a factor whose solves need no refinement. More: refinements that change nothing;
 * less: derivatives lose as many digits. */
#define WELL_CONDITIONED 1e-4

#endif
