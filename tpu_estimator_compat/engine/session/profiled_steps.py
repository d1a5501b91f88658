"""Records a profile of some steps, if the environment asks for one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import tensorflow as tf
from tensorflow.compat.v1 import logging

from tpu_estimator_compat import environment
from tpu_estimator_compat.engine.functions import profiles

_STEPS = 10  # the profile ends after the run that reaches this number of steps
_SECONDS = 5.0  # a profile also ends after this time: TensorFlow sets no limit


class ProfiledSteps:
    """Records a profile of the second run of a session and some after it; once per process.

    The first run compiles.
    """

    _is_made = False

    def __init__(self) -> None:
        self._folder = environment.profile_folder()
        self._runs = self._steps = self._first = 0
        self._is_recording = False
        self._timer = threading.Timer(_SECONDS, self.close)
        self._timer.daemon = True
        self._lock = threading.Lock()

    def before_run(self, step: Callable[[], int]) -> None:
        if self._folder is None or ProfiledSteps._is_made or self._runs != 1:
            return
        ProfiledSteps._is_made = True
        try:
            tf.profiler.experimental.start(self._folder, profiles.ALL_OPERATIONS)
        except tf.errors.AlreadyExistsError:
            logging.warning("No profile in %s: the script records one by itself.", self._folder)
            return
        self._is_recording, self._first, self._steps = True, step(), 0
        self._timer.start()

    def after_run(self, steps: int) -> None:
        self._runs += 1
        self._steps += steps
        if self._is_recording and self._steps >= _STEPS:
            self.close()

    def close(self) -> None:
        """Ends the profile; warns if there was nothing to record."""
        with self._lock:
            if self._is_recording:
                self._stop()
            elif self._folder is not None and self._runs == 1 and not ProfiledSteps._is_made:
                logging.warning(
                    "No profile in %s: all steps were made in one run, which compiles. Lower "
                    "iterations_per_loop, or make more steps.",
                    self._folder,
                )

    def _stop(self) -> None:
        self._timer.cancel()
        self._is_recording = False
        tf.profiler.experimental.stop()
        path = os.path.join(str(self._folder), f"timeline-{self._first}.json")
        with tf.io.gfile.GFile(path, "w") as file:
            file.write(profiles.timeline(str(self._folder)))
        logging.info(
            "A profile of steps from global step %d on is in %s: `tensorboard --logdir %s` shows "
            "it, with the package xprof. %s has the first %d operations, for chrome://tracing.",
            self._first,
            self._folder,
            self._folder,
            path,
            profiles.MOST_OF_TIMELINE,
        )
