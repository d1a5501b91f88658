"""Stand-ins: strategies of which only the number of replicas counts, input that is there."""

import types

from tpu_estimator_compat.engine.inputs import CalledInput


class FakeStrategy:
    """So many replicas; it cannot run anything."""

    def __init__(self, replicas):
        self.num_replicas_in_sync = replicas
        self.extended = types.SimpleNamespace()


class ReadyInput(CalledInput):
    """Stands for a call of input_fn: a dataset that was made eagerly."""

    def __init__(self, dataset):
        self.result, self.store = dataset, None

    runs_python = has_state = False

    def dataset(self):
        return self.result
