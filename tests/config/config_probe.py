"""Builds configurations from expressions and reports them as JSON; runs here and in the original.

As a script it reads `[[tf_config, expression], ...]` from stdin, builds each with the original's
classes and prints the reports. `tf_config` is TF_CONFIG's value as an object, or null for unset.
"""

import functools
import importlib
import json
import os
import pathlib
import re
import sys

import tensorflow as tf

ORIGINAL = {
    "RunConfig": ("tensorflow_estimator.python.estimator.run_config", "RunConfig"),
    "TPURunConfig": ("tensorflow_estimator.python.estimator.tpu.tpu_config", "RunConfig"),
    "TPUConfig": ("tensorflow_estimator.python.estimator.tpu.tpu_config", "TPUConfig"),
    "InputPipelineConfig": (
        "tensorflow_estimator.python.estimator.tpu.tpu_config",
        "InputPipelineConfig",
    ),
    "parse_iterations_per_loop": (
        "tensorflow_estimator.python.estimator.tpu.util",
        "parse_iterations_per_loop",
    ),
    "default_session_config": (
        "tensorflow_estimator.python.estimator.run_config",
        "get_default_session_config",
    ),
}
# Ours alone, and the original's mark of the distribute coordinator, which is not used here.
NOT_COMPARED = {
    "_jit_compile",
    "jit_compile",
    "_runtime",
    "runtime",
    "_save_input_state",
    "save_input_state",
    "_distribute_coordinator_mode",
}


class OpCallable:
    def __call__(self, op):
        return "/cpu:0"

    def __repr__(self):
        """The same in both environments, where this module has two names."""
        return "OpCallable()"


def resolver(*addresses):
    spec = tf.train.ClusterSpec({"worker": list(addresses)} if addresses else {})
    return tf.distribute.cluster_resolver.SimpleClusterResolver(spec, master="grpc://resolved:1")


def uninitialized_parameter_server_strategy():
    """A strategy of that class; a real one would start servers."""
    return object.__new__(tf.distribute.experimental.ParameterServerStrategy)


def replaced_attribute(config, **attributes):
    """`config` with private attributes set from outside, as scripts in the field do."""
    for name, value in attributes.items():
        setattr(config, name, value)
    return config


def originals():
    return {
        name: getattr(importlib.import_module(module), attribute)
        for name, (module, attribute) in ORIGINAL.items()
    }


def _text(value):
    if isinstance(value, tf.distribute.cluster_resolver.ClusterResolver):
        return type(value).__name__
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _fields(value):
    if not hasattr(value, "save_checkpoints_steps"):
        return {"repr": _text(value)}
    public = {name for name in dir(type(value)) if isinstance(getattr(type(value), name), property)}
    names = (public | set(vars(value))) - NOT_COMPARED
    return {name: _text(getattr(value, name)) for name in sorted(names)}


def report(names, tf_config, expression):
    os.environ.pop("TF_CONFIG", None)
    if tf_config is not None:
        os.environ["TF_CONFIG"] = json.dumps(tf_config)
    tools = {
        "tf": tf,
        "v1": tf.compat.v1,
        "partial": functools.partial,
        "Path": pathlib.Path,
        "OpCallable": OpCallable,
        "resolver": resolver,
        "uninitialized_parameter_server_strategy": uninitialized_parameter_server_strategy,
        "replaced_attribute": replaced_attribute,
    }
    try:
        return {"fields": _fields(eval(expression, {**tools, **names}))}
    except Exception as error:  # The error is the outcome to compare.
        return {"error": type(error).__name__, "message": str(error)}
    finally:
        os.environ.pop("TF_CONFIG", None)


if __name__ == "__main__":
    ORIGINALS = originals()
    print(json.dumps([report(ORIGINALS, *case) for case in json.load(sys.stdin)]))
