"""Proofs of the clustering model."""

import numpy as np
import tensorflow as tf2

from support.proofs import proves
from support.proofs.canned.models import config, deep

POINTS = np.array([[0.0, 0.0], [10.0, 10.0], [0.0, 1.0], [10.0, 11.0]], np.float32)


@proves("tf.estimator.experimental.KMeans", deep("kmeans"))
def finds_clusters(found, tmp_path):
    model = getattr(found, "KMeansClustering", found)(
        2, initial_clusters=POINTS[:2], use_mini_batch=False, config=config(tmp_path)
    )
    model.train(lambda: tf2.data.Dataset.from_tensors(POINTS))
    np.testing.assert_allclose(model.cluster_centers(), [[0.0, 0.5], [10.0, 10.5]], atol=1e-5)
