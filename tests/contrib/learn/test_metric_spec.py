"""Served names: `tf.contrib.learn.MetricSpec`."""

from support.proofs.contrib.learn import metric_spec as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
