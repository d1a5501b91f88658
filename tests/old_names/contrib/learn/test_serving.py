"""What estimators of `tf.contrib.learn` export."""

import pytest
import tensorflow.compat.v1 as tf
from support.proofs.contrib.learn import serving as proofs
from support.proofs.proving import each_proof_of

from tpu_estimator_compat.old_names.contrib.learn import serving
from tpu_estimator_compat.old_names.contrib.learn.export_strategy import make_export_strategy

from .line_model import fitted

test_served_names = each_proof_of(proofs)


def test_exports_have_the_signatures_of_the_original(tmp_path):
    estimator = fitted(tmp_path)
    spec = {"x": tf.FixedLenFeature([], tf.float32)}
    strategy = make_export_strategy(serving.build_parsing_serving_input_fn(spec))
    path = strategy.export(estimator, str(tmp_path / "export"))
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.loader.load(session, ["serve"], path.decode())
        signatures = loaded.signature_def
        assert sorted(signatures) == [
            "default_input_alternative:default_output_alternative",
            "serving_default",
        ]
        example = tf.train.Example()
        example.features.feature["x"].float_list.value.append(2.0)
        output = signatures["serving_default"].outputs["output"].name
        fed = {"input_example_tensor:0": [example.SerializeToString()]}
        assert session.run(output, fed)[0] == pytest.approx(-0.9700126, rel=1e-5)
