"""Served names: `tf.contrib.rnn`; what cells compute is tested in `tests/contrib`."""

from support.proofs.contrib import rnn as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
