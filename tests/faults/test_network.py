"""The way to the API server is bad; afterwards the node is back by itself. How soon: `make bench-faults`."""

import re

from tests.cluster.waiting import eventually

_RETRY = '"Failed to ensure lease exists, will retry"'


def test_connections_are_refused(member, shared_proxy):
    shared_proxy.set(kill=True, refuse=True)
    member.wait_until_lease_is_over()
    for interval in ("200ms", "400ms", "800ms"):
        member.wait_until_logged(_RETRY, f'interval="{interval}"')
    shared_proxy.set()
    member.wait_until_recovered()


def test_a_connection_dies_in_the_middle_of_a_request(member, shared_proxy):
    shared_proxy.set(cut_answers=True)
    member.wait_until_logged('"Failed to update lease"', times=5)
    shared_proxy.set()
    member.wait_until_recovered()


def test_a_black_hole_swallows_everything_without_a_word(member, shared_proxy):
    shared_proxy.set(silent=True)
    member.wait_until_lease_is_over()
    member.wait_until_logged("no answer within 1s")
    shared_proxy.set(kill=True)
    member.wait_until_recovered()


def test_renewals_get_through_half_a_second_of_latency_and_loss(join, proxy):
    member = join("--node-lease-duration-seconds=8", "--node-status-update-frequency=8s", "-v=6")
    proxy.set(delay_seconds=0.5)
    member.wait_until_renewed()
    proxy.set(delay_seconds=0.5, loss=1.0)
    member.wait_until_logged('"Failed to update lease"')
    proxy.set(delay_seconds=0.5, loss=0.05)
    member.wait_until_renewed()

    def milliseconds():
        return re.findall(r'"Response" verb="PUT" .*status=200 milliseconds=(\d+)', member.news())

    eventually(lambda: any(int(took) >= 900 for took in milliseconds()))  # a chunk there, and one back
    proxy.set()
    member.wait_until_recovered()


def test_the_process_stands_still_until_its_lease_is_over(member):
    member.stand_still()
    member.wait_until_lease_is_over()
    member.go_on()
    member.wait_until_recovered()
