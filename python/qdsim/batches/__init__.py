"""Many steps and rollouts of one model at once, and their derivatives, on all cores."""
