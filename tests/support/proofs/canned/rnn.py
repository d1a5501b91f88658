import numpy as np
import tensorflow as tf2

from support.proofs import proves
from support.proofs.canned.models import config
from tpu_estimator_compat.v1 import estimator as heads

COLUMN = tf2.feature_column.sequence_numeric_column("x")
X = np.array([[1.0, 2.0], [3.0, 1.0]], np.float32)


def input_fn():
    features = {"x": tf2.sparse.from_dense(X)}
    return tf2.data.Dataset.from_tensors((features, np.array([[1], [0]]))).repeat()


def learns(model):
    before = model.evaluate(input_fn, steps=1)["loss"]
    model.train(input_fn, steps=5)
    assert model.evaluate(input_fn, steps=1)["loss"] < before


@proves("tf.estimator.experimental.RNNClassifier")
def trains_a_recurrent_classifier(model, tmp_path):
    learns(model([COLUMN], units=[3], cell_type="lstm", config=config(tmp_path)))


@proves("tf.estimator.experimental.RNNEstimator")
def trains_a_recurrent_model_below_a_head(model, tmp_path):
    learns(model(heads.BinaryClassHead(), [COLUMN], units=[3], config=config(tmp_path)))
