"""Tests of pdprivacy."""
