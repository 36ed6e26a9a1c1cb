"""Keys and certificates: made in a child process, kept in files as kubelet keeps them."""
