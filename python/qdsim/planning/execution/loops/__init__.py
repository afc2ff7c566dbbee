"""Loops of an execution, open or closed: each loop yields commands; only the execution advances the plant."""
