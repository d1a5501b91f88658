"""`tf.contrib.seq2seq`: decoders, their helpers, attention, and a loss of sequences."""

from tpu_estimator_compat.old_names.contrib.seq2seq.attention import (
    AttentionMechanism,
    BahdanauAttention,
    BahdanauMonotonicAttention,
    LuongAttention,
    LuongMonotonicAttention,
    hardmax,
)
from tpu_estimator_compat.old_names.contrib.seq2seq.attention_wrapper import (
    AttentionWrapper,
    AttentionWrapperState,
)
from tpu_estimator_compat.old_names.contrib.seq2seq.basic_decoder import (
    BasicDecoder,
    BasicDecoderOutput,
)
from tpu_estimator_compat.old_names.contrib.seq2seq.beam_search import (
    BeamSearchDecoder,
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    FinalBeamSearchDecoderOutput,
)
from tpu_estimator_compat.old_names.contrib.seq2seq.beams import gather_tree, tile_batch
from tpu_estimator_compat.old_names.contrib.seq2seq.decoding import Decoder, dynamic_decode
from tpu_estimator_compat.old_names.contrib.seq2seq.helpers import (
    CustomHelper,
    GreedyEmbeddingHelper,
    Helper,
    InferenceHelper,
    SampleEmbeddingHelper,
    TrainingHelper,
)
from tpu_estimator_compat.old_names.contrib.seq2seq.losses import sequence_loss
from tpu_estimator_compat.old_names.contrib.seq2seq.monotonic import (
    monotonic_attention,
    monotonic_probability_fn,
    safe_cumprod,
)
from tpu_estimator_compat.old_names.contrib.seq2seq.scheduled_helpers import (
    ScheduledEmbeddingTrainingHelper,
    ScheduledOutputTrainingHelper,
)

__all__ = [
    "AttentionMechanism",
    "AttentionWrapper",
    "AttentionWrapperState",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "BasicDecoder",
    "BasicDecoderOutput",
    "BeamSearchDecoder",
    "BeamSearchDecoderOutput",
    "BeamSearchDecoderState",
    "CustomHelper",
    "Decoder",
    "FinalBeamSearchDecoderOutput",
    "GreedyEmbeddingHelper",
    "Helper",
    "InferenceHelper",
    "LuongAttention",
    "LuongMonotonicAttention",
    "SampleEmbeddingHelper",
    "ScheduledEmbeddingTrainingHelper",
    "ScheduledOutputTrainingHelper",
    "TrainingHelper",
    "dynamic_decode",
    "gather_tree",
    "hardmax",
    "monotonic_attention",
    "monotonic_probability_fn",
    "safe_cumprod",
    "sequence_loss",
    "tile_batch",
]
