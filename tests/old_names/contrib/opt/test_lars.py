"""Served names: LARS."""

from support.proofs.contrib.opt import lars as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
