"""One step of a captured graph: the cut, its shares as functions, and the exchange of replicas."""
