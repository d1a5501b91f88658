"""TPUConfig's arguments for modes, and numbers of replicas and hosts to go through."""

import pytest

import tpu_estimator_compat as tpu

Modes = tpu.InputPipelineConfig

SLICED = {"eval_training_input_configuration": Modes.SLICED}

V2 = {"per_host_input_for_training": Modes.PER_HOST_V2}

BROADCAST = {"per_host_input_for_training": Modes.BROADCAST}

CASES = [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (4, 2), (8, 2)]

EVERY = pytest.mark.parametrize(("replicas", "hosts"), CASES)
