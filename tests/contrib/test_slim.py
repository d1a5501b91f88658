"""Served names: `tf.contrib.slim` and its deep modules, and of `tf.contrib.losses`."""

from support.proofs.contrib import slim as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
