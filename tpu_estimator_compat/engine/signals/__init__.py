"""Signals and activity while the main thread waits, and the end of the process."""
