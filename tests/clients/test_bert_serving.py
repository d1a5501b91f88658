"""`bert-serving-server` 1.10.0: its processes, run unchanged, answer its client.

A worker is an `Estimator.predict` without end, whose `input_fn` waits for requests.
"""

import pytest
from support import ports

from . import text
from .results import record
from .runs import COMMAND, HERE, assert_alike, found, python

pytestmark = pytest.mark.full


def test_serves_vectors_of_sentences(clients, tmp_path, original):
    script = str(HERE / "bert_serving_script.py")
    for side in ("here", "there"):
        folder = tmp_path / side
        folder.mkdir()
        text.write_vocabulary(folder / "vocab.txt")
        words = (folder / "vocab.txt").read_text().split()
        text.write_config(folder / "bert_config.json", len(words))
    given = [*map(str, ports.free_ports(2))]
    ours = found(python(clients, tmp_path, "-m", *COMMAND, script, "here", *given))
    words = [str(HERE / "older_names.py"), "bert_serving", script, "there", *given]
    theirs = found(python(clients, tmp_path, *words, executable=original.python))
    assert theirs.keys() == {"REDUCE_MEAN", "CLS_TOKEN"}
    assert_alike(ours, theirs)
    record("bert-serving-server 1.10.0", "BertServer and BertClient: vectors as the original")
