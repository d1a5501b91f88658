"""Served names: `tf.contrib.learn.preprocessing`."""

from support.proofs.contrib.learn import text_preprocessing as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
