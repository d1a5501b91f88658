"""Proofs of `tf.contrib.learn.MetricSpec`."""

from support.proofs import proves
from tpu_estimator_compat.old_names.contrib import learn

LEARN = "tf.contrib.learn"
INSIDE = f"{LEARN}.python.learn"


@proves(f"{LEARN}.MetricSpec")
def names_tensors(spec):
    made = spec(lambda labels, predictions: labels - predictions, prediction_key="p")
    assert made.create_metric_ops({}, 3, {"p": 1, "q": 2}) == 2


@proves(f"{INSIDE}.metric_spec")
def is_the_module_of_specs(module):
    assert module.MetricSpec is learn.MetricSpec
