"""Pods bound to the node: what the API sees of them, decided without running anything."""
