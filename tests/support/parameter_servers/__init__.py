"""Clusters with parameter servers: real processes on this machine, and what they train."""
