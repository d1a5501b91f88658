"""The machinery behind the doors."""
