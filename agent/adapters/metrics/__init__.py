"""What this node serves to Prometheus and metrics-server."""
