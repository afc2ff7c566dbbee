"""What to do: a task, the object's coordinates, and what its planners are told."""
