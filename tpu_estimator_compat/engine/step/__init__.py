"""One step of a captured graph: its parts, put together; the exchange of replicas."""
