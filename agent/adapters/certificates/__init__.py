"""Keys and certificates: a child process makes them, files in kubelet's layout store them."""
