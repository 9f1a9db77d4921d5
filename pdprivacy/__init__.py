"""pdprivacy."""
