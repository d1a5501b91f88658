"""Scenarios on the simulated TPU, compared with logical CPUs."""
