"""Random trees through contact."""
