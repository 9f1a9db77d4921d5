"""Releases as values, the contents of protected frames, and the one function that executes releases."""
