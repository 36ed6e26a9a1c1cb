"""The same Debian as a virtual machine: a kernel, memory and a disk of its own, and a power switch."""

import json
import secrets
import shutil
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

from tests.cluster.command import CommandFailed, run
from tests.cluster.island import Island
from tests.cluster.process import Process
from tests.cluster.waiting import eventually
from tests.systemd.overlay import layer

NODE_IP = "192.0.2.15"
_HOST_IP = "192.0.2.1"  # the host's loopback, as the machine sees it
_SIZE_MIB = 1400
# A boot takes 20 seconds, and two minutes beside a lot of others. Once an emulated machine said nothing for ten: such a
# one is switched off and on again, as a person would do.
_BOOT_SECONDS, _BOOTS = 300.0, 3
_FILES = {
    "/etc/fstab": "/dev/vda / ext4 defaults 0 1\n",
    # systemd's own 90 seconds are for machines that are not emulated beside a lot of others.
    "/etc/systemd/system.conf.d/slow.conf": "[Manager]\nDefaultTimeoutStartSec=900\nDefaultDeviceTimeoutSec=900\n",
    "/etc/systemd/network/10-eth0.network": (
        f"[Match]\nName=eth0\n[Network]\nAddress={NODE_IP}/24\nGateway={_HOST_IP}\n"
    ),
    "/etc/systemd/system/runner.service": (
        "[Unit]\nDefaultDependencies=no\nAfter=systemd-remount-fs.service dbus.socket\n"
        "[Service]\nExecStart=/usr/bin/python3 /usr/local/lib/runner.py\n[Install]\nWantedBy=multi-user.target\n"
    ),
    # The API server where the cluster says it is: on the loopback.
    "/etc/systemd/system/api.socket": "[Socket]\nListenStream=127.0.0.1:{port}\n[Install]\nWantedBy=sockets.target\n",
    "/etc/systemd/system/api.service": (
        "[Unit]\nBefore=fake-kubelet.service\n"
        f"[Service]\nExecStart=/lib/systemd/systemd-socket-proxyd {_HOST_IP}:{{port}}\n"
    ),
}
# What no test is about, and what takes long when every instruction is emulated.
_MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"),
    *("e2scrub_reap.service", "getty.target", "systemd-binfmt.service", "systemd-pstore.service"),
    *("systemd-update-utmp.service", "systemd-update-utmp-runlevel.service", "proc-sys-fs-binfmt_misc.automount"),
    *("dev-hugepages.mount", "sys-fs-fuse-connections.mount", "sys-kernel-config.mount", "sys-kernel-debug.mount"),
    *("sys-kernel-tracing.mount", "systemd-firstboot.service", "systemd-repart.service"),
)
_KERNEL = (
    "console=ttyS0 root=/dev/vda rw panic=-1 mitigations=off net.ifnames=0 "
    "systemd.condition-needs-update=0 systemd.show_status=0"
)
_UNITS = ("api.socket", "runner.service", "systemd-networkd.service", "systemd-networkd-wait-online.service")
# In place of Debian's initrd, which looks for a disk wherever one could be: the modules for ours, and nothing else.
_MODULES = (
    *("virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"),
    "virtio_console",  # for the runner, which so does not depend on udev
)
_PROGRAMS = ("insmod", "mount", "run-init", "sh", "sleep")  # of klibc
_INIT = f"""#!/bin/sh
export PATH=/bin
mount -t devtmpfs devtmpfs /dev
for module in {" ".join(_MODULES)}; do insmod /$module.ko; done
until mount -t ext4 -o rw /dev/vda /root; do sleep 1; done
mount -n -o move /dev /root/dev
exec run-init /root /sbin/init </root/dev/console >/root/dev/console 2>&1
"""
_RUNNER = """\
import glob, json, os, subprocess
port = os.open(glob.glob("/dev/vport*")[0], os.O_RDWR)
asked = os.fdopen(os.dup(port))
os.write(port, b"{}\\n")
while line := asked.readline():
    done = subprocess.run(json.loads(line), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    answer = json.dumps([done.returncode, done.stdout, done.stderr]).encode() + b"\\n"
    while answer:
        answer = answer[os.write(port, answer):]
"""
_WRITE = """\
import pathlib, sys
path = pathlib.Path(sys.argv[1])
path.parent.mkdir(parents=True, exist_ok=True)
path.write_text(sys.argv[2])
"""


class VirtualMachine:
    """Boots from a disk that was made of layers; what it writes is there again at the next boot."""

    def __init__(self, name: str, layers: Sequence[Path], directory: Path, *, api_port: int) -> None:
        self.name = f"{name}-{secrets.token_hex(3)}"
        self._layers, self._directory, self._api_port = layers, directory, api_port
        self._disk = directory / "disk.img"
        self._qemu: Process | None = None
        self._runner: Any = None  # what root's commands go through, and its answers
        self._answers: Any = None
        self._island: Island | None = None
        self._life = ExitStack()

    def __enter__(self) -> Self:
        with layer(self._directory / "image", self._layers) as root:
            files = {path: text.replace("{port}", str(self._api_port)) for path, text in _FILES.items()}
            own = {"/etc/hostname": self.name, "/etc/hosts": f"127.0.0.1 localhost\n{NODE_IP} {self.name}\n"}
            for path, text in {**files, **own, "/usr/local/lib/runner.py": _RUNNER}.items():
                target = root / path.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
            (root / "var/log/journal").mkdir(exist_ok=True)
            run(["chroot", str(root), "systemctl", "--quiet", "enable", *_UNITS])
            run(["chroot", str(root), "systemctl", "--quiet", "mask", *_MASKED])
            shutil.copy(next((root / "boot").glob("vmlinuz-*")), self._directory / "vmlinuz")
            shutil.copy(_initrd(root), self._directory / "initrd.img")
            run(["truncate", f"--size={_SIZE_MIB}M", str(self._disk)])
            run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-d", str(root), str(self._disk)], timeout=240)
        self._island = self._life.enter_context(Island(self._api_port))
        return self

    def __exit__(self, *_: object) -> None:
        self.cut_power()
        self._life.close()

    @property
    def is_on(self) -> bool:
        """Whether it was booted and has not ended."""
        return self._qemu is not None and self._qemu.running

    def boot(self) -> None:
        """Switch it on; return when root can run commands."""
        for _ in range(_BOOTS):
            self._switch_on()
            with suppress(TimeoutError):
                assert self._answers.readline() == "{}\n"
                return
            self.cut_power()
        raise TimeoutError(f"{self.name} did not come up in {_BOOTS} boots of {_BOOT_SECONDS:.0f} s; see its console")

    def _switch_on(self) -> None:
        assert self._island is not None
        door = self._directory / "runner.sock"
        door.unlink(missing_ok=True)
        options = {
            "-accel": "tcg,thread=multi",
            "-cpu": "Nehalem",
            "-m": "768",
            "-smp": "2",
            "-display": "none",
            "-kernel": str(self._directory / "vmlinuz"),
            "-initrd": str(self._directory / "initrd.img"),
            "-append": _KERNEL,
            "-drive": f"file={self._disk},if=virtio,format=raw,cache=unsafe",
            "-serial": "stdio",  # the console is the process's log
            "-netdev": f"user,id=net,net=192.0.2.0/24,host={_HOST_IP}",
            "-chardev": f"socket,id=runner,path={door},server=on,wait=off",
        }
        devices = ("virtio-net-pci,netdev=net", "virtio-serial-pci", "virtserialport,chardev=runner,name=runner")
        words = [word for option in options.items() for word in option]
        words += [word for device in devices for word in ("-device", device)]
        qemu = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot", *words]
        inside = ["ip", "netns", "exec", self._island.name]  # nothing but the API server can be reached from there
        self._qemu = Process("qemu", [*inside, *qemu], log=self._directory / "qemu.log")
        self._qemu.start()
        self._runner = eventually(lambda: _connected(door))
        self._answers = self._runner.makefile()
        self._runner.settimeout(_BOOT_SECONDS)

    def run(self, *argv: str, check: bool = True) -> str:
        """What a command of root prints there."""
        self._runner.sendall(json.dumps(argv).encode() + b"\n")
        code, said, complained = json.loads(self._answers.readline())
        if check and code != 0:
            raise CommandFailed(argv, code, complained.strip() or said.strip())
        return str(said)

    def write(self, path: str, text: str) -> None:
        """Have a file there, and the folders above it."""
        self.run("python3", "-c", _WRITE, path, text)

    def wait_until_off(self, within: float = 240.0) -> None:
        """Return when it has powered itself off."""
        assert self._qemu is not None
        self._qemu.wait(within)
        self.cut_power()

    def cut_power(self) -> None:
        """Switch it off without any warning."""
        if self._qemu is not None:
            self._qemu.kill()
            self._qemu = None
        for end in (self._answers, self._runner):
            if end is not None:
                end.close()


def _initrd(root: Path) -> Path:
    """An archive with which the kernel finds the disk, made of what is below a root."""
    place = root / "tmp/initrd"
    for folder in ("bin", "dev", "lib", "root"):
        (place / folder).mkdir(parents=True)
    programs = [root / "usr/lib/klibc/bin" / name for name in _PROGRAMS]
    modules = [next((root / "lib/modules").rglob(f"{name}.ko")) for name in _MODULES]
    library = next((root / "usr/lib").glob("klibc-*.so"))
    for sources, folder in ((programs, "bin"), (modules, ""), ([library], "lib")):
        for source in sources:
            shutil.copy(source, place / folder)
    (place / "init").write_text(_INIT)
    (place / "init").chmod(0o755)
    pack = "cd /tmp/initrd && find . | cpio --quiet -o -H newc > ../initrd.img"
    run(["chroot", str(root), "sh", "-ec", pack])
    shutil.rmtree(place)
    return root / "tmp/initrd.img"


def _connected(door: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    with suppress(OSError):
        connection.connect(str(door))
        return connection
    connection.close()
    return None
