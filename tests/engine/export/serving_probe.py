"""Answers requests from SavedModels, by one of TensorFlow's loaders.

    serving_probe.py JOB.json     list of {path, loader, requests, out}

Needs TensorFlow only, of either version. `loader` is "v2" for `tf.saved_model.load`, "v1" for
`tf.compat.v1.saved_model.loader`, "keras" for `keras.layers.TFSMLayer`. Requests are .npz files
with keys `<signature>//<input>`; answers have `<signature>//<output>`.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf

Requests = dict[str, dict[str, np.ndarray]]


def answer_v2(path: str, requests: Requests) -> Requests:
    loaded = tf.saved_model.load(path, tags=["serve"])
    answers = {}
    for signature, inputs in requests.items():
        fed = {key: tf.constant(value) for key, value in inputs.items()}
        found = loaded.signatures[signature](**fed)
        answers[signature] = {key: value.numpy() for key, value in found.items()}
    return answers


def answer_v1(path: str, requests: Requests) -> Requests:
    """By `tf.compat.v1.saved_model.loader`, in a session, as TensorFlow Serving does."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta_graph = tf.compat.v1.saved_model.loader.load(session, ["serve"], path)
        answers = {}
        for signature, inputs in requests.items():
            definition = meta_graph.signature_def[signature]
            fed = {definition.inputs[key].name: value for key, value in inputs.items()}
            fetched = {key: info.name for key, info in definition.outputs.items()}
            answers[signature] = session.run(fetched, fed)
    return answers


def answer_keras(path: str, requests: Requests) -> Requests:
    """By `keras.layers.TFSMLayer`, one layer per signature."""
    import keras

    answers = {}
    for signature, inputs in requests.items():
        layer = keras.layers.TFSMLayer(path, call_endpoint=signature)
        fed = {key: tf.constant(value) for key, value in inputs.items()}
        first, *others = sorted(fed)  # the layer hands its first argument over by position
        found = layer(fed[first], **{key: fed[key] for key in others})
        answers[signature] = {key: np.asarray(value) for key, value in found.items()}
    return answers


LOADERS = {"v2": answer_v2, "v1": answer_v1, "keras": answer_keras}


def save(path: str, values: Requests) -> None:
    """Writes requests or answers; keys are numbered, as archives dislike slashes in theirs."""
    flat = {f"{s}//{k}": np.asarray(v) for s, group in values.items() for k, v in group.items()}
    arrays = {f"a{i}": value for i, value in enumerate(flat.values())}
    np.savez(path, names=np.array(list(flat), dtype=object), **arrays)


def load(path: str) -> Requests:
    values: Requests = {}
    with np.load(path, allow_pickle=True) as archive:
        for number, name in enumerate(archive["names"]):
            signature, _, key = str(name).rpartition("//")
            values.setdefault(signature, {})[key] = archive[f"a{number}"]
    return values


def run_job(path: str) -> None:
    with open(path) as file:
        job = json.load(file)
    for task in job:
        save(task["out"], LOADERS[task["loader"]](task["path"], load(task["requests"])))


if __name__ == "__main__":
    run_job(sys.argv[1])
