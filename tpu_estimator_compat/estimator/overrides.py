"""Refuses subclasses of an estimator that override its members."""

from __future__ import annotations

from typing import Any

_INTERNAL = frozenset(
    {
        "_actual_eval",
        "_actual_train_model_distributed",
        "_add_meta_graph_for_mode",
        "_call_input_fn",
        "_call_model_fn",
        "_call_model_fn_eval",
        "_call_model_fn_eval_distributed",
        "_convert_eval_steps_to_hooks",
        "_convert_train_steps_to_hooks",
        "_evaluate_build_graph",
        "_evaluate_run",
        "_extract_batch_length",
        "_extract_keys",
        "_get_features_and_labels_from_input_fn",
        "_get_features_from_input_fn",
        "_get_iterator_from_input_fn",
        "_maybe_warm_start",
        "_train_model",
        "_train_model_default",
        "_train_model_distributed",
        "_train_with_estimator_spec",
        "_train_with_estimator_spec_distributed",
        "_validate_features_in_predict_input",
    }
)
"""Methods that the original's Estimator has and this package's lacks."""

_NEVER_CALLED = frozenset(
    {
        "_augment_model_fn",
        "_call_model_fn_for_inference",
        "_create_and_assert_global_step",
        "_export_all_saved_models",
    }
)
"""Methods that the original lets subclasses override, and that this package never calls."""

_ALLOWED = frozenset({"latest_checkpoint", "model_fn"})


def check(base: type, estimator: Any) -> None:
    """Raises if the class of `estimator` overrides members of `base`.

    ValueError if the original refused them; NotImplementedError if only the original calls them.
    """
    cls = type(estimator)
    if cls.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return
    members = {name for name in dir(base) if not name.startswith("__")} - _ALLOWED - _NEVER_CALLED
    own = {name for name, value in vars(cls).items() if value is not vars(base).get(name)}
    overridden = sorted((members | _INTERNAL) & own)
    # The original lets a class of this name override everything.
    is_copy = cls.__name__ == "TPUEstimator"
    if overridden and not is_copy:
        raise ValueError(
            "Subclasses of Estimator cannot override members of Estimator. "
            f"{cls} does override {overridden}"
        )
    private = {name for name in overridden if name.startswith("_")}
    if unused := sorted(private | _NEVER_CALLED & own):
        raise NotImplementedError(
            f"{cls} overrides {unused}, which the original's estimators called, and this "
            "package does not call. Take TPUEstimator from tf.estimator.tpu in place of a copy of "
            "its source, and make the change in model_fn, input_fn or a hook."
        )
