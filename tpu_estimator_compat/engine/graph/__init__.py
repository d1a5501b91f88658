"""Captured graphs: their operations, in which order they run, and GraphDefs to import them."""
