"""Trajectory optimisation: iMPC over a horizon, and in closed loop.

Nothing is imported here: `qdsim.planning.task` needs the options, and the rest needs the task.
"""
