"""Shared support of tests."""
