"""The limits of a report: the sentences about what it cannot know."""

from __future__ import annotations

from tpu_estimator_compat.tools.preflight.report import Depth, Report
from tpu_estimator_compat.tools.preflight.targets.gpu import WITH_ROOM

_NO_RUN = (
    "Nothing was run on such a device: neither its speed nor the results of a training are known."
)
_NO_GRAPH = "The step could not be captured: errors after the first are not known."
_NO_LOWERING = (
    "The step was only looked at, not lowered: shapes that XLA refuses, and values that must be "
    "constants, are not checked."
)
_NO_COMPILATION = (
    "The step was not compiled for the device: whether it fits the memory, and whether the "
    "device's compiler takes each operation, is not checked."
)
_JAX = (
    'What was compiled is what `runtime="jax"` runs. TensorFlow\'s own TPU runtime puts another '
    "loop around the same step."
)
_CPU_KERNELS = (
    'Operations are judged by TensorFlow\'s XLA kernels for the CPU, which `runtime="jax"` takes '
    "to the TPU. For TensorFlow's own TPU runtime, an operation with a kernel for the CPU but none "
    "for the TPU is not reported."
)
_TPU_ONLY = (
    "Operations that only a TPU has (infeed, outfeed, TPUEmbedding, outside compilation) are "
    "flagged, though a TPU has them."
)
_DYNAMIC = (
    "Shapes that depend on data (`tf.unique`, `tf.where` with one argument, `tf.boolean_mask`) may "
    "compile here: whether a TPU runs them is not known."
)
_NOT_COUNTED = (
    "Of a GPU's memory this does not count what convolutions of cuDNN need for themselves, gaps "
    "between buffers, the input of the next dispatch, the CUDA context, and what NCCL and cuBLAS "
    "take. XLA's compiler for GPUs refuses no size: the verdict is this package's, at "
    f"{WITH_ROOM:.0%} of what JAX takes."
)
_NOT_TUNED = (
    "On a GPU, XLA tries several ways to compute a product or a convolution, and takes the "
    "fastest; here it could not. FLOPs are counted before fusion; bytes do not have those of "
    "library calls; the lower bound of a step is its FLOPs at the peak of 16-bit products."
)
_ESTIMATE = (
    "The memory is an estimate of this version of the compiler; two versions were 7% apart on "
    "the same step. Close to the limit, another version may decide otherwise."
)

_OF_COMPILED = (_ESTIMATE, _NOT_COUNTED, _NOT_TUNED, _JAX)
_OF_GPUS = (_NOT_COUNTED, _NOT_TUNED)
_OF_TPUS = (_JAX, _CPU_KERNELS, _TPU_ONLY, _DYNAMIC)

ORDER = (
    _NO_GRAPH,
    _NO_LOWERING,
    _NO_COMPILATION,
    _ESTIMATE,
    _NOT_COUNTED,
    _NOT_TUNED,
    _JAX,
    _CPU_KERNELS,
    _TPU_ONLY,
    _DYNAMIC,
    _NO_RUN,
)
"""All sentences, in the order of the reports."""


def cannot_know(report: Report) -> list[str]:
    """The sentences that hold for a report, by its depth and its kind of device."""
    reached = report.reached
    if reached is None:
        return [_NO_GRAPH, _NO_COMPILATION, _NO_RUN]
    missing = {_NO_GRAPH}
    missing |= {*_OF_COMPILED} if reached < Depth.COMPILE else {_NO_COMPILATION}
    missing |= {_DYNAMIC} if reached < Depth.LOWER else {_NO_LOWERING}
    missing |= {*_OF_GPUS} if report.kind == "TPU" else {*_OF_TPUS}
    return [sentence for sentence in ORDER if sentence not in missing]
