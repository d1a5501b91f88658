"""`tf.contrib.seq2seq`: decoders, their helpers, attention, and a sequence loss."""

from typing import Any

from tpu_estimator_compat.old_names.contrib import taken_over
from tpu_estimator_compat.old_names.contrib.seq2seq import (
    attention,
    attention_wrapper,
    basic_decoder,
    beam_search,
    beams,
    decoding,
    helpers,
    losses,
    monotonic,
    scheduled_helpers,
)

__all__ = taken_over(
    globals(),
    {
        attention: """
            AttentionMechanism BahdanauAttention BahdanauMonotonicAttention LuongAttention
            LuongMonotonicAttention hardmax
        """,
        attention_wrapper: "AttentionWrapper AttentionWrapperState",
        basic_decoder: "BasicDecoder BasicDecoderOutput",
        beam_search: """
            BeamSearchDecoder BeamSearchDecoderOutput BeamSearchDecoderState
            FinalBeamSearchDecoderOutput
        """,
        beams: "gather_tree tile_batch",
        decoding: "Decoder dynamic_decode",
        helpers: """
            CustomHelper GreedyEmbeddingHelper Helper InferenceHelper SampleEmbeddingHelper
            TrainingHelper
        """,
        losses: "sequence_loss",
        monotonic: "monotonic_attention monotonic_probability_fn safe_cumprod",
        scheduled_helpers: "ScheduledEmbeddingTrainingHelper ScheduledOutputTrainingHelper",
    },
)


def __getattr__(name: str) -> Any:
    """Private names of modules, which scripts know below `tf.contrib.seq2seq.python.ops`."""
    if name[:1] == "_" != name[1:2]:
        for module in (attention, attention_wrapper, beam_search, beams, decoding, helpers):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
