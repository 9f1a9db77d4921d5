"""What follows from released numbers: combinations, tests, and intervals at another level."""
