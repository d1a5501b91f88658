"""Served names: `tf.contrib.learn.datasets`."""

from support.proofs.contrib.learn import datasets as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
