"""`tf.contrib.gan`: the package tensorflow-gan, loaded with the `tf` of TensorFlow 1 on first use.

tensorflow-gan continues `tf.contrib.gan` with the same names and arguments. It is optional: if it
is missing, the first access to a name raises an error that says so.
"""

import sys
from typing import Any

from tpu_estimator_compat.engine.packages import package_copy
from tpu_estimator_compat.old_names.legacy.imports import of_copies

_PACKAGE = "tensorflow_gan"

# The package's names, for tools that list them without the package.
_NAMES = """
    ACGANModel CycleGANLoss CycleGANModel GANLoss GANModel GANTrainOps GANTrainSteps InfoGANModel
    RunTrainOpsHook StarGANModel acgan_model cyclegan_loss cyclegan_model estimator eval features
    gan_loss gan_model gan_train gan_train_ops get_joint_train_hooks get_sequential_train_hooks
    get_sequential_train_steps infogan_model losses stargan_loss stargan_model tpu
"""
__all__ = _NAMES.split()


def __getattr__(name: str) -> Any:
    module = sys.modules[__name__]
    if not name.startswith("__") and not hasattr(module, "__path__"):
        _load()
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=module)


def _load() -> None:
    module = sys.modules[__name__]
    try:
        package_copy.load_into(module, _PACKAGE, of_copies())
    except ModuleNotFoundError as error:
        vars(module).pop("__path__", None)  # so that the next access raises the same error
        raise ImportError(
            "tf.contrib.gan is in the package tensorflow-gan today, which is not installed, or"
            f" lacks what it needs: {error}. Install tensorflow-gan, tensorflow-probability and"
            " tensorflow-hub. tensorflow-hub needs setuptools below 81, for `pkg_resources`.",
            name=error.name,
        ) from error
