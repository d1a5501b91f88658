"""A worker that joins the others, and stays until a file says that it may go."""

import json
import pathlib
import sys
import time

import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu


def main(runtime: str, result: str, arguments: str) -> None:
    given = json.loads(arguments)
    tf.logging.set_verbosity(tf.logging.INFO)
    config = tpu.RunConfig(
        model_dir=given["folder"], runtime=runtime, session_creation_timeout_secs=given["seconds"]
    )
    try:
        tpu.TPUEstimator(lambda features, params: None, config=config, train_batch_size=8)
    except (RuntimeError, ValueError) as error:
        pathlib.Path(result).write_text(json.dumps({"error": str(error)}))
        return
    pathlib.Path(result).write_text(json.dumps({"error": ""}))
    while not pathlib.Path(given["folder"], "go").exists():
        time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
