"""One step of a captured graph: its parts, its program, and the exchanges between replicas."""
