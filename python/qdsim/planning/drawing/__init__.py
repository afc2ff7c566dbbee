"""Pictures and movies of plans (need Matplotlib)."""
