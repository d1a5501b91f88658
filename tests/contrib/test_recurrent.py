"""Served names: `tf.contrib.recurrent`."""

from support.proofs.contrib import recurrent as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
