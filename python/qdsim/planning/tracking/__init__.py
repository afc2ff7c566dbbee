"""Trajectory optimisation: iMPC over a horizon and in closed loop, refinement of plans."""
