"""Trains programs through us, and writes what their Keras models must give.

`prepare.py FOLDER mlp rnn:cell=gru` makes FOLDER/mlp, with `model`, a model_dir after 20 steps;
`export`, the path of its SavedModel; `inputs.npz` and `outputs.npz`, two batches and their
predictions; `train.npz`, further batches, `losses.npy`, their losses from the checkpoint on with
dropout off, and `after.npz`, the predictions then.
"""

import glob
import pathlib
import shutil
import sys

import numpy as np
import tensorflow as tf

from tpu_estimator_compat import estimator, install

HERE = pathlib.Path(__file__).parent
TRAINED, FURTHER, COUNTS = 20, 50, (None, 3)


def flat(prefix, structure):
    if isinstance(structure, dict):
        return {f"{prefix}/{key}": np.asarray(value) for key, value in structure.items()}
    return {prefix: np.asarray(structure)}


def receiver(input_fn):
    spec = input_fn().element_spec[0]

    def receive():
        given = {
            key: tf.compat.v1.placeholder(each.dtype, [None, *each.shape[1:]], name=key)
            for key, each in spec.items()
        }
        return estimator.export.ServingInputReceiver(given, given)

    return receive


def predicted(trained, features):
    def input_fn():
        size = len(next(iter(features.values())))
        return tf.data.Dataset.from_tensor_slices(features).batch(size)

    found = list(trained.predict(input_fn))
    arrays = {key: np.stack([each[key] for each in found]) for key in found[0]}
    return {key: array for key, array in arrays.items() if array.dtype.kind != "O"}  # no strings


def losses(model_dir):
    """Of all steps of a training with summaries in each, by step."""
    found = {}
    for path in sorted(glob.glob(f"{model_dir}/events*")):
        for event in tf.compat.v1.train.summary_iterator(path):
            for value in event.summary.value:
                if value.tag.startswith("loss"):  # another number where a scope has its name
                    found[event.step] = value.simple_value
    return found


def prepare(folder, name):
    from run import make, parsed

    program, *changed = name.split(":")
    changed = parsed(changed)
    trained, input_fn = make(program, str(folder / "model"), changed)
    trained.train(input_fn, steps=TRAINED)
    exported = trained.export_saved_model(str(folder / "exports"), receiver(input_fn))
    (folder / "export").write_text(exported.decode())
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        get_next = tf.compat.v1.data.make_one_shot_iterator(input_fn()).get_next()
        batches = [session.run(get_next) for _ in range(FURTHER)]
    inputs, outputs = {}, {}
    for i, count in enumerate(COUNTS):
        features = {key: value[:count] for key, value in batches[i][0].items()}
        inputs.update({f"{i}/{key}": value for key, value in features.items()})
        found = predicted(trained, features)
        outputs.update({f"{i}/{key}": value for key, value in found.items()})
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "outputs.npz", **outputs)
    train = {}
    for i, (x, y) in enumerate(batches):
        train.update(
            {f"{i}/{key}": value for key, value in {**flat("x", x), **flat("y", y)}.items()}
        )
    np.savez(folder / "train.npz", **train)
    shutil.copytree(folder / "model", folder / "further")
    for path in (folder / "further").glob("events*"):
        path.unlink()
    off = {**changed, "dropout": 0.0} if "dropout" in trained.params else changed
    trained, _ = make(program, str(folder / "further"), off, every=1)
    trained.train(input_fn, steps=FURTHER)
    found = losses(folder / "further")
    np.save(folder / "losses.npy", [found[TRAINED + 1 + i] for i in range(FURTHER)])
    features = {key.removeprefix("0/"): v for key, v in inputs.items() if key.startswith("0/")}
    np.savez(folder / "after.npz", **predicted(trained, features))


if __name__ == "__main__":
    import traceback

    sys.path.insert(0, str(HERE))
    install(["programs", "run", "bert", "albert"])
    tf.compat.v1.logging.set_verbosity("ERROR")
    for word in sys.argv[2:]:
        made = pathlib.Path(sys.argv[1], word.replace(":", "-"))
        made.mkdir(parents=True)
        try:
            prepare(made, word)
        except Exception:
            (made / "error").write_text(traceback.format_exc())
            traceback.print_exc()
