"""Live state of a captured graph: variables, whole or in shards, and host resources."""
