"""More pods than a node has by default, brought to it by a real scheduler; how soon they run, `make bench-pods`."""

from tests.pods.home import Home

COUNT = 120  # a node has 110 by default, and addresses for 254


def test_all_pods_of_a_large_node_run_each_with_an_address_of_its_own(home: Home) -> None:
    home.start("--max-pods=250")
    place = {"nodeName": None, "nodeSelector": {"kubernetes.io/hostname": home.name}}
    home.create(*(home.bare_pod(f"pod-{number}", **place) for number in range(COUNT)))
    home.wait_until_running(COUNT)
    assert len({pod["status"]["podIP"] for pod in home.pods()}) == COUNT
    home.delete_pods()
    home.wait_until_empty()
