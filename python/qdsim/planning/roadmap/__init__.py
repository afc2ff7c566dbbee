"""Roadmaps through contact: built once, asked for any goal."""
