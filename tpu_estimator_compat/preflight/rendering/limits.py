"""What a report leaves open: the sentences that keep it from being read as more than it is."""

from __future__ import annotations

from tpu_estimator_compat.preflight.report import Depth, Report

_NO_RUN = "Nothing was run on a TPU: neither its speed nor the results of a training are known."
_NO_GRAPH = "The step could not be captured: what is wrong behind the first error is not known."
_NO_LOWERING = (
    "The step was only looked at, not lowered: shapes that XLA refuses, and values that must be "
    "constants, are not checked."
)
_NO_COMPILATION = (
    "The step was not compiled for a TPU: whether it fits the memory, and whether the TPU's "
    "compiler takes each operation, is not checked."
)
_JAX = (
    'What was compiled is what `runtime="jax"` runs. TensorFlow\'s own TPU runtime puts another '
    "loop around the same step."
)
_CPU_KERNELS = (
    'Operations are judged by TensorFlow\'s XLA kernels for the CPU, which `runtime="jax"` takes '
    "to the TPU. In TensorFlow's own TPU runtime, one that has such a kernel, but none for the "
    "TPU, passes unseen."
)
_TPU_ONLY = (
    "Operations that only a TPU has (infeed, outfeed, TPUEmbedding, outside compilation) are "
    "flagged, though a TPU has them."
)
_DYNAMIC = (
    "Shapes that depend on data (`tf.unique`, `tf.where` with one argument, `tf.boolean_mask`) may "
    "compile here: how a TPU takes them was not tried."
)
_ESTIMATE = (
    "The memory is an estimate of this version of the compiler; two versions were 7% apart on "
    "the same step. Close to the limit, another version may decide otherwise."
)

ORDER = (
    _NO_GRAPH,
    _NO_LOWERING,
    _NO_COMPILATION,
    _ESTIMATE,
    _JAX,
    _CPU_KERNELS,
    _TPU_ONLY,
    _DYNAMIC,
    _NO_RUN,
)
"""All sentences there are, in the order in which they are to be read."""


def cannot_know(report: Report) -> list[str]:
    """Sentences on what is not known at the depth that a report reached, and why."""
    reached = report.reached
    if reached is None:
        return [_NO_GRAPH, _NO_COMPILATION, _NO_RUN]
    missing = {_NO_GRAPH}
    missing |= {_ESTIMATE, _JAX} if reached < Depth.COMPILE else {_NO_COMPILATION}
    missing |= {_DYNAMIC} if reached < Depth.LOWER else {_NO_LOWERING}
    return [sentence for sentence in ORDER if sentence not in missing]
