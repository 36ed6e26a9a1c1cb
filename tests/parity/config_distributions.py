"""How real distributions start a kubelet."""

from tests.parity.config_case import file_case, flags_case

EKS_CONFIG = """
authentication:
  anonymous: {enabled: false}
  webhook: {cacheTTL: 2m0s, enabled: true}
  x509: {clientCAFile: "{ca}"}
authorization:
  mode: Webhook
  webhook: {cacheAuthorizedTTL: 5m0s, cacheUnauthorizedTTL: 30s}
clusterDomain: cluster.local
hairpinMode: hairpin-veth
readOnlyPort: 0
cgroupDriver: cgroupfs
cgroupRoot: /
featureGates: {RotateKubeletServerCertificate: true}
protectKernelDefaults: false
serializeImagePulls: false
tlsCipherSuites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
clusterDNS: [172.20.0.10]
evictionHard: {memory.available: 100Mi, nodefs.available: 10%, nodefs.inodesFree: 5%}
kubeReserved: {cpu: 70m, ephemeral-storage: 1Gi, memory: 574Mi}
systemReservedCgroup: /system
kubeReservedCgroup: /runtime
"""

KIND_PATCHED = """
cgroupRoot: /kubelet
imageGCHighThresholdPercent: 100
evictionHard: {imagefs.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%}
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
rotateCertificates: true
staticPodPath: "{dir}/manifests"
nodeStatusUpdateFrequency: 0s
nodeStatusReportFrequency: 0s
syncFrequency: 0s
"""

MINIKUBE = """
authentication: {x509: {clientCAFile: "{ca}"}}
cgroupDriver: systemd
hairpinMode: hairpin-veth
runtimeRequestTimeout: 15m
clusterDomain: "cluster.local"
# disable disk resource management by default
imageGCHighThresholdPercent: 100
evictionHard: {nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
staticPodPath: "{dir}/manifests"
"""

DISTRIBUTIONS = (
    flags_case(
        "k0s",
        "--root-dir={dir}/root",
        "--runtime-cgroups=/system.slice/containerd.service",
        "--cert-dir={dir}/pki2",
        "--node-labels=node.k0sproject.io/role=control-plane",
        "--kube-reserved-cgroup=system.slice",
        "--kubelet-cgroups=/system.slice/containerd.service",
        "--resolv-conf=/etc/resolv.conf",
    ),
    flags_case(
        "RKE2",
        "--address=127.0.0.1",
        "--anonymous-auth=false",
        "--authentication-token-webhook=true",
        "--authorization-mode=Webhook",
        "--cgroup-driver=systemd",
        "--client-ca-file={ca}",
        "--cloud-provider=external",
        "--cluster-dns=10.43.0.10",
        "--cluster-domain=cluster.local",
        "--eviction-hard=imagefs.available<5%,nodefs.available<5%",
        "--eviction-minimum-reclaim=imagefs.available=10%,nodefs.available=10%",
        "--fail-swap-on=false",
        "--feature-gates=KubeletPSI=true",
        "--healthz-bind-address=127.0.0.1",
        "--hostname-override=rke2",
        "--kubelet-cgroups=/rke2",
        "--node-labels=",
        "--pod-manifest-path={dir}/manifests",
        "--read-only-port=0",
        "--resolv-conf=/etc/resolv.conf",
        "--serialize-image-pulls=false",
        only_ours=[
            "--log-file={dir}/kubelet.log",
            "--log-file-max-size=50",
            "--alsologtostderr=false",
            "--logtostderr=false",
            "--stderrthreshold=FATAL",
        ],
    ),
    file_case(
        "EKS",
        EKS_CONFIG,
        "--image-credential-provider-config={dir}/credentials.json",
        "--image-credential-provider-bin-dir={dir}/bin",
        "--node-ip=10.20.11.32",
        "--v=2",
        "--max-pods=29",
        "--node-labels=eks.amazonaws.com/nodegroup=a,eks.amazonaws.com/nodegroup-image=ami-0,"
        "eks.amazonaws.com/capacityType=SPOT,"
        "eks.amazonaws.com/sourceLaunchTemplateId=lt-0,eks.amazonaws.com/sourceLaunchTemplateVersion=1,"
        "alpha.eksctl.io/cluster-name=c,alpha.eksctl.io/nodegroup-name=n",
        only_ours=[
            "--pod-infra-container-image=example.com/eks/pause:3.5",
            "--cloud-provider=aws",
            "--container-runtime=remote",
        ],
    ),
    file_case(
        "kind",
        KIND_PATCHED,
        "--node-ip=172.18.0.2",
        "--node-labels=",
        "--provider-id=kind://docker/kind/kind-control-plane",
        "--runtime-cgroups=/system.slice/containerd.service",
        only_ours=["--pod-infra-container-image=example.com/pause:3.10"],
    ),
    file_case("minikube", MINIKUBE, "--hostname-override=minikube", "--node-ip=192.168.49.2"),
)
