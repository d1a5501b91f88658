"""Served names: `tf.contrib.seq2seq`."""

from support.proofs.contrib import seq2seq as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
