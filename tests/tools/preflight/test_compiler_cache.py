import dataclasses

import numpy as np
import pytest

from tpu_estimator_compat.engine.files import cache_files
from tpu_estimator_compat.engine.jax.lowering.step_module import Array, Dispatch, StepModule
from tpu_estimator_compat.tools.preflight import compiler, targets
from tpu_estimator_compat.tools.preflight.compiled import Error
from tpu_estimator_compat.tools.preflight.targets import tpu

from . import stablehlo_modules as modules

VERSIONS = {"jax": "0.10.2", "jaxlib": "0.10.2", "libtpu": tpu.LIBTPU}

pytestmark = pytest.mark.slow  # each test waits for processes


@pytest.mark.parametrize(
    "program", [modules.step(1), modules.layers(5, 3), modules.call("nobody_knows")]
)
def test_what_the_compiler_said_is_kept(compile_for, no_worker, program):
    first = compile_for(program)
    no_worker()
    second = compile_for(program)

    assert (first.cached, second.cached) == (False, True)
    assert {**vars(second), "cached": False} == vars(first)


def test_a_damaged_file_is_ignored_and_written_again(compile_for, no_worker, cache):
    first = compile_for(modules.step(1))
    (file,) = cache.iterdir()
    file.write_text(file.read_text()[:-20])

    again = compile_for(modules.step(1))
    assert not again.cached
    assert again.memory == first.memory
    assert [p.name for p in cache.iterdir()] == [file.name]
    no_worker()
    assert compile_for(modules.step(1)).cached


def test_what_is_part_of_the_key(monkeypatch):
    x, y = (Array(shape, np.dtype("float32")) for shape in [(2, 3), (3, 2)])
    step = StepModule(b"p", (x,), {"v": x, "w": x}, ("loss:0",))

    def key(topology="v5e:2x2", replicas=1, versions=VERSIONS, most=1, loss=0, **other):
        dispatch = Dispatch(dataclasses.replace(step, **other), most, loss)
        return compiler.key(dispatch, targets.parse(topology), replicas, versions)

    keys = {
        key(),
        key(code=b"q"),
        key(feeds=(y,)),
        key(variables={"v": x, "w": y}),
        key(variables={"w": x, "v": x}),
        key(fetches=("loss:0", "other:0")),
        key(most=2),
        key(loss=None),
        key(topology="v5e:1x1"),
        key(topology="h100:4"),
        key(replicas=4),
        key(versions={**VERSIONS, "libtpu": "0.0.52"}),
    }
    assert len(keys) == 12
    assert key() == key(versions=dict(reversed(VERSIONS.items())))
    monkeypatch.setattr(cache_files, "sources", lambda: b"other sources")
    assert key() not in keys


def test_the_number_of_a_step_is_not_part_of_the_key():
    def key(code):
        dispatch = Dispatch(StepModule(code, (), {}, ()))
        return compiler.key(dispatch, targets.parse("v5e:2x2"), 1, VERSIONS)

    assert key(b"\0a_inference_step_73__.3\0x") == key(b"\0a_inference_step_74__.3\0x")
    assert key(b"\0a_inference_step_73__.3\0x") != key(b"\0a_inference_eval_73__.3\0x")
    assert key(b"\0dense_73\0") != key(b"\0dense_74\0")


def test_a_cache_that_cannot_be_written_does_no_harm(compile_for, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compile_for(modules.step(1)).error is Error.NONE
