"""`tf.contrib.learn.ExportStrategy`: the export function of an `Experiment`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow.compat.v1 as tf

from tpu_estimator_compat.estimator.exporters import delete_old


class ExportStrategy(NamedTuple):
    """A function that exports an estimator, and the name of its folder below `model_dir/export`.

    `export_fn(estimator, export_path)` may also take `strip_default_attrs`, `checkpoint_path`, and,
    with `checkpoint_path`, `eval_result`. It returns the path of the export.
    """

    name: str
    export_fn: Callable[..., Any]
    strip_default_attrs: bool | None = None

    def export(
        self, estimator: Any, export_path: Any, checkpoint_path: Any = None, eval_result: Any = None
    ) -> Any:
        """Calls `export_fn` with the arguments that it takes; returns its result."""
        takes = inspect.signature(self.export_fn).parameters
        if "eval_result" in takes and "checkpoint_path" not in takes:
            raise ValueError("An export_fn accepting eval_result must also accept checkpoint_path.")
        offered = {
            "checkpoint_path": checkpoint_path,
            "eval_result": eval_result,
            "strip_default_attrs": self.strip_default_attrs,
        }
        given = {name: value for name, value in offered.items() if name in takes}
        return self.export_fn(estimator, export_path, **given)


def make_export_strategy(
    serving_input_fn: Callable[[], Any],
    default_output_alternative_key: str | None = None,
    assets_extra: dict[str, str] | None = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """A strategy that writes SavedModels, with arguments of `export_savedmodel`.

    It keeps the `exports_to_keep` newest exports; None or 0 keeps all.
    `default_output_alternative_key` must be None, or exporting raises ValueError.
    """

    def export_fn(
        estimator: Any,
        export_dir_base: str,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool | None = False,
    ) -> Any:
        default = default_output_alternative_key
        if default is not None:
            raise ValueError(
                "default_output_alternative_key is not supported in core Estimator. Given: "
                f"{default}"
            )
        path = estimator.export_savedmodel(
            export_dir_base,
            serving_input_fn,
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
            strip_default_attrs=bool(strip_default_attrs),
        )
        delete_old(tf.compat.as_str(export_dir_base), exports_to_keep or None)
        return path

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


__all__ = ["ExportStrategy", "make_export_strategy"]
