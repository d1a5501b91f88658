"""An experiment in a cluster with parameter servers, whose schedules start the servers."""

import pytest
from support.parameter_servers.cluster import ServerCluster


@pytest.mark.slow
def test_each_task_does_its_part(forks, tmp_path):
    with ServerCluster(tmp_path, forks, "line", experiment=True) as cluster:
        cluster.start("ps0", "ps1", "chief0")
        metrics, exports = cluster.observed("chief0")["result"]
        assert (metrics["global_step"][""], exports) == (40, [])
        assert cluster.steps()[-1] == 40
