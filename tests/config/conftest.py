"""Configs are those of one process, unless a test says otherwise."""

import pytest


@pytest.fixture(autouse=True)
def no_tf_config(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
