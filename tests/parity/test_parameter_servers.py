"""Clusters with parameter servers: what the original's do, and the same here."""

import concurrent.futures
import json
import re

import pytest
from support.parameter_servers.cluster import ServerCluster
from support.sharing import shared
from support.sides import comparing, observing, running

from . import runs

pytestmark = [pytest.mark.slow, pytest.mark.parity]

CHOICE = (
    "INFO TF_CONFIG names 2 parameter server(s): TensorFlow's sessions run the original's loops."
)
WITHIN = runs.tolerances(variables=1e-4)
LEARNED = 0.8  # the accuracy; the recommenders know nothing at 0.5

ALONE = {
    "a line": {"model": "line"},
    "a line in TensorFlow 2": {"model": "line", "v2": True},
    "a line under the strategy": {"model": "line", "strategy": True},
    "a master": {"model": "line", "chief": "master"},
    "servers made by hand": {"model": "line", "by_hand": True},
    "a recommender": {"model": "interest_network"},
}
"""One chief trains, which makes all numbers those of every run."""

TOGETHER = {
    "wide and deep": {"model": "wide_and_deep", "max_steps": 400, "save_steps": 150},
    "interest network": {"model": "interest_network", "max_steps": 400, "save_steps": 150},
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
    ours = running.of_ours("parity").forks

    def sides(key, model, workers=0, run=run_all, **settings):
        def make(root):
            def side(name, forks):
                given = {**settings, "original": name == "original"}
                with ServerCluster(root / name, forks, model, workers, **given) as cluster:
                    done = run(cluster, workers)
                texts = observing.Texts(str(root / name))
                found = {name: lines(task, texts) for name, task in done.items()}
                found["result"] = {name: task["result"] for name, task in done.items()}
                model_dir = str(root / name / "model")
                found["files"] = observing.files(model_dir, texts)
                found["events"] = observing.events(model_dir, texts)
                found["checkpoints"] = observing.checkpoints(model_dir, texts, 10_000)
                (root / f"{name}.json").write_text(json.dumps(found))

            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                runs = [
                    pool.submit(side, "original", original.forks),
                    pool.submit(side, "ours", ours),
                ]
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


@pytest.mark.parametrize("chief", ALONE)
def test_one_chief_does_the_same(both, chief):
    settings = dict(ALONE[chief])
    theirs, ours = both(chief.replace(" ", "-"), **settings)
    without_choice(ours, settings.get("chief", "chief") + "0")
    assert len(theirs["checkpoints"]["."]["kept"]) == 5
    kept = [in_any_order(side, "strategy" in settings) for side in (theirs, ours)]
    comparing.assert_none(comparing.differences(*kept, WITHIN))
    for name, tags in theirs["events"].items():
        for tag in tags.keys() - {"<order>"}:
            one, other = dict(tags[tag]), dict(ours["events"][name][tag])
            both_saw = sorted(one.keys() & other.keys())
            assert both_saw, (name, tag)
            values = [[side[step] for step in both_saw] for side in (one, other)]
            comparing.assert_none(comparing.differences(*values))


def in_any_order(found, by_a_strategy):
    """Without what depends on whether a server has counted a step already when it is read.

    The original's strategy had log lines of its own.
    """
    races = re.compile("global_step/sec|has not been increased|^INFO loss = .*")
    logs = {name: [line for line in found[name] if not races.search(line)] for name in tasks(found)}
    return {
        **({} if by_a_strategy else logs),
        **{place: found[place] for place in ("result", "files", "checkpoints")},
        "tags": {name: sorted(tags) for name, tags in found["events"].items()},
    }


def tasks(found):
    return [name for name in found if name[-1].isdigit()]


def test_synchronous_workers_compute_the_same(both):
    def run(cluster, workers):
        cluster.start("ps0", "ps1", "chief0")
        cluster.saves(0)
        # The chief would wait for ever for gradients of a worker that has ended.
        cluster.start("worker0", max_steps=10_000)
        return {"chief0": cluster.observed("chief0")}

    theirs, ours = both("sync", "synchronous_line", workers=1, run=run)
    places = ("checkpoints", "files")
    comparing.assert_none(
        [d for p in places for d in comparing.differences({p: theirs[p]}, {p: ours[p]}, WITHIN)]
    )


@pytest.mark.parametrize("recommender", TOGETHER)
def test_recommenders_learn_in_a_cluster(both, recommender):
    found = both(recommender.replace(" ", "-"), workers=2, **TOGETHER[recommender])
    for side in found:
        [name] = [n for n in side["events"] if n.startswith("eval/")]
        assert side["events"][name]["accuracy"][-1][1] > LEARNED
    without_choice(found[1], "chief0", "worker0", "worker1")
    theirs, ours = map(whatever_the_steps, found)
    comparing.assert_none(comparing.differences(theirs, ours))


def whatever_the_steps(found):
    """Kinds of log lines, files, tags and variables, without what the order of steps decides."""
    left_out = (
        "has not been increased",
        "INFO loss = ",
        "Waiting for model",
        "Waiting <n> secs",
        "No new check",
    )
    return {
        **{
            name: sorted({_kind(x) for x in found[name] if not any(y in x for y in left_out)})
            for name in tasks(found)
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
