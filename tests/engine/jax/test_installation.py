"""What this package asks of JAX beyond its stable interfaces is there in the installed release.

With another JAX, this says first which of it has moved.
"""

import configparser
import importlib
import inspect
import pathlib
import re
import warnings
from importlib import metadata

import pytest

import tpu_estimator_compat as tpu
from tpu_estimator_compat.engine.jax import installation
from tpu_estimator_compat.engine.topology import chosen_topology

ROOT = pathlib.Path(__file__).parents[3]

USED_IN = {
    "jax.core:ShapedArray": "engine/jax/module.py",
    "jax.extend.core:Primitive": "engine/jax/module.py",
    "jax.extend.core:Primitive.def_abstract_eval": "engine/jax/module.py",
    "jax.extend.core:Primitive.bind": "engine/jax/module.py",
    "jax.extend.mlir.ir:Module.parse": "engine/jax/module.py",
    "jax.extend.mlir.passmanager:PassManager.parse": "engine/jax/module.py",
    "jax.extend.mlir.dialects.func:CallOp": "engine/jax/module.py",
    "jax.interpreters.mlir:aval_to_ir_types": "engine/jax/module.py",
    "jax.interpreters.mlir:make_ir_context": "engine/jax/module.py",
    "jax.interpreters.mlir:merge_mlir_modules": "engine/jax/module.py",
    "jax.interpreters.mlir:register_lowering": "engine/jax/module.py",
    "jax:enable_x64": "engine/jax/step_function.py",
    "jax:shard_map": "engine/jax/step_function.py",
    "jax:make_array_from_callback": "engine/jax/variables.py",
    "jax.distributed:initialize": "engine/jax/processes/joining.py",
    "jax.distributed:is_initialized": "engine/jax/processes/joining.py",
    "jax.experimental.multihost_utils:broadcast_one_to_all": "engine/jax/processes/group.py",
    "jax.experimental.multihost_utils:process_allgather": "engine/jax/processes/group.py",
    "jax._src.distributed:global_state.client": "engine/jax/processes/group.py",
    "jax:config.jax_compilation_cache_dir": "engine/jax/installation.py",
    "jax:config.jax_num_cpu_devices": "engine/jax/installation.py",
    "jax._src.xla_bridge:backends_are_initialized": "engine/jax/installation.py",
    "jax.experimental.topologies:get_topology_desc": "tools/preflight/worker.py",
    "jax.stages:Lowered.compile": "tools/preflight/worker.py",
    "jax.stages:Compiled.cost_analysis": "tools/preflight/worker.py",
    "jax.stages:Compiled.memory_analysis": "tools/preflight/worker.py",
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
    "JAX {version} has moved what {file} uses: {what}. Follow it there, or end the range "
    "before it, in setup.cfg and engine/jax/installation.py."
)


GONE = object()


def found(name: str):
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


def installed(monkeypatch, **versions):
    """Stands in for another environment: the versions of packages in it."""

    def version(package):
        if package not in versions:
            raise metadata.PackageNotFoundError(package)
        return versions[package]

    monkeypatch.setattr(metadata, "version", version)
    installation._warn_of_untried.cache_clear()


@pytest.mark.parametrize("version", [None, installation.OLDEST, "0.11.0", "0.12.0.1"])
def test_what_was_tried_is_taken_without_a_word(monkeypatch, caplog, version):
    """What is installed, and the range."""
    installation._warn_of_untried.cache_clear()
    if version is not None:
        installed(monkeypatch, jax=version, jaxlib=version)
    installation.check()
    assert not caplog.records


@pytest.mark.parametrize("version", ["0.10.1", "0.12.1", "1.0", "0.9.0.1", "0.13.0.dev20270101"])
def test_another_release_is_warned_of_once(monkeypatch, caplog, version):
    installed(monkeypatch, jax=version, jaxlib=version)
    for _ in range(2):
        installation.check()
    [record] = caplog.records
    assert f"JAX {version} was not tried" in record.getMessage()
    assert "doctor" in record.getMessage()
    assert "pip install 'jax>=0.10.2,<0.13' 'jaxlib>=0.10.2,<0.13'" in record.getMessage()


def test_the_extra_has_the_range():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    for package in ("jax", "jaxlib"):
        lines = config["options.extras_require"]["jax"].splitlines()
        [line] = [line for line in lines if line.startswith(package + ">")]
        oldest, below = re.fullmatch(r"\w+>=([\d.]+),<([\d.]+)", line).groups()
        assert oldest == installation.OLDEST
        numbers = installation._numbers
        assert numbers(oldest) < numbers(installation.NEWEST) < numbers(below)


def test_without_jax_it_is_an_error(monkeypatch):
    installed(monkeypatch, jax="0.10.2")  # its other half is missing
    with pytest.raises(ImportError, match=r"found jax 0\.10\.2, jaxlib None.*pip install"):
        chosen_topology.resolve(tpu.RunConfig(runtime="jax"), "train", tpu_semantics=True)
