"""Recurrent models: served names."""

from support.proofs.canned import rnn as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
