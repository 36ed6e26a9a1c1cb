"""The Linux machine: psutil, /proc, /sys, /etc and statvfs → HostSnapshot."""

from agent.adapters.host.identity import architecture
from agent.adapters.host.linux import LinuxHost

__all__ = ["LinuxHost", "architecture"]
