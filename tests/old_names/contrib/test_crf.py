"""Served names: `tf.contrib.crf`."""

from support.proofs.contrib import crf as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
