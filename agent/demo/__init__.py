"""The demo: the embedded cluster, the real daemon, and a live view of the node they make."""
