"""Who the machine is: nodeInfo, the endpoint and the declared features."""

from agent.core.facts import Facts
from agent.core.model import Object


def node_info(facts: Facts) -> Object:
    """The identity of the machine and of what runs on it."""
    host, config = facts.host, facts.config
    info: Object = {
        "machineID": host.machine_id,
        "systemUUID": host.system_uuid,
        "bootID": host.boot_id,
        "kernelVersion": host.kernel_version,
        "osImage": host.os_image,
        "containerRuntimeVersion": config.container_runtime_version,
        "kubeletVersion": config.kubelet_version,
        "kubeProxyVersion": "",  # kubelet v1.36: always empty, the key stays
        "operatingSystem": "linux",
        "architecture": host.architecture,
    }
    if host.swap_bytes:
        info["swap"] = {"capacity": host.swap_bytes}
    return {"nodeInfo": info}


def daemon_endpoints(facts: Facts) -> Object:
    """Where the kubelet's API is served; `Port` has a capital letter in the API."""
    return {"daemonEndpoints": {"kubeletEndpoint": {"Port": facts.config.serving.port}}}


def declared_features(facts: Facts) -> Object:
    """Node features that the scheduler matches pods against; without any, what is there stays, as in a kubelet."""
    return {"declaredFeatures": list(facts.config.declared_features)} if facts.config.declared_features else {}
