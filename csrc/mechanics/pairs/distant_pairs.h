/* Pairs within the margin that are too far apart to act in an exact step. Their contacts, closest
 * points to rounding and manifolds, cost a multiple of a bound of their distance; so a step first
 * takes the bound, and computes the contacts where its motion might reach them. */
#ifndef QD_MECHANICS_DISTANT_PAIRS_H
#define QD_MECHANICS_DISTANT_PAIRS_H

#include "mechanics/pairs/collision.h"

/* Pairs that can be put off at most: those whose bound is cheaper than their contacts. */
int distant_pairs_most(const qd_model *model);

/* Puts a pair within range off (1: it did) if it is surely farther apart than bodies come nearer
 * that move by these twists (body_count). */
int distant_pairs_add(collision *c, const qd_model *model, int pair, double range,
                      const screw *twist);

/* The speed, under these twists, of B relative to A midway between the shapes, and the most by
 * which a contact of the pair can close, sliding included. */
double distant_pair_speed(const collision *c, const qd_model *model, int pair, const screw *twist);
double distant_pair_closing(const collision *c, const qd_model *model, int pair,
                            const screw *twist);

/* After collision_add_distant: takes its contacts back, behind the first count; or says that they
 * stay. */
void distant_pair_take_back(collision *c, int i, int count);
void distant_pair_keep(collision *c, int i);

#endif
