"""The limits of a report: the sentences about what it cannot know."""

from __future__ import annotations

from collections.abc import Callable

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

_HOLDS: dict[str, Callable[[Report], bool]] = {
    _NO_GRAPH: lambda r: r.reached is None,
    _NO_LOWERING: lambda r: r.reached is Depth.SCAN,
    _NO_COMPILATION: lambda r: r.reached is not Depth.COMPILE,
    _ESTIMATE: lambda r: r.reached is Depth.COMPILE,
    _NOT_COUNTED: lambda r: r.reached is Depth.COMPILE and r.kind == "GPU",
    _NOT_TUNED: lambda r: r.reached is Depth.COMPILE and r.kind == "GPU",
    _JAX: lambda r: r.reached is Depth.COMPILE and r.kind == "TPU",
    _CPU_KERNELS: lambda r: r.reached is not None and r.kind == "TPU",
    _TPU_ONLY: lambda r: r.reached is not None and r.kind == "TPU",
    _DYNAMIC: lambda r: (r.reached or 0) >= Depth.LOWER and r.kind == "TPU",
    _NO_RUN: lambda r: True,
}
ORDER = list(_HOLDS)
"""All sentences, in the order of the reports."""


def cannot_know(report: Report) -> list[str]:
    return [sentence for sentence, holds in _HOLDS.items() if holds(report)]
