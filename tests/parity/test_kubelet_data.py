"""What agent/core/kubelet_data says of the kubelet, beside the Go code that it was taken from."""

from pathlib import Path

from tests.cluster import sync_kubelet


def test_make_sync_kubelet_would_change_nothing(kubelet_data: Path) -> None:
    modules = sync_kubelet.modules(kubelet_data)
    assert {name: (sync_kubelet.FOLDER / name).read_text() for name in modules} == modules
