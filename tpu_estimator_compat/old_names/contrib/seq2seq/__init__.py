"""`tf.contrib.seq2seq`: decoders, their helpers, attention, and a sequence loss.

Scripts extend names with an underscore, as `tf.contrib.seq2seq.python.ops` had them.
"""

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
            LuongMonotonicAttention hardmax _BaseAttentionMechanism
            _BaseMonotonicAttentionMechanism _bahdanau_score _luong_score _maybe_mask_score
            _prepare_memory _zero_state_tensors
        """,
        attention_wrapper: "AttentionWrapper AttentionWrapperState _compute_attention",
        basic_decoder: "BasicDecoder BasicDecoderOutput",
        beam_search: """
            BeamSearchDecoder BeamSearchDecoderOutput BeamSearchDecoderState
            FinalBeamSearchDecoderOutput _beam_search_step _get_scores _length_penalty _mask_probs
        """,
        beams: "gather_tree tile_batch _tile_batch",
        decoding: "Decoder dynamic_decode _create_zero_outputs _transpose_batch_time",
        helpers: """
            CustomHelper GreedyEmbeddingHelper Helper InferenceHelper SampleEmbeddingHelper
            TrainingHelper _unstack_ta
        """,
        losses: "sequence_loss",
        monotonic: """
            monotonic_attention monotonic_probability_fn safe_cumprod
            _monotonic_probability_fn=monotonic_probability_fn
        """,
        scheduled_helpers: "ScheduledEmbeddingTrainingHelper ScheduledOutputTrainingHelper",
    },
)
