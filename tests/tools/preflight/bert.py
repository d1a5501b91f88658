"""The preflight of BERT's pretraining, as its authors published it, with one of its layers."""

import json
import pathlib
import subprocess
import sys

from support.client_packages import environment

BASE = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}
# Layers are alike, and take minutes to compile.
OF_ONE_LAYER = {**BASE, "num_hidden_layers": 1}
OF_ONE_SMALL_LAYER = {
    **BASE,
    "hidden_size": 128,
    "intermediate_size": 512,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
}
PARAMETERS_OF_ONE_SMALL_LAYER = 4_433_468 - 198_272
"""Those of BERT-tiny without its second layer."""


def report(
    clients: pathlib.Path,
    folder: pathlib.Path,
    topology: str,
    replicas: int,
    use_tpu: bool,
    sizes: dict,
) -> dict:
    (folder / "config.json").write_text(json.dumps(sizes))
    (folder / "examples.tfrecord").touch()  # no data is read
    command = ["-m", "tpu_estimator_compat", "preflight", "--json", "--topology", topology]
    flags = {
        "input_file": "examples.tfrecord",
        "do_train": True,
        "bert_config_file": "config.json",
        "train_batch_size": 32 * replicas,
        "num_tpu_cores": replicas,
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "output_dir": "out",
        "use_tpu": use_tpu,
    }
    given = [f"--{name}={value}" for name, value in flags.items()]
    done = subprocess.run(
        [sys.executable, *command, "-m", "bert.run_pretraining", *given],
        cwd=folder,
        env={**environment(clients), "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    [found] = json.loads(done.stdout)["reports"]
    return found
