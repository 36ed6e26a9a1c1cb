"""The description of a fleet: a file, or flags, and the nodes of a cluster or a catalogue that it names → Fleet."""

from agent.adapters.fleet.load import FleetOptions, InvalidFleet, fleet_from_flags, load_fleet, split_flags

__all__ = ["FleetOptions", "InvalidFleet", "fleet_from_flags", "load_fleet", "split_flags"]
