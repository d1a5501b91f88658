import tensorflow as tf

from tpu_estimator_compat.estimator import export

from . import describe_saved_model


def test_outputs_that_need_what_is_not_fed_are_left_out(trained, tmp_path):
    def receiver():
        x = tf.compat.v1.placeholder(tf.float32, [None, 4])
        return export.ServingInputReceiver({"x": x}, tf.compat.v1.placeholder(tf.float32))

    path = trained("plain").export_saved_model(str(tmp_path), receiver).decode()
    [graph] = describe_saved_model.graphs(path).values()
    assert not graph.signature_def  # As the original: it logs what was left out, and why.
