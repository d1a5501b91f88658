"""The canned wide-and-deep classifier, with feature columns."""

import numpy as np
import tensorflow as tf

PARAMS = {"hidden": [16, 8]}


def make_estimator(model_dir, params, config):
    age = tf.feature_column.numeric_column("age")
    hours = tf.feature_column.numeric_column(
        "hours", normalizer_fn=lambda x: (x - 40.0) / 12.0, shape=(2,)
    )
    age_buckets = tf.feature_column.bucketized_column(age, [18, 25, 30, 40, 50, 65])
    job = tf.feature_column.categorical_column_with_identity("job", 12)
    grade = tf.feature_column.categorical_column_with_vocabulary_list("grade", [3, 5, 7, 9])
    wide = [age_buckets, job]
    deep = [
        age,
        hours,
        tf.feature_column.embedding_column(job, 4),
        tf.feature_column.indicator_column(grade),
    ]
    return tf.compat.v1.estimator.DNNLinearCombinedClassifier(
        model_dir=model_dir,
        linear_feature_columns=wide,
        dnn_feature_columns=deep,
        dnn_hidden_units=params["hidden"],
        config=config,
    )


def input_fn():
    rng = np.random.RandomState(0)
    features = {
        "age": rng.uniform(16, 80, (128, 1)).astype(np.float32),
        "hours": rng.uniform(10, 70, (128, 2)).astype(np.float32),
        "job": rng.randint(0, 12, (128, 1)).astype(np.int64),
        "grade": rng.choice([3, 5, 7, 9], (128, 1)).astype(np.int64),
    }
    labels = (features["age"][:, 0] > 45).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(16)
