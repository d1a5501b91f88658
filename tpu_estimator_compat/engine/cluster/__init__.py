"""Machines that train together: how they meet, and agree on every step."""
