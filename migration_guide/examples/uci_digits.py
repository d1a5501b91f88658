"""The UCI handwritten digits that scikit-learn ships, as a `tensorflow_datasets` builder.

1797 greyscale images of 8 x 8 pixels, made without a network. Importing this module registers the
builder: `tfds.builder("uci_digits")`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow_datasets as tfds
from sklearn import datasets, model_selection

SIDE = 8
CLASSES = 10
TEST_EXAMPLES = 360
INK_LEVELS = 16
"""The original counts inked pixels in blocks of 4 x 4, hence 0 (paper) to 16."""

SPLIT_SEED = 0


class UciDigits(tfds.core.GeneratorBasedBuilder):
    """Optical recognition of handwritten digits, with a fixed, stratified split.

    scikit-learn's copy has no split of its own: 1437 examples become `train`, 360 (a fifth) `test`,
    each with the same share of every digit.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description="Handwritten digits, 8 x 8 pixels, grey from 0 (paper) to 255 (ink).",
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(shape=(SIDE, SIDE, 1)),
                    "label": tfds.features.ClassLabel(num_classes=CLASSES),
                }
            ),
            supervised_keys=("image", "label"),
            homepage="https://archive.ics.uci.edu/dataset/80",
        )

    def _split_generators(self, dl_manager: Any) -> dict[str, Iterator[tuple[int, dict]]]:
        del dl_manager  # nothing to download
        bunch = datasets.load_digits()
        train, test = model_selection.train_test_split(
            np.arange(len(bunch.target)),
            test_size=TEST_EXAMPLES,
            stratify=bunch.target,
            random_state=SPLIT_SEED,
        )
        return {
            "train": self._generate_examples(bunch, train),
            "test": self._generate_examples(bunch, test),
        }

    def _generate_examples(self, bunch: Any, rows: np.ndarray) -> Iterator[tuple[int, dict]]:
        for row in rows:
            ink = bunch.images[row] * (255.0 / INK_LEVELS)
            image = np.rint(ink).astype(np.uint8)[..., np.newaxis]
            yield int(row), {"image": image, "label": int(bunch.target[row])}
