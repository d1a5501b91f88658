"""Copies of installed packages under other names; above all tensorflow-estimator, the original."""
