"""Noticing that the other end of a silent connection is gone."""

import socket

import aiohttp

_IDLE_SECONDS, _EVERY_SECONDS, _TIMES = 30, 5, 3  # as Go's HTTP/2: dead after 45 s without a sign


def notice_silence(response: aiohttp.ClientResponse) -> None:
    """Have the kernel ask a silent peer whether it is there: a watch may say nothing for a minute."""
    transport = response.connection.transport if response.connection else None
    connection = transport.get_extra_info("socket") if transport else None
    if connection is None or connection.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _EVERY_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _TIMES)
