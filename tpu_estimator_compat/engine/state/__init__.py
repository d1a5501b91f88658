"""Live state of a captured graph: variables, whole or in shards, host resources, saved files."""
