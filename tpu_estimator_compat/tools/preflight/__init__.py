"""Checks whether a step compiles for a TPU or GPU and fits its memory, without the device."""
