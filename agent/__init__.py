"""fake-kubelet: a kubelet without containers."""

__version__ = "0.1.0"
