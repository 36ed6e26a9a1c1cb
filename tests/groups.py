"""Which tests run one after another in one process: those of a file, and of files that share what is costly to start.

pytest-xdist has groups of its own (`xdist_group`), which pytest 9.2 does not hand on to it.
"""

from xdist.scheduler import LoadScopeScheduling

_SHARED = {
    "a control plane that is broken": ("faults/test_absence.py", "faults/test_lab.py", "faults/test_server.py"),
    "a machine that is a node": ("systemd/test_service.py", "systemd/test_shutdown.py"),
    "a machine that is no node yet": ("systemd/test_install.py", "systemd/test_kubeadm.py"),
}
_APART = {"tests/join/test_killed.py"}  # its tests share nothing, and each of them takes long
_GROUPS = {f"tests/{file}": name for name, files in _SHARED.items() for file in files}


def group_of(nodeid: str) -> str:
    """The group of a test."""
    file = nodeid.partition("::")[0]
    return nodeid if file in _APART else _GROUPS.get(file, file)


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Gives each process one group after another."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
