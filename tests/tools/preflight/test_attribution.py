import pytest

from tpu_estimator_compat.engine.jax.lowering.findings import Kind
from tpu_estimator_compat.tools.preflight.report import Verdict

pytestmark = pytest.mark.slow


def test_a_batch_too_large_is_told_with_its_lines(wide):
    found = wide(2**12)
    [finding] = found.findings
    assert finding.kind is Kind.MEMORY
    assert found.verdict is Verdict.FAILS
    assert found.hbm < found.memory.total < 1.2 * found.hbm
    assert found.layers[-1].name == "second"
    assert sum(x.temporaries for x in found.layers) <= found.memory.temporaries
    largest = found.buffers[0]
    assert largest.size >= 2**12 * 2**22
    assert largest.source.code == 'hidden = tf.nn.relu(features["x"] @ first)'
