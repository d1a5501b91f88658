"""Served names: `tf.contrib.learn.RunConfig`."""

from support.proofs.contrib.learn import run_config as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
