"""Checks whether an installation can be trusted, by probes in child processes."""
