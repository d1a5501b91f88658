"""Compares sums over all devices, and over all processes of a TF_CONFIG, with NumPy's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tpu_estimator_compat.tools.doctor.report import CheckResult, Status

CHECK = "sums"
_LOGICAL_CPUS = 4


def observe(runtime: str, seconds: float) -> dict[str, Any]:
    """Adds up the features of all replicas: a probe, to run in a child process.

    It waits `seconds` for the other processes of TF_CONFIG. Without a TF_CONFIG the CPU is split
    into several devices, so that there is a sum.

    Returns:
      The replicas' `sum`; `expected`, NumPy's; and the numbers of `replicas` and `hosts`.
    """
    import numpy as np
    import tensorflow as tf

    from tpu_estimator_compat.config import TPUConfig, TPURunConfig
    from tpu_estimator_compat.engine.topology import chosen_topology, local
    from tpu_estimator_compat.estimator.tpu_estimator import TPUEstimator
    from tpu_estimator_compat.spec import ModeKeys
    from tpu_estimator_compat.tools.doctor import models

    if "TF_CONFIG" not in os.environ:
        local.split_cpu(_LOGICAL_CPUS)
    alone = TPURunConfig(
        TPUConfig(iterations_per_loop=1),
        runtime=runtime,
        session_creation_timeout_secs=max(1, int(seconds)),
    )
    config: Any = chosen_topology.join_cluster(alone, tpu_semantics=True)
    found = chosen_topology.resolve(config, ModeKeys.TRAIN, tpu_semantics=True)
    shape = [found.num_hosts, found.replicas_per_host, models.SUMMANDS]
    # Small integers, which float32 and bfloat16 hold exactly; no two rows of one host are alike.
    rows = np.random.RandomState(0).randint(-100, 100, shape).astype(np.float32)

    def input_fn(params: Any) -> tf.data.Dataset:
        own = tf.data.Dataset.from_tensor_slices(rows[params["context"].current_host])
        return own.batch(params["batch_size"], drop_remainder=True)

    values = models.Values()
    estimator = TPUEstimator(models.summed, None, config, {}, True, found.num_replicas)
    estimator.train(input_fn, max_steps=1, hooks=[values])
    return {
        "sum": values.last["total"].tolist(),
        "expected": rows.astype(np.float64).sum((0, 1)).tolist(),
        "replicas": found.num_replicas,
        "hosts": found.num_hosts,
    }


def judge(side: str, answer: Mapping[str, Any]) -> CheckResult:
    """Compares the replicas' sum with NumPy's; both are exact, so they must be equal."""
    text = f"{side}: {answer['replicas']} replica(s) on {answer['hosts']} process(es)"
    if answer["sum"] == answer["expected"]:
        return CheckResult(CHECK, Status.OK, f"{text}: the sum is the host's, exactly")
    told = f"{text}: the sum is {answer['sum']}, and the host's is {answer['expected']}"
    advice = "Do not train on several of them. Open an issue with the file that --report writes."
    return CheckResult(CHECK, Status.FAILURE, told, advice)
