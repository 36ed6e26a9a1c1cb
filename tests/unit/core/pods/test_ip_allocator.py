import pytest

from agent.core.pods.ip_allocator import Exhausted, IPAllocator, host_addresses, pod_ranges


def test_addresses_are_given_one_after_the_other_beginning_after_the_gateways():
    allocator = IPAllocator()
    assert [allocator.addresses(uid, ["10.0.0.0/24"]) for uid in "abc"] == [("10.0.0.2",), ("10.0.0.3",), ("10.0.0.4",)]
    assert allocator.addresses("a", ["10.0.0.0/24"]) == ("10.0.0.2",)


def test_an_address_that_was_freed_comes_last():
    allocator = IPAllocator()
    assert allocator.addresses("a", ["10.0.0.0/29"]) == ("10.0.0.2",)
    allocator.free("a")
    assert [allocator.addresses(uid, ["10.0.0.0/29"])[0][-1] for uid in "bcdef"] == ["3", "4", "5", "6", "2"]


def test_an_address_that_is_in_use_is_not_given():
    allocator = IPAllocator()
    allocator.keep("a", ("10.0.0.2",))
    assert allocator.addresses("b", ["10.0.0.0/24"]) == ("10.0.0.3",)


def test_a_range_ends():
    allocator = IPAllocator()
    for uid in "abcde":
        allocator.addresses(uid, ["10.0.0.0/29"])
    with pytest.raises(Exhausted, match=r"no IP addresses available in range set: 10\.0\.0\.0-10\.0\.0\.7"):
        allocator.addresses("f", ["10.0.0.0/29"])


def test_a_range_of_one_address_has_none_for_pods():
    with pytest.raises(Exhausted):
        IPAllocator().addresses("a", ["10.0.0.1/32"])


def test_a_pod_has_one_address_of_each_range():
    assert IPAllocator().addresses("a", ["10.0.0.0/24", "2001:db8::/64"]) == ("10.0.0.2", "2001:db8::2")


def test_a_node_tells_one_address_of_each_family():
    told = [("InternalIP", "192.0.2.1"), ("InternalIP", "192.0.2.2"), ("InternalIP", "2001:db8::1"), ("Hostname", "n")]
    node = {"status": {"addresses": [{"type": kind, "address": ip} for kind, ip in told]}}
    assert host_addresses(node) == ("192.0.2.1", "2001:db8::1")
    assert host_addresses({}) == ()


def test_a_nodes_internal_addresses_come_before_its_external_ones():
    told = [("ExternalIP", "198.51.100.1"), ("ExternalIP", "2001:db8::9"), ("InternalIP", "192.0.2.1")]
    addresses = [{"type": kind, "address": ip} for kind, ip in told]
    assert host_addresses({"status": {"addresses": addresses}}) == ("192.0.2.1", "2001:db8::9")
    assert host_addresses({"status": {"addresses": addresses[:1]}}) == ("198.51.100.1",)


def test_the_ranges_are_the_nodes():
    assert pod_ranges({"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}}) == ("10.0.0.0/24",)
    assert pod_ranges({}) == ()
