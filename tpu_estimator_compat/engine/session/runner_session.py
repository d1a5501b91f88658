"""A session that shares a graph and its variables with the runner of a plan's steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tpu_estimator_compat.engine.graph.sources import with_lines
from tpu_estimator_compat.engine.loop.group_runner import GroupRunner
from tpu_estimator_compat.engine.loop.runner import Runner
from tpu_estimator_compat.engine.session.graph_session import GraphSession


class RunnerSession(GraphSession):
    """A session whose steps a runner makes; a changed graph gets another runner."""

    def __init__(
        self,
        make_runner: Callable[[], Runner],
        config: tf.compat.v1.ConfigProto | None = None,
    ):
        self.runner = make_runner()
        super().__init__(self.runner.plan.graph, self.runner.store, config, self.runner.streams)
        self._make_runner = make_runner
        self._restored: str | None = None

    def start(self, restored: str | None = None) -> None:
        super().start(restored)
        self._restored = restored
        self.runner.start(restored)

    @property
    def may_renew_steps(self) -> bool:
        """Whether `renew_steps` may be called: not where machines have agreed on one graph."""
        return not isinstance(self.runner, GroupRunner)

    def renew_steps(self) -> None:
        self.finish_host_calls()
        self.runner.close()
        self.runner = self._make_runner()
        self.runner.start(self._restored)
        self._functions.clear()

    def finish_host_calls(self) -> None:
        with with_lines(self.graph):
            self.runner.finish_host_calls()

    def direct_read(self, tensor: tf.Tensor) -> Any:
        variable = self.variable_behind(tensor)
        if variable is not None:
            self.runner.finish_host_calls(using=variable.name[:-2])
        return super().direct_read(tensor)
