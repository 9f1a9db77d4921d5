"""Hints of errors: examples of calls, and suggestions for misspelled names and invalid calls."""
