"""Served names: `tf.contrib.learn.Experiment` and its runner."""

from support.proofs.contrib.learn import experiment as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
