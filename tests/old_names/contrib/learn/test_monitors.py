"""Monitors of `tf.contrib.learn`."""

from support.proofs.contrib.learn import monitors as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
