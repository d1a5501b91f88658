"""The scenarios of every run of the tests; the full run has all."""

OFTEN = {
    "canned": (
        *("linear_classifier", "dnn_classifier_of_2", "wide_and_deep_classifier", "baselines"),
        *("a_head_of_2_below_a_model_of_1", "exports", "warm_starts_of_2", "kmeans", "parsing"),
        *("refusals", "signatures"),
    ),
    "heads": (
        *("binary", "multi_class_of_v1", "regression_of_two_with_weights", "several_heads"),
        *("bad_arguments", "bad_tensors", "eagerly", "no_step"),
    ),
}
"""Of the original's own code."""


def in_full_run(name: str) -> bool:
    """Whether only the full run has a scenario."""
    if name.endswith("-jax4"):  # two devices do the same
        return True
    group, _, scenario = name.partition(".")
    return scenario not in OFTEN.get(group, (scenario,))
