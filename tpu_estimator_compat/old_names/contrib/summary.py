"""`tf.contrib.summary`: writers and summaries as operations of the graph.

They write in `host_call` functions too. TensorFlow keeps them, without a public name.
"""

from tensorflow.python.ops.summary_ops_v2 import SummaryWriter as SummaryWriter
from tensorflow.python.ops.summary_ops_v2 import (
    all_v2_summary_ops,
    always_record_summaries,
    audio,
    create_file_writer,
    create_summary_file_writer,
    eval_dir,
    generic,
    graph_v1,
    histogram,
    image,
    import_event,
    initialize,
    legacy_raw_flush,
    never_record_summaries,
    record_summaries_every_n_global_steps,
    scalar,
    should_record_summaries,
    summary_writer_initializer_op,
)

all_summary_ops = all_v2_summary_ops
flush = legacy_raw_flush
graph = graph_v1

__all__ = [
    "SummaryWriter",
    "all_summary_ops",
    "always_record_summaries",
    "audio",
    "create_file_writer",
    "create_summary_file_writer",
    "eval_dir",
    "flush",
    "generic",
    "graph",
    "histogram",
    "image",
    "import_event",
    "initialize",
    "never_record_summaries",
    "record_summaries_every_n_global_steps",
    "scalar",
    "should_record_summaries",
    "summary_writer_initializer_op",
]
