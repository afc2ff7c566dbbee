"""Motions of the robot from one grasp to the next, free of collisions."""
