import configparser
import json
import pathlib
import subprocess
import sys
import time
from importlib import metadata

import numpy as np
import pytest
import tensorflow as tf
from support import python_path

from tpu_estimator_compat.engine.jax.lowering.step_module import Array, Dispatch, StepModule
from tpu_estimator_compat.tools.preflight import compiler, targets
from tpu_estimator_compat.tools.preflight.compiled import Error, Place
from tpu_estimator_compat.tools.preflight.targets import tpu

from . import stablehlo_modules as modules

ROOT = pathlib.Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("topology", "replicas", "device"),
    [
        ("v5e:1x1", 1, "TPU v5 lite"),
        ("v5e:2x2", 4, "TPU v5 lite"),
        pytest.param("v2:2x2", 8, "TPU v2", marks=pytest.mark.slow),
        pytest.param("v3:2x2", 8, "TPU v3", marks=pytest.mark.slow),
        pytest.param("v3:4x4", 8, "TPU v3", marks=pytest.mark.slow),
        pytest.param("v4:2x2x1", 1, "TPU v4", marks=pytest.mark.slow),
        pytest.param("v4:2x2x2", 8, "TPU v4", marks=pytest.mark.slow),
        pytest.param("v5p:2x2x1", 4, "TPU v5", marks=pytest.mark.slow),
        pytest.param("v6e:2x4", 8, "TPU v6 lite", marks=pytest.mark.slow),
        pytest.param("tpu7x:2x2x1", 8, "TPU7x", marks=pytest.mark.slow),
    ],
)
def test_a_step_compiles(compile_for, topology, replicas, device):
    result = compile_for(modules.step(replicas), topology, replicas)

    assert (result.error, result.message) == (Error.NONE, "")
    kib = 2**10
    assert result.memory.arguments == (256 + 512 + 128) * kib
    assert result.memory.aliased == 256 * kib
    assert result.memory.outputs - result.memory.aliased <= 2 * kib  # how many steps were made
    assert 0 <= result.memory.temporaries <= 1024 * kib
    assert result.memory.code > 0
    assert modules.STEP_FLOPS <= result.flops <= 1.01 * modules.STEP_FLOPS
    assert result.bytes_accessed > (256 + 256 + 512 + 128) * kib
    assert result.collectives == ({"all-reduce": 1} if replicas > 1 else {})
    assert result.compiler.startswith("libtpu 0.0.51, ")
    assert f"{device} Built on" in result.compiler
    assert not result.cached
    assert result.seconds > 0


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A step of one replica alone, compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return compiler.compile(modules.step(1), targets.parse("v5e:1x1"), 1)


def test_the_arguments_are_known(alone):
    found = alone.buffers

    arguments = [b for b in found if b.place is Place.ARGUMENT]
    assert {(b.op_name, b.feed): (b.size, b.unpadded) for b in arguments} == {
        ("w", None): (2**18, 2**18),
        ("", 0): (2**19, 2**19),
        ("", 1): (2**17, 2**17),
    }
    # The variable's new value is in its place; what is left is the number of steps made.
    assert [b.shape.partition("{")[0] for b in found if b.place is Place.OUTPUT] == ["s32[]"]


def test_a_loop_is_counted_as_one_step(compile_for, alone):
    loop = compile_for(modules.step(1, most=16))

    # The body of the loop counts once; what the compiler moves before it is for all steps: here it
    # makes bfloat16 of their input.
    elements = 16 * 256 * (512 + 128)
    assert 0 <= loop.flops - alone.flops <= 1.01 * elements
    assert 0 <= loop.bytes_accessed - alone.bytes_accessed <= 2 * 6 * elements
    more = 15 * (512 + 128) * 2**10  # the input of the other steps
    assert more <= loop.memory.arguments - alone.memory.arguments <= more + 2**10
    assert loop.memory.aliased == alone.memory.aliased


@pytest.mark.slow  # another process of the compiler
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("collective_permute", {"source_target_pairs": [[0, 1], [1, 2], [2, 3], [3, 0]]}),
        (
            "all_to_all",
            {
                "split_dimension": 0,
                "concat_dimension": 0,
                "split_count": 4,
                "replica_groups": [[0, 1, 2, 3]],
            },
        ),
    ],
)
def test_a_marker_becomes_the_collective(compile_for, kind, config):
    program = modules.call(f"tpu_estimator_compat.{kind}", json.dumps(config))
    result = compile_for(program, "v5e:2x2", 4)

    assert result.error is Error.NONE
    assert result.collectives == {kind.replace("_", "-"): 1}


@pytest.mark.slow  # another process of the compiler
def test_what_tensorflow_leaves_of_its_own_dialect_is_replaced(compile_for):
    type_ = "tensor<8x128xf32>"
    program = modules.module(
        f'%c = "mhlo.copy"(%x) : ({type_}) -> {type_}\n%r = "mhlo.erf"(%c) : ({type_}) -> {type_}',
        type_,
        {"x": type_},
    )

    assert compile_for(program).error is Error.NONE


def test_a_step_that_tensorflow_has_lowered(compile_for):
    weights, bias = tf.Variable(tf.zeros([256, 128])), tf.Variable(tf.zeros([128]))

    @tf.function(jit_compile=True)
    def train(images, labels):
        with tf.GradientTape() as tape:
            with tf.name_scope("model/dense"):
                logits = tf.math.erf(images @ weights + bias)
            loss = tf.reduce_mean((logits - labels) ** 2)
        for variable, gradient in zip(
            (weights, bias), tape.gradient(loss, (weights, bias)), strict=True
        ):
            variable.assign_sub(gradient)
        return loss

    specs = tf.TensorSpec([64, 256]), tf.TensorSpec([64, 128])
    lowered = train.experimental_get_compiler_ir(*specs)
    code = lowered(stage="stablehlo_serialized", platform_name="CPU")
    assert b"mhlo" in code
    feeds = tuple(Array(tuple(spec.shape.as_list()), np.dtype("float32")) for spec in specs)
    shapes = {"weights": (256, 128), "bias": (128,)}
    variables = {name: Array(shape, np.dtype("float32")) for name, shape in shapes.items()}
    result = compile_for(Dispatch(StepModule(code, feeds, variables, ("loss:0",))))

    assert (result.error, result.message) == (Error.NONE, "")
    assert result.memory.arguments == 4 * (64 * 256 + 64 * 128 + 256 * 128 + 128)
    assert result.memory.aliased == 4 * (256 * 128 + 128)
    assert result.flops > 2 * 2 * 64 * 256 * 128


@pytest.mark.slow
def test_the_largest_temporaries_of_a_step_that_fits_have_names(compile_for):
    result = compile_for(modules.layers(1.5, 6))

    assert result.error is Error.NONE
    temporaries = [b for b in result.buffers if b.place is Place.TEMPORARY]
    together = sum(b.size for b in temporaries)
    assert 0.8 * result.memory.temporaries < together <= result.memory.temporaries
    named = {b.op_name for b in temporaries}
    assert {f"model/dense_{i}/MatMul" for i in range(5)} <= named
    assert all(b.size > b.unpadded for b in temporaries if b.size > 2**30)


@pytest.mark.slow
def test_a_step_that_is_a_little_too_large(compile_for):
    result = compile_for(modules.layers(2.3, 3))

    assert result.error is Error.TOO_LARGE
    assert result.memory is None
    hbm = targets.parse("v5e:1x1").hbm
    assert result.available == pytest.approx(hbm, abs=0.006 * 2**30)
    assert result.available < result.needed < 1.1 * result.available
    temporaries = [b.op_name for b in result.buffers if b.place is Place.TEMPORARY]
    assert temporaries[0] == "gradients/dense_1/MatMul"
    assert sorted(temporaries[1:]) == [f"model/dense_{i}/MatMul" for i in range(3)]
    assert sum(b.size for b in result.buffers) == pytest.approx(result.needed, rel=0.01)


def test_a_step_that_is_hopelessly_too_large(compile_for):
    start = time.monotonic()
    result = compile_for(modules.layers(5, 3))

    assert result.error is Error.TOO_LARGE
    assert result.needed > 1.5 * result.available
    assert time.monotonic() - start < 60
    sizes = [b.size for b in result.buffers]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == pytest.approx(result.needed, rel=0.01)
    assert result.buffers[0].op_name == "gradients/dense_1/MatMul"


@pytest.mark.slow  # another process of the compiler
def test_variables_that_are_too_large(compile_for):
    type_ = "tensor<6000000x1024xf32>"
    program = modules.module(
        f"%r = stablehlo.negate %x : {type_}", type_, {}, {"x": type_}, updated="x"
    )
    result = compile_for(program)

    assert result.error is Error.TOO_LARGE
    assert result.needed == pytest.approx(6e6 * 4096, rel=0.01)
    assert (result.buffers[0].place, result.buffers[0].op_name) == (Place.ARGUMENT, "x")


def test_an_unknown_custom_call_is_refused(compile_for):
    result = compile_for(modules.call("nobody_knows"))

    assert result.error is Error.REFUSED
    assert result.message == "INVALID_ARGUMENT: Custom emitter for nobody_knows not found"
    assert result.memory is None
    assert "TPU v5 lite" in result.compiler


@pytest.mark.slow  # another process of the compiler
def test_failures_of_lowering_are_not_the_compilers(compile_for):
    @tf.function(jit_compile=True, autograph=False)
    def step(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_mean(tf.boolean_mask(x, mask))
        return tape.gradient(y, x)

    ir = step.experimental_get_compiler_ir(tf.TensorSpec([16, 8]), tf.TensorSpec([16], tf.bool))
    code = ir(stage="stablehlo_serialized", platform_name="CPU")
    feeds = Array((16, 8), np.dtype("float32")), Array((16,), np.dtype("bool"))
    result = compile_for(Dispatch(StepModule(code, feeds, {}, ("gradient:0",))))

    assert result.error is Error.NOT_EXPRESSED
    assert "mhlo.unknown" in result.message


@pytest.mark.slow  # another process of the compiler
@pytest.mark.parametrize(
    ("dispatch", "said"),
    [
        (Dispatch(StepModule(b"not a module", (), {}, ())), "Unable to parse module"),
        (
            modules.call("tpu_estimator_compat.all_to_all", "{}"),
            "'stablehlo.all_to_all' op requires attribute",
        ),
    ],
)
def test_what_cannot_be_expressed(compile_for, dispatch, said):
    result = compile_for(dispatch, "v5e:2x2", 4)
    assert result.error is Error.NOT_EXPRESSED
    assert said in result.message


@pytest.mark.parametrize("replicas", [0, 5])
def test_more_replicas_than_devices(compile_for, replicas):
    with pytest.raises(
        ValueError, match=rf"v5e:2x2 has 4 device\(s\), 1 for.*got {replicas} replicas"
    ):
        compile_for(modules.step(1), "v5e:2x2", replicas)


@pytest.mark.slow  # another process of the compiler
def test_variables_of_the_user_do_not_matter(compile_for, monkeypatch):
    for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS"):
        monkeypatch.setenv(name, "--there_is_no_such_flag")
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", "v4-8")

    assert compile_for(modules.step(4), "v5e:2x2", 4).error is Error.NONE


def test_the_version_is_that_of_the_extra():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert f"libtpu=={tpu.LIBTPU}" in config["options.extras_require"]["preflight"].split()


IMPORTS = """
import json, pathlib, sys
from tpu_estimator_compat.tools.preflight import worker
answered = sorted(worker.answer(pathlib.Path(sys.argv[1])))
print(json.dumps([answered, [m for m in ("tensorflow", "keras") if m in sys.modules]]))
"""


def test_the_worker_imports_no_tensorflow(tmp_path):
    target = targets.parse("v5e:1x1")
    compiler.write_request(tmp_path, modules.step(1, most=2), target, 1)
    done = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTS, str(tmp_path)],
        env={**compiler.environment_of(target), "PYTHONPATH": python_path.joined()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answered = ["bytes_accessed", "compiler", "flops", "memory"]
    assert json.loads(done.stdout) == [answered, []]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({}, "found no jax, no jaxlib, no libtpu"),
        ({"jax": "0.10.2", "jaxlib": "0.10.2"}, "found jax 0.10.2, jaxlib 0.10.2, no libtpu"),
        (
            {"jax": "0.10.2", "jaxlib": "0.10.2", "libtpu": "0.0.52"},
            "found jax 0.10.2, jaxlib 0.10.2, libtpu 0.0.52",
        ),
    ],
)
def test_missing_packages_are_named(compile_for, monkeypatch, no_worker, found, words):
    # Stands in for another environment: the installed packages' metadata.
    def version(package):
        if package not in found:
            raise metadata.PackageNotFoundError(package)
        return found[package]

    monkeypatch.setattr(metadata, "version", version)
    no_worker()
    result = compile_for(modules.step(1))

    assert result.error is Error.MISSING
    assert words in result.message
    jax = "jax 0.10.2 to 0.12.0.1, jaxlib 0.10.2 to 0.12.0.1"
    assert f"Compiling for a TPU needs {jax}, libtpu==0.0.51;" in result.message
    assert (
        "pip install 'jax>=0.10.2,<0.13' 'jaxlib>=0.10.2,<0.13' 'libtpu==0.0.51'`" in result.message
    )


def test_the_parent_imports_neither_jax_nor_tensorflow():
    code = (
        "import sys; from tpu_estimator_compat.tools.preflight import compiler, targets;"
        "print([m for m in ('jax', 'jaxlib', 'libtpu', 'tensorflow', 'numpy') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == "[]"
