"""What this node serves: health for its own machine, the kubelet's API for the cluster."""
