"""Releases as steps of pipelines, in files, and with a schema of their own."""
