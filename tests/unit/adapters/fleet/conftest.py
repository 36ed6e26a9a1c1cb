"""What the tests of fleets share: a folder with the files that a fleet names."""

import pytest

HEADER = "apiVersion: fake-kubelet.dev/v1alpha1\nkind: Fleet\n"
KUBELET = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder that a user stands in; `write` makes files in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(folder):
    """Writes a file there, and returns its name."""

    def to(name, text):
        (folder / name).write_text(text)
        return name

    return to


@pytest.fixture
def fleet_file(write):
    """Writes fleet.yaml with these fields."""
    return lambda fields: write("fleet.yaml", HEADER + fields)


@pytest.fixture
def kubelet_file(write):
    """Writes kubelet.yaml with these fields."""
    return lambda fields: write("kubelet.yaml", KUBELET + fields)


@pytest.fixture
def nodes_file(write):
    """Writes the nodes of a cluster as kubectl prints them."""
    return lambda name="prod-nodes.yaml": write(name, PROD_NODES)


PROD_NODES = """\
apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    annotations: {node.alpha.kubernetes.io/ttl: "0"}
    creationTimestamp: "2026-01-01T00:00:00Z"
    labels:
      kubernetes.io/hostname: ip-10-0-1-5
      node-role.kubernetes.io/worker: ""
      node.kubernetes.io/instance-type: m7g.2xlarge
      topology.kubernetes.io/zone: eu-west-1c
    name: ip-10-0-1-5.ec2.internal
  spec:
    providerID: aws:///eu-west-1c/i-0123
    taints: null
  status:
    addresses: [{address: 10.0.1.5, type: InternalIP}]
    allocatable: {cpu: 7910m, memory: 31369716Ki, pods: "58"}
    capacity: {cpu: "8", memory: 32386548Ki, pods: "58"}
    nodeInfo: {kubeletVersion: v1.31.7-eks-473151a, machineID: ec2a, architecture: arm64}
- apiVersion: v1
  kind: Node
  metadata:
    labels: {topology.kubernetes.io/zone: eu-west-1a}
    name: ip-10-0-1-6.ec2.internal
  spec: {}
  status:
    allocatable: {cpu: "2", memory: 4Gi, pods: "29"}
    capacity: {cpu: "2", memory: 4Gi, pods: "29"}
kind: List
metadata:
  resourceVersion: ""
"""
