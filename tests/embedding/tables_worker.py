"""Trainings of embedding tables, by one process or by several: see support/cluster.py.

python tables_worker.py train RESULT_FILE ARGUMENTS, with TF_CONFIG in the environment.
"""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import tpu_estimator_compat as tpu

sys.path.insert(1, str(pathlib.Path(__file__).parents[1]))

from support.table_trainings import of_columns, of_dicts, sentences, share, share_of, trained


def train(root, earlier):
    """All trainings, into folders of `root`.

    Args:
      root: the chief's; another machine has nothing there.
      earlier: model_dir of a training by one process, where it was after 3 steps.
    """
    folder = pathlib.Path(root)
    resumed = str(folder / "resumed")
    return {
        "fresh": trained(of_columns(str(folder / "fresh")), share, 3, 6),
        "resumed": trained(of_columns(resumed), share, 6),
        "warm": trained(of_columns(str(folder / "warm"), warm_start_from=earlier), share, 1),
        "initialized": trained(
            of_columns(str(folder / "initialized"), initialized_from=earlier), share, 1
        ),
        "dicts": trained(of_dicts(str(folder / "dicts")), share_of(sentences), 3, 5),
    }


if __name__ == "__main__":
    arguments = json.loads(sys.argv[3])
    if tpu.RunConfig().task_type == "worker" and "TF_CONFIG" in os.environ:
        arguments["root"] += "-worker"
    pathlib.Path(sys.argv[2]).write_text(json.dumps(train(**arguments)))
