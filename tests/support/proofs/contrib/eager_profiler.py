import pytest
import tensorflow as tf

from support.proofs import proves


@proves("tf.python.eager.profiler")
def profiles(module, tmp_path):
    with pytest.raises(module.ProfilerNotRunningError, match="No profiler is running"):
        module.stop()
    module.start()
    with pytest.raises(module.ProfilerAlreadyRunningError, match="Another profiler is running"):
        module.start()
    module.save(str(tmp_path), module.stop())
    with module.Profiler(str(tmp_path)):
        tf.ones([3]) + 1
    traces = list(tmp_path.glob("plugins/profile/*/local.trace"))
    assert traces
    assert all(trace.stat().st_size for trace in traces)
    assert len(list(tmp_path.glob("events*.profile-empty"))) == 1
