"""Who calls input_fn and with which batch size, and what each replica is fed."""

import types

import tensorflow as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.inputs import pipeline_configs
from tpu_estimator_compat.engine.inputs.calling import CalledInput
from tpu_estimator_compat.engine.inputs.deployed_input import deploy
from tpu_estimator_compat.engine.inputs.tpu_context import TPUContext
from tpu_estimator_compat.engine.topology.replicas import Topology
from tpu_estimator_compat.spec import ModeKeys


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


def dealt(strategy, replicas, datasets, mode=ModeKeys.TRAIN, batch_axis=None, size=None, **config):
    """What each replica gets in each step: a list of steps of lists of replicas."""
    topology = Topology(strategy(replicas), tpu_semantics=True)
    input_mode = pipeline_configs.choose(mode, tpu.TPUConfig(**config), topology, size, batch_axis)
    found = deploy([*map(ReadyInput, datasets)], input_mode)
    steps = []
    iterator = iter(found)
    while True:
        try:
            element = found.next(iterator)
        except (StopIteration, tf.errors.OutOfRangeError):
            return steps
        local = topology.strategy.experimental_local_results
        flat = [local(part) for part in tf.nest.flatten(element, expand_composites=False)]
        steps.append([[p.numpy().tolist() for p in parts] for parts in zip(*flat, strict=True)])


def batches(size, count=16):
    return tf.data.Dataset.range(count).batch(size, drop_remainder=True)


GLOBAL_BATCH = 32


def resolved(mode, size, replicas, hosts=1, this_host=None, tpu_semantics=True, **tpu_config):
    topology = Topology(FakeStrategy(replicas), tpu_semantics, hosts, this_host)
    return pipeline_configs.choose(mode, tpu.TPUConfig(**tpu_config), topology, size)


def calls_of(mode, replicas, hosts, this_host=None, **tpu_config):
    """(host, index, calls in all, replicas fed, batch size) of each call of input_fn."""
    input_mode = resolved(mode, GLOBAL_BATCH, replicas, hosts, this_host, **tpu_config)
    calls = []
    for call in input_mode.invocations():
        context = TPUContext(input_mode, call)
        device, index, total, fed = context.current_input_fn_deployment()
        assert device == f"/replica:0/task:{context.current_host}/device:CPU:0"
        assert (context.num_hosts, context.num_replicas) == (hosts, replicas)
        calls.append((context.current_host, index, total, fed, input_mode.input_batch_size))
    return calls
