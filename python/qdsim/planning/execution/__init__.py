"""Execution of plans in a second-order simulator, in open loop and in closed loop."""
