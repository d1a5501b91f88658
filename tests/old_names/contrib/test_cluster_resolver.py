"""Served names: `tf.contrib.cluster_resolver`."""

from support.proofs.contrib import cluster_resolver as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
