"""When a run reads the variables among its fetches: before its last step, or after it.

A run makes one step, or a loop of which hooks see the last step alone. TensorFlow 1 read a variable
somewhere within a step, which depended on the kind of variable and the caller:

| policy | plain values of variables | computed from variables alone, as a summary is |
|---|---|---|
| `BEFORE_LAST_STEP` | before the last step | before the last step |
| `REF_VARIABLES` | after it; the counter that TensorFlow's hooks fetch, before it | before it |
| `AFTER_LOOP`, of a TPU | after the loop | within the last step |
| `AFTER_LOOP_OF_REFS` | after the loop | before the last step |
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class ReadPolicy:
    """A row of the table.

    Attributes:
      before_last_step: whether plain values are those before the last step of a run.
      computed_before: whether values computed from variables alone are those before that step.
      again_after: whether plain values are read again after the step, except the copy of the global
        step that TensorFlow's hooks fetch, which is made before it.
    """

    before_last_step: bool
    computed_before: bool
    again_after: bool


BEFORE_LAST_STEP = ReadPolicy(before_last_step=True, computed_before=True, again_after=False)
REF_VARIABLES = ReadPolicy(before_last_step=True, computed_before=True, again_after=True)
AFTER_LOOP = ReadPolicy(before_last_step=False, computed_before=False, again_after=False)
AFTER_LOOP_OF_REFS = ReadPolicy(before_last_step=False, computed_before=True, again_after=False)


def policy(*, in_loops: bool, ref_variables: bool) -> ReadPolicy:
    """The policy of a session, whose hooks may get control only after TPU loops (`in_loops`)."""
    if in_loops:
        return AFTER_LOOP_OF_REFS if ref_variables else AFTER_LOOP
    return REF_VARIABLES if ref_variables else BEFORE_LAST_STEP
