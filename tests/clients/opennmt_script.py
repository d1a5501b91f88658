"""Reverses sentences by OpenNMT-tf's runner: `opennmt_script.py FOLDER`."""

import json
import os
import sys

import numpy as np
import opennmt
import tensorflow as tf

WORDS = ["a", "b", "c", "d", "e"]
folder = sys.argv[1]


def write(name, lines):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.writelines(f"{line}\n" for line in lines)
    return path


class Small(opennmt.models.SequenceToSequence):
    def __init__(self):
        super().__init__(
            opennmt.inputters.WordEmbedder("source_words_vocabulary", embedding_size=16),
            opennmt.inputters.WordEmbedder("target_words_vocabulary", embedding_size=16),
            opennmt.encoders.UnidirectionalRNNEncoder(1, 32, tf.nn.rnn_cell.LSTMCell, dropout=0),
            opennmt.decoders.AttentionalRNNDecoder(
                1,
                32,
                bridge=opennmt.layers.CopyBridge(),
                attention_mechanism_class=tf.contrib.seq2seq.LuongAttention,
                cell_class=tf.nn.rnn_cell.LSTMCell,
                dropout=0,
            ),
        )


rng = np.random.RandomState(0)
source = [" ".join(rng.choice(WORDS, rng.randint(2, 5))) for _ in range(256)]
target = [" ".join(reversed(line.split())) for line in source]
specials = [opennmt.constants.PADDING_TOKEN, opennmt.constants.START_OF_SENTENCE_TOKEN]
vocabulary = write("words", [*specials, opennmt.constants.END_OF_SENTENCE_TOKEN, *WORDS])
x, y = write("source", source), write("target", target)
some, wanted = write("some", source[:32]), target[:32]
config = {
    "model_dir": os.path.join(folder, "run"),
    "data": {
        "source_words_vocabulary": vocabulary,
        "target_words_vocabulary": vocabulary,
        "train_features_file": x,
        "train_labels_file": y,
        "eval_features_file": some,
        "eval_labels_file": write("wanted", wanted),
    },
    "params": {
        "optimizer": "AdamOptimizer",
        "learning_rate": 0.02,
        "beam_width": 2,
    },
    "train": {
        "batch_size": 32,
        "train_steps": 200,
        "save_checkpoints_steps": 100,
        "sample_buffer_size": 0,
        "bucket_width": None,
    },
    "eval": {"eval_delay": 0, "exporters": "last"},
}
runner = opennmt.Runner(Small(), config, seed=1)
runner.train_and_evaluate()
output = os.path.join(folder, "output")
runner.infer(some, predictions_file=output)
with open(output) as file:
    translated = file.read().splitlines()
exported = runner.export(export_dir_base=os.path.join(folder, "manual"))
serve = tf.contrib.predictor.from_saved_model(exported.decode())
words = source[0].split()
[beams] = serve({"tokens": [words], "length": [len(words)]})["tokens"]
found = {
    "right": sum(a == b for a, b in zip(translated, wanted, strict=True)),
    "served": " ".join(token.decode() for token in beams[0][: len(words)]),
    "first": translated[0],
}
print("FOUND", json.dumps(found))
