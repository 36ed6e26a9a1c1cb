"""When things happen, in terms of ports."""
