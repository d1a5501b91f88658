"""Clusters with parameter servers: what the original's do, and the same here."""

import concurrent.futures
import json
import re

import pytest
from support.parameter_servers.cluster import ServerCluster
from support.sharing import shared
from support.sides import comparing, observing, running

pytestmark = [pytest.mark.slow, pytest.mark.parity]

CHOICE = "INFO TF_CONFIG names 2 parameter server(s): TensorFlow's sessions run the original's loops."
LEARNED = 0.9  # the accuracy; the recommenders know nothing at 0.5

ALONE = {
    "a line": {"model": "line"},
    "a line in TensorFlow 2": {"model": "line", "v2": True},
    "a line under the strategy": {"model": "line", "strategy": True},
    "a master": {"model": "line", "chief": "master"},
    "a recommender": {"model": "interest_network"},
}
"""One chief trains, which makes all numbers those of every run."""

TOGETHER = {
    "wide and deep": {"model": "wide_and_deep", "max_steps": 400},
    "interest network": {"model": "interest_network", "max_steps": 400},
}
"""A chief, two workers and an evaluator: steps come in any order."""


def run_all(cluster, workers):
    names = [f"{chief}0" for chief in ("chief", "master") if chief in cluster.jobs]
    cluster.start("ps0", "ps1", *names)
    if workers:
        cluster.start("evaluator0")
        cluster.saves(0)  # workers wait in steps of half a minute for initialized variables
        names += [f"worker{i}" for i in range(workers)]
        cluster.start(*names[1:])
        names.append("evaluator0")
    return {name: cluster.observed(name) for name in names}


@pytest.fixture(scope="module")
def both(original, tmp_path_factory):
    """Runs a cluster on both sides at once; returns what each left, the original's first."""
    ours = running.of_ours(tmp_path_factory, "parity").forks

    def sides(key, model, workers=0, run=run_all, **settings):
        def make(root):
            def side(name, forks):
                given = {**settings, "original": name == "original"}
                with ServerCluster(root / name, forks, model, workers, **given) as cluster:
                    tasks = run(cluster, workers)
                texts = observing.Texts(str(root / name))
                found = {name: lines(task, texts) for name, task in tasks.items()}
                found["result"] = {name: task["result"] for name, task in tasks.items()}
                model_dir = str(root / name / "model")
                found["files"] = observing.files(model_dir, texts)
                found["events"] = observing.events(model_dir, texts)
                found["checkpoints"] = observing.checkpoints(model_dir, texts, 10_000)
                (root / f"{name}.json").write_text(json.dumps(found))

            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                runs = [pool.submit(side, "original", original.forks), pool.submit(side, "ours", ours)]
                for done in runs:
                    done.result()

        root = shared(tmp_path_factory, f"servers-{key}", make)
        return [json.loads((root / f"{name}.json").read_text()) for name in ("original", "ours")]

    return sides


def lines(task, texts):
    return [re.sub(r"localhost:\d+", "localhost:<port>", texts(line)) for line in task["log"]]


def without_choice(found, *names):
    """Every task says once why sessions run, which the original did not have to."""
    for name in names:
        assert found[name].count(CHOICE) == 1, name
        found[name].remove(CHOICE)


@pytest.mark.parametrize("case", ALONE)
def test_one_chief_does_the_same(both, case):
    settings = dict(ALONE[case])
    theirs, ours = both(case.replace(" ", "-"), **settings)
    without_choice(ours, settings.get("chief", "chief") + "0")
    assert len(theirs["checkpoints"]["."]["kept"]) == 5
    comparing.assert_none(comparing.differences(theirs, ours))


def test_synchronous_workers_compute_the_same(both):
    def run(cluster, workers):
        cluster.start("ps0", "ps1", "chief0")
        cluster.saves(0)
        cluster.start("worker0")
        # A worker that has ended sends no more gradients, for which the chief would wait.
        return {"chief0": cluster.observed("chief0")}

    theirs, ours = both("sync", "synchronous_line", workers=1, run=run)
    places = ("checkpoints", "files")
    comparing.assert_none(
        [d for place in places for d in comparing.differences(theirs[place], ours[place])]
    )


@pytest.mark.parametrize("case", TOGETHER)
def test_recommenders_learn_in_a_cluster(both, case):
    found = both(case.replace(" ", "-"), workers=2, **TOGETHER[case])
    for side in found:
        [name] = [n for n in side["events"] if n.startswith("eval/")]
        assert side["events"][name]["accuracy"][-1][1] > LEARNED
    theirs, ours = map(whatever_the_steps, found)
    without_choice(ours, "chief0", "worker0", "worker1")
    assert theirs == ours


def whatever_the_steps(found):
    """Kinds of log lines, files, tags and variables, without what the order of steps decides."""
    tasks = {name: said for name, said in found.items() if name.endswith(("0", "1"))}
    left_out = ("has not been increased", "Waiting for model", "Waiting <n> secs", "No new check")
    return {
        **{
            name: sorted({_kind(line) for line in said if not any(x in line for x in left_out)})
            for name, said in tasks.items()
        },
        "files": sorted({_kind(name) for name in found["files"]}),
        "tags": {name: sorted(set(tags) - {"<order>"}) for name, tags in found["events"].items()},
        "variables": {
            name: value["shape"] if isinstance(value, dict) and "shape" in value else "scalar"
            for name, value in found["checkpoints"]["."]["variables"].items()
        },
    }


def _kind(text):
    return re.sub(r"\d+\.?\d*(e-?\d+)?", "<n>", text)
