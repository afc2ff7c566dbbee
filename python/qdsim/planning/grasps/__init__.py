"""Grasps: closing, reaching, holding, resting, and samplers that draw them."""
