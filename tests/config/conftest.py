import json

import pytest

CLUSTER = {"chief": ["c:1"], "ps": ["p:1", "p:2"], "worker": ["w:1", "w:2", "w:3"]}


@pytest.fixture
def tf_config(monkeypatch):
    """`tf_config(kind, index, cluster)` sets TF_CONFIG."""

    def set_to(kind, index, cluster=CLUSTER):
        value = {"cluster": cluster, "task": {"type": kind, "index": index}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(value))

    return set_to
