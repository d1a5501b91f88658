"""The topology of a mode: its strategy, its replicas and hosts."""
