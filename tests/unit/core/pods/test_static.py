from agent.core.pods.static import Manifest, manifest_hash, mirror_hash, mirror_pod
from tests.fakes import START

NODE = {"metadata": {"name": "n1", "uid": "uid-1"}}


def manifest(image="pause:1", **spec):
    spec = {"containers": [{"name": "main", "image": image}], **spec}
    return Manifest("/m/web.yaml", {"kind": "Pod", "metadata": {"name": "web"}, "spec": spec})


def test_a_mirror_pod_is_owned_by_the_node_and_shows_the_manifest():
    mirror = mirror_pod(manifest(), NODE, START)
    assert (mirror["metadata"]["name"], mirror["metadata"]["namespace"]) == ("web-n1", "default")
    assert mirror["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1", "controller": True}
    ]
    assert mirror["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
    assert mirror["spec"]["nodeName"] == "n1"
    assert mirror_hash(mirror) == manifest_hash(manifest(), "n1")


def test_no_taint_drives_a_mirror_pod_out():
    own = {"key": "k", "operator": "Exists"}
    mirror = mirror_pod(manifest(tolerations=[own]), NODE, START)
    assert mirror["spec"]["tolerations"] == [own, {"operator": "Exists", "effect": "NoExecute"}]


def test_another_manifest_path_or_node_has_another_hash():
    elsewhere = manifest()._replace(path="/m/other.yaml")
    hashes = {
        manifest_hash(manifest(), "n1"),
        manifest_hash(manifest("pause:2"), "n1"),
        manifest_hash(elsewhere, "n1"),
        manifest_hash(manifest(), "n2"),
    }
    assert len(hashes) == 4
