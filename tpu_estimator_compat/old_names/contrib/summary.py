"""`tf.contrib.summary`: writers and summaries as graph operations, also in `host_call`."""

from tensorflow.python.ops import summary_ops_v2

from tpu_estimator_compat.old_names.contrib import taken_over

__all__ = taken_over(
    globals(),
    {
        summary_ops_v2: """
            SummaryWriter all_summary_ops=all_v2_summary_ops always_record_summaries audio
            create_file_writer create_summary_file_writer eval_dir flush=legacy_raw_flush generic
            graph=graph_v1 histogram image import_event initialize never_record_summaries
            record_summaries_every_n_global_steps scalar should_record_summaries
            summary_writer_initializer_op
        """
    },
)
