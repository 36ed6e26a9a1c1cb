#!/bin/sh
# Makes a container a node of a kind cluster:
#
#   config/kind/join.sh CLUSTER NAME [kubelet flags]
#
# It has the words and the network of kind's own nodes. With podman: KIND_EXPERIMENTAL_PROVIDER=podman, as for kind.
# IMAGE is the image, fake-kubelet by default. The node carries a taint, so that nothing lands on it that does not ask for
# it; `kubectl taint node NAME fake-kubelet.dev/node-` takes it off.
set -eu

if [ $# -lt 2 ]; then
    echo "usage: $0 CLUSTER NAME [kubelet flags]" >&2
    exit 2
fi
cluster=$1
name=$2
shift 2
engine=${KIND_EXPERIMENTAL_PROVIDER:-docker}

# kubeadm join HOST:PORT --token … --discovery-token-ca-cert-hash …
words=$("$engine" exec "$cluster-control-plane" kubeadm token create --ttl=1h --print-join-command)

# shellcheck disable=SC2086  # these are words, not one
exec "$engine" run --detach --name "$name" --hostname "$name" --network kind --restart unless-stopped \
    --read-only --cap-drop all --security-opt no-new-privileges \
    "${IMAGE:-fake-kubelet}" ${words#kubeadm } \
    --provider-id="kind://$engine/$cluster/$name" \
    --node-labels=fake-kubelet.dev/node=fake --register-with-taints=fake-kubelet.dev/node=fake:NoSchedule \
    "$@"
