"""Answers requests from SavedModels, by one of TensorFlow's loaders or over HTTP.

    serving_probe.py load --job JOB.json     JOB: list of {path, loader, requests, out}
    serving_probe.py http --models DIR       serves DIR/<name>/<version>; prints its port

Needs TensorFlow only, of either version. `loader` is "v2" for `tf.saved_model.load`, "v1" for
`tf.compat.v1.saved_model.loader`, "keras" for `keras.layers.TFSMLayer`. Requests are .npz files
with keys `<signature>//<input>`; answers have `<signature>//<output>`.

Over HTTP it talks as TensorFlow Serving does: POST /v1/models/<name>:predict with
{"signature_name": ..., "inputs": {...}}, from the newest version.
"""

import argparse
import base64
import http.server
import json
import os
import re
from typing import Any

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


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers `:predict` requests; `models` is set by `serve`."""

    models: str

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = re.fullmatch(r"/v1/models/(\w+):predict", self.path).group(1)
        versions = os.path.join(self.models, name)
        newest = max(int(v) for v in os.listdir(versions) if v.isdigit())
        answer = _predict(os.path.join(versions, str(newest)), body)
        payload = json.dumps({"outputs": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *unused: Any) -> None:
        pass


def _predict(path: str, body: dict[str, Any]) -> dict[str, Any]:
    signature = body.get("signature_name", "serving_default")
    inputs = {key: _decoded(value) for key, value in body["inputs"].items()}
    answers = answer_v1(path, {signature: inputs})[signature]
    return {key: _encoded(value) for key, value in answers.items()}


def _decoded(value: Any) -> np.ndarray:
    if value and isinstance(value[0], dict):  # binary values, as TensorFlow Serving has them
        return np.array([base64.b64decode(item["b64"]) for item in value], object)
    return np.array(value)


def _encoded(value: np.ndarray) -> Any:
    return (
        np.vectorize(lambda item: item.decode())(value).tolist()
        if value.dtype == object
        else (value.tolist())
    )


def serve(models: str) -> None:
    Handler.models = models
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("load", "http"))
    parser.add_argument("--job")
    parser.add_argument("--models")
    args = parser.parse_args()
    if args.what == "load":
        run_job(args.job)
    else:
        serve(args.models)
