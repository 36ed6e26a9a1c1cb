from agent.core.csinode import is_owned_by, new_csinode


def test_a_csinode_belongs_to_one_node_and_to_no_other_of_its_name():
    csinode = new_csinode("n1", "uid-1")
    assert csinode["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1"}
    ]
    assert is_owned_by(csinode, "uid-1")
    assert not is_owned_by(csinode, "uid-2")
    assert not is_owned_by({"metadata": {"name": "n1"}}, "uid-1")
