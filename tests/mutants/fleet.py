"""Mistakes about the nodes of a fleet: their names, zones, machines and starts, and who hosts them."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    # fleet.py
    Mutant(
        "zones by weight in one run each",
        "fleet.py",
        "        credit[chosen] -= total\n",
        "        credit[chosen] -= 1\n",
    ),
    Mutant(
        "a region that is set is replaced",
        "fleet.py",
        "labels.setdefault(REGION_LABEL, region)",
        "labels[REGION_LABEL] = region",
    ),
    Mutant("the same machine in every fleet", "fleet.py", 'f"{fleet_name}/{name}"', 'f"{name}"'),
    Mutant("a renamed copy has the IDs of its source", "fleet.py", " and model.config.node_name == name)", ")"),
    Mutant("all copies have the provider ID", "fleet.py", "provider_id and not is_first:", "provider_id and False:"),
    Mutant("groups share addresses", "fleet.py", "position * MOST_NODES_OF_A_GROUP + index)", "index)"),
    Mutant(
        "a delay is drawn for the whole group",
        "fleet.py",
        '_chance(f"{seed}/{index}/delay")',
        '_chance(f"{seed}/delay")',
    ),
    Mutant(
        "nodes that never register are those that are never ready",
        "fleet.py",
        "not never <= percentile < never + rule.never_ready_percent",
        "not percentile < rule.never_ready_percent",
    ),
    Mutant(
        "a new delay changes nodes that run", "fleet.py", "replace(plan.startup, delay_seconds=0.0)", "plan.startup"
    ),
    # node_copy.py, capacity.py, machine.py, name_template.py, sharding.py
    Mutant(
        "a copy has the hostname of its source", "node_copy.py", "dropped = (HOSTNAME_LABEL,) if", "dropped = () if"
    ),
    Mutant("a copy is as unwell as its source", "node_copy.py", '        "node.kubernetes.io/unreachable",\n', ""),
    Mutant(
        "allocatable by arithmetic, also where it is set",
        "capacity.py",
        "if config.resources.allocatable:",
        "if False:",
    ),
    Mutant(
        "a machine whose memory is in use",
        "machine.py",
        "memory_available_bytes=memory.value",
        "memory_available_bytes=0",
    ),
    Mutant("an index without its zeros", "name_template.py", "{part.width or 1}", "{1}"),
    Mutant(
        "all nodes move when a shard comes",
        "sharding.py",
        'f"{ordinal}/{node_name}"',
        'f"{ordinal * 7919 % 13}{node_name}"',
    ),
)
