"""The Linux machine: psutil, /proc, /sys, /etc and statvfs → HostSnapshot."""

from agent.adapters.host.identity import architecture, booted_at
from agent.adapters.host.linux import LinuxHost

__all__ = ["LinuxHost", "architecture", "booted_at"]
