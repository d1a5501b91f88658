"""The plot of the clicks example: AUC by step, and ROC curves, against the best possible."""

from __future__ import annotations

import os
from collections.abc import Mapping

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_curve


def save(
    path: str,
    aucs: Mapping[int, float],
    best: float,
    labels: np.ndarray,
    scores: Mapping[str, np.ndarray],
) -> None:
    """Writes the plot as a PNG.

    Args:
      path: of the file; its directory is made.
      aucs: by global step.
      best: the AUC of the true probabilities.
      labels: 1 for a click, 0 for none; float32 of shape [n].
      scores: by name, of shape [n]: the greater, the likelier a click.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.plot(list(aucs), list(aucs.values()), marker="o", label="model")
    left.axhline(best, color="grey", linestyle="--", label="best possible")
    left.set(xlabel="step", ylabel="AUC of the test")
    left.legend()
    for name, of_name in scores.items():
        wrong, right_ones, _ = roc_curve(labels, of_name)
        right.plot(wrong, right_ones, label=name, linestyle="--" if name == "best" else "-")
    right.set(xlabel="false positives", ylabel="true positives", aspect="equal")
    right.legend()
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
