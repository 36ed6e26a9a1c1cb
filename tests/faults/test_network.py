"""The way to the API server is bad; afterwards the node is back within 10.4 s by itself."""

import os
import re
import signal
import time

from tests.cluster.waiting import eventually


def test_connections_are_refused(join, proxy):
    member = join()
    proxy.set(kill=True, refuse=True)
    time.sleep(6)
    proxy.set()
    member.wait_until_recovered()
    log = member.process.log_text()
    assert re.search(r'"Failed to ensure lease exists, will retry" err=".*" interval="400ms"', log)


def test_a_connection_dies_in_the_middle_of_a_request(join, proxy):
    member = join()
    proxy.set(cut_answers=True)
    eventually(lambda: '"Failed to update lease"' in member.process.log_text(), within=20)
    time.sleep(2)
    proxy.set()
    member.wait_until_recovered()


def test_a_black_hole_swallows_everything_without_a_word(join, proxy):
    member = join()
    proxy.set(silent=True)
    time.sleep(6)
    proxy.set(kill=True)
    member.wait_until_recovered()
    assert "no answer within 1s" in member.process.log_text()


def test_half_a_second_of_latency_and_5_percent_loss_lose_no_lease(join, proxy):
    member = join("--node-lease-duration-seconds=40", "--node-status-update-frequency=10s", "-v=6")
    proxy.set(delay_seconds=0.5, loss=0.05)
    before = member.renewed_at()
    time.sleep(34)
    assert (member.renewed_at() - before).total_seconds() >= 10  # at least one of the three renewals that were due
    assert re.search(r'"Response" verb="PUT" .*status=200 milliseconds=\d{4}', member.process.log_text())
    proxy.set()
    assert member.is_whole()


def test_the_event_loop_stands_still_for_15_seconds(join, proxy):
    member = join()
    os.kill(member.process.pid, signal.SIGSTOP)
    time.sleep(15)
    os.kill(member.process.pid, signal.SIGCONT)
    member.wait_until_recovered()
