"""Proofs of keys of predictions, problems and metrics."""

from support.proofs import below, proves

LEARN = "tf.contrib.learn"
INSIDE = f"{LEARN}.python.learn"


@proves(f"{LEARN}.PredictionKey")
def names_predictions(keys):
    assert keys.CLASSES == "classes"


@proves(f"{LEARN}.ProblemType")
def names_problems(problems):
    assert problems.LINEAR_REGRESSION == 2


@proves(*below(f"{INSIDE}.estimators", "constants prediction_key metric_key"))
def has_names(module):
    assert module.MetricKey.ACCURACY == "accuracy"
    assert module.ProblemType.UNSPECIFIED == 0
