"""Pictures for the digits example: the loss curve, and the digits that were misread."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")  # no screen needed

import numpy as np
import tensorflow as tf
from matplotlib import pyplot as plt
from matplotlib import ticker

ROWS, COLUMNS = 3, 8


class Reading(NamedTuple):
    """What the model made of one test digit.

    Attributes:
      image: float array of shape [side, side], 0 (paper) to 1 (ink).
      label: the true class.
      predicted: the predicted class.
      probability: of the predicted class, 0 to 1.
    """

    image: np.ndarray
    label: int
    predicted: int
    probability: float

    @property
    def wrong(self) -> bool:
        return self.predicted != self.label


def read_scalar(directory: str, tag: str) -> list[tuple[int, float]]:
    """Reads one scalar from all event files of a directory.

    Args:
      directory: where the event files are: `model_dir`, or `estimator.eval_dir()`.
      tag: the scalar's name, such as `loss`.

    Returns:
      (global step, value) pairs in the order of steps; the last written value of each step.
    """
    values: dict[int, float] = {}
    for path in sorted(glob.glob(os.path.join(directory, "events.out.tfevents.*"))):
        for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
            event = tf.compat.v1.Event.FromString(record)
            for value in event.summary.value:
                if value.tag == tag:
                    values[event.step] = value.simple_value
    return sorted(values.items())


def plot_loss(
    path: str,
    train_loss: Sequence[tuple[int, float]],
    test_loss: Sequence[tuple[int, float]],
    title: str,
) -> None:
    """Saves the loss curve as a PNG.

    Args:
      path: of the PNG.
      train_loss: (global step, loss of one batch) pairs.
      test_loss: (global step, mean loss over the test set) pairs, one for each evaluation.
      title: what to write above the curve.
    """
    figure, axes = plt.subplots(figsize=(7, 4.2), dpi=120, layout="constrained")
    axes.plot(
        *zip(*train_loss, strict=True),
        lw=1.5,
        label="training (one batch, with dropout and shifts)",
    )
    axes.plot(*zip(*test_loss, strict=True), "D", color="C3", label="test (whole set)")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlim(left=0)
    axes.set_xlabel("global step (batches)")
    axes.set_ylabel("cross-entropy (nats per image)")
    axes.set_title(title)
    axes.grid(alpha=0.25)
    axes.legend()
    figure.savefig(path)
    plt.close(figure)


def plot_misread(path: str, readings: Sequence[Reading]) -> None:
    """Saves a grid of misread digits as a PNG, the most confident mistakes first.

    Where there are few mistakes, the digits that were read rightly, but with the least confidence,
    fill the grid.

    Args:
      path: of the PNG.
      readings: of all test digits.
    """
    figure, grid = plt.subplots(ROWS, COLUMNS, figsize=(10, 6), dpi=120, layout="constrained")
    for axes, reading in zip(grid.flat, hardest(readings, grid.size), strict=False):
        axes.imshow(reading.image, cmap="gray_r", vmin=0, vmax=1)
        axes.set_title(
            f"is {reading.label}, read {reading.predicted}\n({reading.probability:.0%} sure)",
            color="C3" if reading.wrong else "0.35",
            fontsize=10,
        )
    for axes in grid.flat:
        axes.axis("off")
    mistakes = sum(r.wrong for r in readings)
    line = f"{mistakes} of {len(readings)} test digits misread"
    rest = "red: the most confident mistakes; grey: the least confident right readings"
    figure.suptitle(f"{line}\n{rest}")
    figure.savefig(path)
    plt.close(figure)


def hardest(readings: Sequence[Reading], count: int) -> list[Reading]:
    """Mistakes by falling confidence, then right readings by rising confidence."""
    wrong = sorted((r for r in readings if r.wrong), key=lambda r: -r.probability)
    right = sorted((r for r in readings if not r.wrong), key=lambda r: r.probability)
    return [*wrong, *right][:count]


def readings_of(
    images: np.ndarray, labels: np.ndarray, predictions: Sequence[dict[str, Any]]
) -> list[Reading]:
    """Puts images, labels and predictions together.

    Args:
      images: float array of shape [examples, side, side, 1], 0 to 1.
      labels: int array of shape [examples].
      predictions: what `predict` gave, in the same order: `class` and `probabilities`.

    Raises:
      ValueError: the numbers of examples and predictions differ.
    """
    return [
        Reading(image[..., 0], int(label), int(p["class"]), float(p["probabilities"].max()))
        for image, label, p in zip(images, labels, predictions, strict=True)
    ]
