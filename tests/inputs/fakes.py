"""Stand-ins for strategies of so many replicas, where only their number counts."""

import types


class FakeStrategy:
    """So many replicas; it cannot run anything."""

    def __init__(self, replicas):
        self.num_replicas_in_sync = replicas
        self.extended = types.SimpleNamespace()
