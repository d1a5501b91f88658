"""Served names: `tf.contrib.learn.io`."""

from support.proofs.contrib.learn import io as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
