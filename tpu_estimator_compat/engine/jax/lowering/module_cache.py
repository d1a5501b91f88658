"""The modules of lowered steps, cached for the next start of the same training."""

from __future__ import annotations

import hashlib
import json
import pathlib
from collections.abc import Mapping, Sequence

import tensorflow as tf

from tpu_estimator_compat.engine.files import cache_files
from tpu_estimator_compat.engine.graph.graph_ops import Key, key
from tpu_estimator_compat.engine.jax import installation
from tpu_estimator_compat.engine.jax.lowering.findings import Severity, refused
from tpu_estimator_compat.engine.jax.lowering.replica_step import ReplicaStep
from tpu_estimator_compat.engine.jax.lowering.scan import scan
from tpu_estimator_compat.engine.jax.lowering.stablehlo import LoweringError, lower, refusals
from tpu_estimator_compat.engine.jax.lowering.step_module import StepModule


def lowered(step: ReplicaStep, shapes: Mapping[Key, tuple[int, ...]]) -> StepModule:
    """The module of a step, cached; `shapes` are as for `lower`.

    The NotImplementedError for a refused step names the user's lines and what to write instead.
    """
    name, directory = name_of(step, shapes), installation.cache_directory()
    if (cached := load(directory, name)) is not None:
        return cached
    found = [finding for finding in scan(step) if finding.severity is Severity.FAILS]
    if found:
        raise refused(found)
    try:
        module = lower(step, shapes)
    except LoweringError as error:
        raise refused(refusals(error, step.plan.graph)) from None
    store(directory, name, module)
    return module


def name_of(step: ReplicaStep, shapes: Mapping[Key, Sequence[int]]) -> str:
    """The name of a step's file: the same for the same step, TensorFlow and package."""
    feeds = [[t.name, str(shapes.get(key(t), t.shape)), t.dtype.name] for t in step.feeds]
    # The definitions have only the variables' handles, without shapes.
    variables = [
        [op.name, str(tf.TensorShape(op.get_attr("shape"))), op.get_attr("dtype").name]
        for op in step.variables
    ]
    request = [tf.__version__, feeds, variables, [t.name for t in step.program.fetches]]
    digest = hashlib.sha256(json.dumps(request).encode())
    digest.update(b"\0" + cache_files.sources())
    for definition in step.program.definitions():
        digest.update(b"\0" + definition)
    return digest.hexdigest()


def load(directory: pathlib.Path, name: str) -> StepModule | None:
    """The module with a name; None where there is none, or its file is damaged."""
    if (content := cache_files.read(directory / f"{name}.module")) is None:
        return None
    described, code = content.split(b"\n", 1)
    return StepModule.from_json(code, json.loads(described))


def store(directory: pathlib.Path, name: str, module: StepModule) -> None:
    content = json.dumps(module.to_json()).encode() + b"\n" + module.code
    cache_files.write(directory / f"{name}.module", content)
