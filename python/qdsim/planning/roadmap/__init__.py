"""Roadmaps through contact: built once, queried for any goal."""
