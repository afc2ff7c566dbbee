"""Plans in a second-order simulator, open loop and closed."""
