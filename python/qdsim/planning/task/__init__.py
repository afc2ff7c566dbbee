"""Planning tasks, the object's coordinates, and the options of planners."""
