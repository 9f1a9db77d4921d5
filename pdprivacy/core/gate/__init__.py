"""Releases as values, the one function that executes them, and the objects that are published."""
