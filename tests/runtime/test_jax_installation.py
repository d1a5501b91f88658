"""What this package asks of JAX beyond its stable interfaces is there in the pinned version.

With another JAX in `jax_installation.VERSIONS`, this says first which of it has moved.
"""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from importlib import metadata

import pytest

import tpu_estimator_compat as tpu
from tpu_estimator_compat.runtime import jax_installation
from tpu_estimator_compat.topology import resolution

USED_IN = {
    "jax.core:ShapedArray": "jax_runtime/module.py",
    "jax.extend.core:Primitive": "jax_runtime/module.py",
    "jax.extend.core:Primitive.def_abstract_eval": "jax_runtime/module.py",
    "jax.extend.core:Primitive.bind": "jax_runtime/module.py",
    "jax.extend.mlir.ir:Module.parse": "jax_runtime/module.py",
    "jax.extend.mlir.passmanager:PassManager.parse": "jax_runtime/module.py",
    "jax.extend.mlir.dialects.func:CallOp": "jax_runtime/module.py",
    "jax.interpreters.mlir:aval_to_ir_types": "jax_runtime/module.py",
    "jax.interpreters.mlir:make_ir_context": "jax_runtime/module.py",
    "jax.interpreters.mlir:merge_mlir_modules": "jax_runtime/module.py",
    "jax.interpreters.mlir:register_lowering": "jax_runtime/module.py",
    "jax:enable_x64": "jax_runtime/step_function.py",
    "jax:shard_map": "jax_runtime/step_function.py",
    "jax:make_array_from_callback": "jax_runtime/variables.py",
    "jax:make_array_from_process_local_data": "jax_runtime/step_function.py",
    "jax.distributed:initialize": "topology/jax_cluster.py",
    "jax.distributed:is_initialized": "topology/jax_cluster.py",
    "jax.experimental.multihost_utils:broadcast_one_to_all": "runtime/jax_processes.py",
    "jax._src.distributed:global_state.client": "runtime/jax_processes.py",
    "jax:config.jax_compilation_cache_dir": "runtime/jax_installation.py",
    "jax:config.jax_num_cpu_devices": "runtime/jax_installation.py",
    "jax._src.xla_bridge:backends_are_initialized": "runtime/jax_installation.py",
    "jax.experimental.topologies:get_topology_desc": "preflight/worker.py",
    "jax.stages:Lowered.compile": "preflight/worker.py",
    "jax.stages:Compiled.cost_analysis": "preflight/worker.py",
    "jax.stages:Compiled.memory_analysis": "preflight/worker.py",
}
"""What is used, and where: "module:attributes"."""

PARAMETERS = {
    "jax:shard_map": {"mesh", "in_specs", "out_specs", "axis_names", "check_vma"},
    "jax:jit": {"donate_argnums", "in_shardings", "out_shardings"},
    "jax.distributed:initialize": {
        "coordinator_address",
        "num_processes",
        "process_id",
        "cluster_detection_method",
        "initialization_timeout",
        "heartbeat_timeout_seconds",
        "shutdown_timeout_seconds",
    },
    "jax.experimental.multihost_utils:broadcast_one_to_all": {"in_tree", "is_source"},
    "jax:make_array_from_callback": {"shape", "sharding", "data_callback"},
    "jax.interpreters.mlir:merge_mlir_modules": {
        "dst_module",
        "sym_name",
        "src_module",
        "dst_symtab",
    },
    "jax.interpreters.mlir:register_lowering": {"prim", "rule"},
    "jax.experimental.topologies:get_topology_desc": {"platform", "topology_name"},
    "jax.stages:Lowered.compile": {"compiler_options"},
}
"""Parameters that are given by name, or by their place."""

PUT_RIGHT = (
    "JAX {version} has moved what {file} uses: {what}. Follow it there, or pin the JAX before it "
    "in setup.cfg and runtime/jax_installation.py."
)


GONE = object()


def found(name: str):
    """The object of a name; GONE where it is not there, or is to go."""
    module, _, attributes = name.partition(":")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a name that is to go says so when it is looked up
        try:
            value = importlib.import_module(module)
            for attribute in attributes.split("."):
                value = getattr(value, attribute)
        except (ImportError, AttributeError, DeprecationWarning):
            return GONE
    return value


def moved(name: str) -> str:
    words = {"version": metadata.version("jax"), "file": USED_IN.get(name, "the runtime")}
    return PUT_RIGHT.format(what=name, **words)


@pytest.mark.parametrize("name", USED_IN)
def test_it_is_there(name):
    assert found(name) is not GONE, moved(name)


@pytest.mark.parametrize("name", PARAMETERS)
def test_it_takes_what_it_is_given(name):
    assert found(name) is not GONE, moved(name)
    taken = set(inspect.signature(found(name)).parameters)
    missing = PARAMETERS[name] - taken
    assert not missing, f"{moved(name)} It has no {sorted(missing)} any more."


def test_an_array_has_a_tuple_of_types():
    name = "jax.interpreters.mlir:aval_to_ir_types"
    returned = inspect.signature(found(name)).return_annotation
    assert returned == "tuple[ir.Type, ...]", moved(name)


def test_what_is_installed_is_what_was_tried():
    jax_installation.check()


def test_another_version_is_refused_by_name(monkeypatch):
    monkeypatch.setitem(jax_installation.VERSIONS, "jax", "99.0")
    with pytest.raises(ImportError, match=re.escape("needs jax 99.0")) as refused:
        jax_installation.check()
    assert "pip install 'tpu_estimator_compat[jax]'" in str(refused.value)


def topology_of(mode="train", tpu_semantics=True, **config):
    return resolution.resolve(tpu.RunConfig(**config), mode, tpu_semantics=tpu_semantics)


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(jax_installation, "VERSIONS", {"jax": "0.1", "jaxlib": "0.10.2"})
    with pytest.raises(ImportError, match=r"needs jax 0\.1 and jaxlib 0\.10\.2.*pip install"):
        topology_of(runtime="jax")
