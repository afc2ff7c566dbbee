"""What closes the loop of an execution: each loop yields commands, the execution alone advances the plant."""
