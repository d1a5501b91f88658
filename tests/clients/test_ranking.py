"""`tensorflow-ranking` 0.2.3: its pipeline, run unchanged, against the original with the same."""

import pytest

from .results import record
from .runs import COMMAND, HERE, assert_alike, found, python

pytestmark = pytest.mark.full


@pytest.mark.parametrize("loss", ["approx_ndcg_loss", "softmax_loss"])
def test_pipeline(loss, clients, tmp_path, original):
    script = str(HERE / "ranking_script.py")
    ours = found(python(clients, tmp_path, "-m", *COMMAND, script, "here", loss))
    words = [str(HERE / "older_names.py"), "ranking", script, "there", loss]
    theirs = found(python(clients, tmp_path, *words, executable=original.python))
    assert theirs["metric/ndcg"] > 0.95
    assert_alike(ours, theirs)
    what = f"RankingPipeline with {loss}: train_and_evaluate, exporters, serving, as the original"
    record("tensorflow-ranking 0.2.3", what)
