"""The kubelet whose behaviour is reproduced.

Written by `make sync-kubelet` from Kubernetes v1.36.3; do not edit.
"""

KUBELET_VERSION = "v1.36.3"
