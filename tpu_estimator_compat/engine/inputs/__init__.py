"""The input: calls a legacy input_fn, and deals its elements to hosts and replicas."""
