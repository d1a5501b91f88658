"""Learns to rank documents by TF-Ranking's pipeline: `ranking_script.py MODEL_DIR LOSS`."""

import json
import os
import sys

import numpy as np
import tensorflow as tf
import tensorflow_ranking as tfr

MODEL_DIR = sys.argv[1]
QUERIES, DOCUMENTS, LIST_SIZE = 32, 6, 5
CONTEXT = {"length": tf.feature_column.numeric_column("length")}
_WORDS = tf.feature_column.categorical_column_with_identity("word", 10)
EXAMPLE = {
    "score": tf.feature_column.numeric_column("score", shape=(2,)),
    "word": tf.feature_column.embedding_column(
        _WORDS, 4, initializer=tf.compat.v1.initializers.random_normal(stddev=0.1, seed=1)
    ),
}


def example(**values):
    features = {}
    for name, value in values.items():
        if isinstance(value, int):
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
        else:
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def field(number, content):
    """A field of a protocol message, as bytes: ExampleListWithContext has two, of bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def write(path):
    rng = np.random.RandomState(0)
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(QUERIES):
            documents = []
            for _ in range(DOCUMENTS):
                score, word = rng.randn(2), int(rng.randint(10))
                relevance = int(score[0] > 0) + int(word > 7)
                documents.append(example(score=score, word=word, relevance=relevance))
            context = example(length=[rng.rand()])
            message = b"".join(field(1, document) for document in documents) + field(2, context)
            writer.write(message)


def scoring_function(context_features, example_features, mode):
    del mode
    inputs = [*context_features.values(), *example_features.values()]
    hidden = tf.concat([tf.compat.v1.layers.flatten(value) for value in inputs], 1)
    return tf.compat.v1.layers.dense(
        hidden, 1, kernel_initializer=tf.compat.v1.initializers.random_normal(seed=2)
    )


class Pipeline(tfr.ext.pipeline.RankingPipeline):
    """In the order of the file: the package's own draws the order of lists without a seed."""

    def _make_dataset(self, batch_size, input_pattern, randomize_input=True, num_epochs=None):
        del randomize_input
        parse = super()._make_dataset
        return parse(batch_size, input_pattern, False, num_epochs)


write(f"{MODEL_DIR}.tfrecords")
hparams = {
    "train_input_pattern": f"{MODEL_DIR}.tfrecords",
    "eval_input_pattern": f"{MODEL_DIR}.tfrecords",
    "train_batch_size": 8,
    "eval_batch_size": 8,
    "checkpoint_secs": 120,
    "num_checkpoints": 2,
    "num_train_steps": 30,
    "num_eval_steps": 4,
    "loss": sys.argv[2],
    "list_size": LIST_SIZE,
    "learning_rate": 0.1,
    "convert_labels_to_binary": False,
    "model_dir": MODEL_DIR,
}
builder = tfr.estimator.EstimatorBuilder(CONTEXT, EXAMPLE, scoring_function, hparams=hparams)
estimator = builder.make_estimator()
pipeline = Pipeline(CONTEXT, EXAMPLE, hparams, estimator)
pipeline.train_and_eval()
results = estimator.evaluate(pipeline._make_input_fn(f"{MODEL_DIR}.tfrecords", 8), steps=4)
[exported] = os.listdir(f"{MODEL_DIR}/export/latest_model")
serve = tf.saved_model.load(f"{MODEL_DIR}/export/latest_model/{exported}").signatures["predict"]
requests = tf.constant([example(length=[0.5], score=[s, 0.0], word=1) for s in (-1.0, 0.0, 1.0)])
[scores] = serve(requests).values()
found = {name: float(value) for name, value in results.items()}
found |= {"scores": scores.numpy().ravel().tolist(), "names": estimator.get_variable_names()}
print("FOUND", json.dumps(found))
