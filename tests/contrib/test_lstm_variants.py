"""Served names: cells that are variants of the LSTM."""

from support.proofs.contrib import lstm_variants as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
