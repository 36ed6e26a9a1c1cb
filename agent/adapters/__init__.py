"""Adapters to what is outside the process; each module or package has one neighbour."""
