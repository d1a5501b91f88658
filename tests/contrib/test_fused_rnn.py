"""Served names: cells and networks that had kernels of their own."""

from support.proofs.contrib import fused_rnn as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
