"""Serves sentence vectors of BERT and asks for some: `bert_serving_script.py FOLDER PORT PORT`."""

import json
import multiprocessing
import os
import pathlib
import signal
import sys

import tensorflow as tf
from bert_serving.client import BertClient
from bert_serving.server import BertServer
from bert_serving.server.bert import modeling
from bert_serving.server.helper import get_args_parser

FOLDER, PORT, PORT_OUT = pathlib.Path(sys.argv[1]), *sys.argv[2:]
SENTENCES = ["the first is short", "the second one is a little longer than the first was"]


def write_checkpoint():
    """A model of random weights, which depend on the config alone."""
    config = modeling.BertConfig.from_json_file(str(FOLDER / "bert_config.json"))
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        modeling.BertModel(config, is_training=False, input_ids=tf.zeros([1, 8], tf.int32))
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(FOLDER / "bert_model.ckpt"))


def stop(signum, frame):
    """Ends the server's processes too, which would wait for ever where one of them has failed."""
    os.killpg(0, signal.SIGKILL)


def serve(strategy):
    given = ["-model_dir", str(FOLDER), "-port", PORT, "-port_out", PORT_OUT, "-cpu"]
    given += ["-graph_tmp_dir", str(FOLDER), "-max_seq_len", "16", "-pooling_strategy", strategy]
    with BertServer(get_args_parser().parse_args(given)):
        with BertClient(port=int(PORT), port_out=int(PORT_OUT), timeout=60_000) as client:
            return [*client.encode(SENTENCES).tolist(), *client.encode(SENTENCES[1:]).tolist()]


if __name__ == "__main__":
    os.setsid()
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(300)
    writer = multiprocessing.Process(target=write_checkpoint)  # the server forks this process
    writer.start()
    writer.join()
    assert writer.exitcode == 0
    print("FOUND", json.dumps({name: serve(name) for name in ("REDUCE_MEAN", "CLS_TOKEN")}))
