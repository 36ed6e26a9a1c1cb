"""Decisions: pure functions from facts to values, without I/O, clock or chance."""
