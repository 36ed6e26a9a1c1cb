"""The world outside, one neighbour per file."""
