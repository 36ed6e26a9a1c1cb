"""What this node tells Prometheus."""
