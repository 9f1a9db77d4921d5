"""Numbers, markup and progress as text: what every other part shows things with."""
