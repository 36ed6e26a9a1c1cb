"""A fleet: many nodes in one process, planned by `core/fleet.py` and found in the cluster by a label."""
