import pytest
import tensorflow as tf
from tensorflow.python.ops import summary_ops_v2

from tpu_estimator_compat.spec import TPUEstimatorSpec

v1 = tf.compat.v1

pytestmark = pytest.mark.usefixtures("graph")


def test_host_call_opens_and_flushes_its_summary_writer(loss, tmp_path):
    def write(values):
        writer = summary_ops_v2.create_file_writer(str(tmp_path), max_queue=1000)
        with writer.as_default(), summary_ops_v2.always_record_summaries():
            return summary_ops_v2.scalar(
                "score", tf.reduce_mean(values), step=tf.constant(1, "int64")
            )

    host_call = (write, [tf.constant([2.0, 4.0])])
    spec = TPUEstimatorSpec("train", loss=loss, train_op=tf.no_op(), host_call=host_call)
    (hook,) = spec.as_estimator_spec().training_hooks
    hook.begin()
    with v1.Session() as session:
        hook.after_create_session(session, None)
        session.run(hook.before_run(None).fetches)
        # Still in the queue: a step must not wait for the disk. Closing would flush it as well.
        assert written_summaries(tmp_path) == []
        hook.end(session)
        assert written_summaries(tmp_path) == [("score", 3.0)]


def written_summaries(directory):
    """Tag and value of the scalars in the directory's only event file."""
    (path,) = map(str, directory.iterdir())
    events = v1.train.summary_iterator(path)
    return [(value.tag, value.simple_value) for event in events for value in event.summary.value]
