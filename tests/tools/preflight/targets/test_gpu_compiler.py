import pytest

from tpu_estimator_compat.tools.preflight.compiled import Error, Place
from tpu_estimator_compat.tools.preflight.targets import gpu

from .. import stablehlo_modules as modules

pytestmark = pytest.mark.slow  # another process of the compiler

KIB = 2**10


@pytest.mark.parametrize("card", gpu.cards())
def test_a_step_compiles(compile_for, with_gpu_compiler, card):
    count = 4 if card in ("h100", "t4") else 1
    result = compile_for(modules.step(count), f"{card}:{count}", count)
    assert (result.error, result.message) == (Error.NONE, "")
    assert result.memory.arguments == (256 + 512 + 128) * KIB
    assert result.memory.aliased == 256 * KIB
    assert result.memory.outputs - result.memory.aliased <= 2 * KIB
    # Partial sums of the product, as many as suit the card, or none.
    temporaries = sum(b.size for b in result.buffers if b.place is Place.TEMPORARY)
    assert temporaries <= result.memory.temporaries <= temporaries + KIB
    assert modules.STEP_FLOPS <= result.flops <= 1.01 * modules.STEP_FLOPS
    assert result.bytes_accessed > 0
    assert result.collectives == ({"all-reduce": 1} if count > 1 else {})
    assert result.convolutions == 0
    assert result.compiler == f"XLA of jaxlib 0.10.2, {result.compiler.partition(', ')[2]}"


def test_buffers_have_names(compile_for, with_gpu_compiler):
    found = compile_for(modules.step(1, most=16), "h100:1").buffers
    arguments = [b for b in found if b.place is Place.ARGUMENT]
    assert {(b.op_name, b.feed): b.size for b in arguments if b.size > KIB} == {
        ("w", None): 256 * KIB,
        ("", 0): 16 * 512 * KIB,
        ("", 1): 16 * 128 * KIB,
    }
    temporaries = [b for b in found if b.place is Place.TEMPORARY and b.size > KIB]
    assert {b.op_name for b in temporaries} == {"gradients/dense/MatMul"}


def test_the_same_program_is_judged_anew_for_another_share(
    compile_for, with_gpu_compiler, no_worker
):
    assert compile_for(modules.step(1), "t4:1").error is Error.NONE
    no_worker()
    result = compile_for(modules.step(1), "t4:1", share=1e-5)
    assert (result.cached, result.error) == (True, Error.TOO_LARGE)
    assert result.needed == result.memory.total
    assert result.available == gpu.parse("t4:1", 1e-5).hbm


def test_what_nobody_knows_is_refused(compile_for, with_gpu_compiler):
    result = compile_for(modules.call("nobody_knows"), "h100:1")
    assert result.error is Error.REFUSED
    assert "nobody_knows" in result.message
