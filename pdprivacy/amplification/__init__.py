"""Releases of a part of the records: sampling, suppression, and studies of what they cost and gain."""
