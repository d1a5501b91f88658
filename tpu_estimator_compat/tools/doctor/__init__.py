"""Checks of an installation: whether it can be trusted, by probes in processes of their own."""
