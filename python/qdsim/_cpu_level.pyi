LEVEL: int
"""3 or 1: the highest level of x86-64 that the core is built for and that the machine has."""
