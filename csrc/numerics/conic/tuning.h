/* Tuning constants of the cone solver, in the order of its methods. Each comment gives the unit,
 * the effect, and what goes wrong with more or less of it. None of these constants decides which
 * answers are accepted: conic/certificate/certificate.c does. Natural units of length (slack),
 * force (multiplier) and energy (their product) are estimated for each program
 * (conic/program/units.c).
 *
 * "Measured" counts some 1200 programs: the problem set (exact, smoothed and warm-started), steps
 * with derivatives of the published motions, random programs, weak costs and small friction
 * problems; factors are those of all of them. The counts are older than the softening of held rows.
 * benchmarks/results/tuning.md has values ten times larger and smaller, on 2293 programs. */
#ifndef QD_NUMERICS_CONIC_TUNING_H
#define QD_NUMERICS_CONIC_TUNING_H

#include "base/rounding.h"

/* ------------------------------------------------------------ rounding */

/* Relative to the largest curvature: smaller curvatures count as zero. */
#define NO_COST 1e-20

/* ------------------------------------------------------------ shared */

/* Default tolerance. Also the tolerance of solves that only serve derivatives, and the largest
 * error at which a polish that stalls above rounding is accepted. */
#define DEFAULT_TOLERANCE 1e-9

/* Relative error below which an iterate is informative. Above it, the gap between held and free
 * directions is not evaluated and the true residual is not computed. More: polishes that fail;
 * less: iterations that a polish would save. */
#define SHOWS 0.1

/* Relative error that is accepted where rounding has ended the path. More: answers that the
 * certificate refuses; less: programs without an answer. */
#define ACCEPTABLE 1e-7

/* A small share: of a ray's largest force (smaller multipliers take no part in an infeasibility
 * proof); of the allowed error, for a residual that was only updated by recurrence so far; of an
 * error, below which stalling means rounding; of a multiplier in natural units, above which a slack
 * counts as open. */
#define SMALL 1e-3

/* Relative error of an approximate solution. At this error a caller may stop to add rows, a guess
 * may be polished, and the error of a polish may rise when its held rows are softened. For the
 * first use, 0.3 to 1e-3 are equally good. Also the relative change of an error below which it
 * counts as settled, and the offset of a cone, relative to its violation by the free motion, below
 * which the cone counts as touching. */
#define ROUGHLY 1e-2

/* Largest acceptable ratio of an error or a slope after a step to the one before. More:
 * factorisations for wrong guesses, steps that do not minimise; less: good guesses are
 * abandoned. */
#define WELL_LESS 0.3

/* A factor of ten: for the target relative to mu of a step that hardly moves; for the stiffness
 * (natural force over length) where cuts end (30 to 100 is as good, 1000 is slower); for increasing
 * a penalty while that helps; for the error that an alternative solution may have; and, in natural
 * energies, for the product of each cone where an exact path starts from a guess that the polish
 * could not use (more: iterations on the way back; less: short steps). */
#define TENFOLD 10.0

/* Limit on short repetitions: Newton steps to a multiplier's start between two ends, and updates of
 * rigid rows beside springs about the multipliers found. */
#define FEW_TIMES 6

/* Ratio of errors: an iteration that leaves more than this is not worth its cost. */
#define HARDLY_LESS 0.9

/* Repetitions with a penalty or a shift; each one reduces the remaining error to 1e-8 or less of
 * itself. */
#define ROUNDS 4

/* Share of a natural force or length. A cone whose multiplier and slack are both smaller is near
 * two states, and its active set is not strict. More: contacts with little load count as undecided,
 * and their steps follow the path for derivatives. Less: rounding of the polish (ACCEPTED beside
 * large forces) decides between states. Measured: ten times more and less give the same. */
#define WEAK 1e-9

/* Share of a full step. A shorter step is replaced by pure centring and starts the search for
 * infeasibility and unboundedness proofs. More: unneeded centring steps and searches; less: the
 * path creeps along the boundary. */
#define SHORT_STEP 0.3

/* Penalty of a hard row relative to the compliance that it works against. It is large against 1 and
 * small against 1e16, where rounding takes over; repeated solves remove the remaining error. Less:
 * more repetitions; more: rounding errors in redundant rows. */
#define HARD_ROW_PENALTY 1e8

/* The same penalty where the active set is nearly certain: in a polish from the path and for
 * derivatives. With 3e11, forward and reverse products of one derivative differ by 1e-8 where
 * contacts are redundant, with 1e10 by 1e-9. Measured: ten times more, 1 program more solved, 7 %
 * fewer factors; ten times less, 1 program not solved, 7 fewer polished, 2 % more factors. */
#define STIFFEST_ROW 1e10

/* Relative to unit diagonals: the proximal term where Q alone does not determine x, and the
 * negative curvature that a semidefinite cost may have. More bends steps, which then need more
 * repetitions; less leaves pivots that are rounding. */
#define PROXIMAL_SHIFT 1e-10

/* ------------------------------------------------------------ the order of methods */

/* Tiles of the factor's column that are reserved for a contact with springs, until a program needs
 * more. More: memory; less: workspaces are laid out again. */
#define COMPLIANT_TILES 24

/* Gap between held and free directions, in powers of two, at which the path stops for a polish, and
 * the widening of the gap before the next polish. A guess counts only with its certificate, so an
 * early failure costs a few factors and no accuracy. More: iterations that the polish would save;
 * less: polishes from wrong active sets. */
#define CLEAR_WIDTH 10

/* Iterations of an exact program that are reserved for the method of multipliers; half of the limit
 * where it is below twice this number. More: paths end before they converge; less: no answer where
 * rounding ends the path. */
#define KEPT_ITERATIONS 40

/* ------------------------------------------------------------ dense programs */

/* Largest number of variables for which equalities are eliminated first. Larger programs eliminate
 * them only if they were not solved with them, since sparse rows become dense. More: time with the
 * cube of it; less: nearly dependent equalities are only as accurate as their penalty. */
#define SPACE_LIMIT 64

/* Largest number of variables for which a dense program stays dense; larger ones are rewritten in
 * tiles that start at their blocks. Less: a stack of ten boxes (69 variables) takes a fifth
 * longer. */
#define FEW_COLUMNS 128

/* ------------------------------------------------------------ the path: where it begins */

/* Natural force over length: the stiffness of the penalised problem that gives the path's starting
 * point. */
#define PATH_START_STIFFNESS 2.0

/* Natural energies: product of slack and multiplier of each cone at the start. With 0.01, the
 * problem set and the motions took up to three times the iterations. Measured: ten times more, 4 %
 * more factors; ten times less, 1 program more solved, 2 % more factors. */
#define PATH_START_PRODUCT 6.0

/* Natural length over the mean offset. With FORCE_SHARE it is within a factor 3 of the best
 * hand-picked pair; the violation alone took up to twice the iterations. */
#define LENGTH_SHARE 0.5

/* Natural force over the force that the cost asks of the largest row. Measured: ten times more, 1
 * program not solved, 4 % more factors; ten times less, 21 fewer polished, 4 % more factors. */
#define FORCE_SHARE 2.0

/* ------------------------------------------------------------ the path: its end */

/* Iterations without progress after which a path with an error below SMALL ends. */
#define STALLED_COUNT 15

/* ------------------------------------------------------------ the path: proofs */

/* Iterations before infeasibility proofs are sought, unless steps are short. More: infeasible
 * programs take longer; less: each step of feasible programs costs a product with all rows. */
#define CERTIFICATE_FROM 8

/* Natural sizes: an infeasibility ray must exclude every solution up to this size. Less calls far
 * solutions infeasible, which the certificate refutes; more only lets the path go on. */
#define CERTIFICATE_SCALE 1e6

/* Natural sizes: beyond this size of x the program is tested for unboundedness. More: unbounded
 * programs take longer; less: useless products with all rows. */
#define FAR_OUT 1e4

/* ------------------------------------------------------------ its steps */

/* Share of the way to the boundary that a step takes. Nearer to 1: the next step is short; less:
 * each step leaves a larger share of the errors. */
#define STEP_FRACTION 0.99

/* Iterations without progress after which a barrier's steps omit the second-order term, which can
 * make programs cycle whose intervals are wide relative to their forces, and after which an exact
 * path from a guess is restarted cold. More: longer detours; less: shorter steps than necessary. */
#define PATIENCE 5

/* Largest number of repeated second-order corrections of large programs, while steps get longer.
 * Shaken heaps of 270 spheres take 8 % fewer tile products with 2 and 13 to 15 % fewer with 3, one
 * of 1001 at rest 30 and 27 % fewer; with 5 or 8 the back-solves cost what the factors save. */
#define CORRECTIONS 3

/* Share of a full step below which the path ignores the residuals and raises the multipliers,
 * towards a proof of infeasibility. Also the change of the second-order term, relative to sqrt(mu),
 * beyond which the step is solved again (one back-solve, a fifth fewer iterations). More: feasible
 * programs are driven outwards; less: infeasible ones creep. */
#define TINY_STEP 0.03

/* ------------------------------------------------------------ the polish */

/* Newton steps of a polish. More (20) solves two of forty rest states more and costs the others
 * time; less: active sets that have not settled. */
#define NEWTON_LIMIT 12

/* Natural forces: a contact that is nearer than this share of a near length is assumed to come to
 * rest. Measured: ten times more and less give the same. */
#define REST_FORCE 0.1

/* Relative error of the natural map below which an answer counts as polished. Less: correct active
 * sets are passed on to the next method; more: derivatives of sets that are not quite correct. */
#define ACCEPTED 1e-11

/* ------------------------------------------------------------ cuts */

/* Largest number of violated blocks at the minimiser of the cost for which cuts are tried.
 * Measured: ten times more, the same; ten times less, 19 % more factors. */
#define CUTS_START_LIMIT 24

/* Largest product of that number and the number of columns, for the same choice. */
#define CUTS_START_WORK 900

/* Largest number of rows that cuts add, and of searches through all rows. More: programs that end
 * on the path have lost more time before; less: programs go to the path that cuts solve faster. */
#define CUTS_ROUND_LIMIT 64

/* Near lengths: violation below which cuts leave the rest to the polish. Less: more cuts; more:
 * polishes that fail. Measured: ten times more, 4 % more factors; ten times less, 2 % fewer
 * factors. */
#define NEAR_ENOUGH 3e-3

/* ------------------------------------------------------------ path or cuts */

/* Largest ratio of the program's rows to its dragged rows for which the path is tried before
 * cuts. */
#define IDLE_SHARE 2.0

/* Smallest ratio of dragged rows to unknowns for which the path is tried before cuts. Without this
 * choice, a power grasp at rest takes 1.3 times as long and the other sets take the same time. */
#define MANY_DRAGGED 0.8

/* Ratio of violated rows to unknowns above which the guess that all contacts rest is tried before
 * cuts. More: cuts and the path for bodies on many contacts, two to four times as many factors;
 * less (2): wrong guesses, 1 % more factors. */
#define CROWD 4.0

/* ------------------------------------------------------------ the method of multipliers */

/* Newton steps of one inner problem. */
#define INNER_LIMIT 60

/* Initial penalty, relative to the compliance that it works against. */
#define FIRST_STIFFNESS 1e3

/* Points of one line search. */
#define SEARCH_LIMIT 20

/* ------------------------------------------------------------ derivatives */

/* Weakest pivot of a factor whose solves need no refinement. More: refinements that change nothing;
 * less: derivatives lose as many digits. */
#define WELL_CONDITIONED 1e-4

#endif
