"""Stand-ins for what needs a TPU: they record calls, and know nothing else."""

import types

import tensorflow as tf


class FakeStrategy:
    """So many replicas; it cannot run anything."""

    def __init__(self, replicas):
        self.num_replicas_in_sync = replicas
        self.extended = types.SimpleNamespace()


class FakeTPU:
    """Records, in order, what is asked of TensorFlow's TPU functions.

    Args:
      monkeypatch: pytest's.
      hosts: machines of the system.
      cores_per_host: cores of each.
    """

    def __init__(self, monkeypatch, hosts=1, cores_per_host=8):
        self.calls = []
        self.hosts, self.cores_per_host = hosts, cores_per_host
        self._replicas = hosts * cores_per_host
        monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", self._connect)
        monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", self._initialize)
        monkeypatch.setattr(tf.tpu.experimental.DeviceAssignment, "build", self._assign)

        def strategy(resolver, experimental_device_assignment=None):
            self.calls.append(("strategy", resolver.master(), experimental_device_assignment))
            made = _FakeTPUStrategy.__new__(_FakeTPUStrategy)
            made.fake_replicas, made.fake_hosts = self._replicas, hosts
            return made

        monkeypatch.setattr(_Distribute.of(monkeypatch), "TPUStrategy", strategy)

    def _connect(self, resolver):
        self.calls.append(("connect", resolver.master()))

    def _initialize(self, resolver):
        self.calls.append(("initialize", resolver.master()))
        return types.SimpleNamespace(num_tasks=self.hosts, num_tpus_per_task=self.cores_per_host)

    def _assign(self, topology, computation_shape, num_replicas):
        self._replicas = num_replicas
        self.calls.append(("assign", tuple(computation_shape), num_replicas))
        return "assignment"


class _FakeTPUStrategy(tf.distribute.TPUStrategy):
    """A TPUStrategy that was never connected to anything."""

    num_replicas_in_sync = property(lambda self: self.fake_replicas)
    extended = property(lambda self: types.SimpleNamespace(num_hosts=self.fake_hosts))


class _Distribute:
    """`tf.distribute` for one module, so that isinstance checks elsewhere keep their class."""

    @staticmethod
    def of(monkeypatch):
        from tpu_estimator_compat.topology import tpu_strategy, tpu_system

        fake = types.SimpleNamespace(
            cluster_resolver=tf.distribute.cluster_resolver, TPUStrategy=None
        )
        for module in (tpu_system, tpu_strategy):
            proxy = types.SimpleNamespace(
                distribute=fake, config=tf.config, tpu=tf.tpu, compat=tf.compat
            )
            monkeypatch.setattr(module, "tf", proxy)
        return fake


class FakeResolver(tf.distribute.cluster_resolver.TPUClusterResolver):
    """A resolver of a TPU that is nowhere."""

    def __init__(self, address="grpc://tpu:8470"):
        self._address = address

    def master(self, *unused, **also_unused):
        return self._address

    def cluster_spec(self):
        return tf.train.ClusterSpec({"worker": ["tpu:8470"]})
