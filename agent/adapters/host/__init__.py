"""The Linux machine: psutil, /proc, /sys, /etc and statvfs → HostSnapshot."""

from agent.adapters.host.linux import LinuxHost
from agent.adapters.host.machine import architecture, booted_at

__all__ = ["LinuxHost", "architecture", "booted_at"]
