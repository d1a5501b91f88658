"""Served names: the keys of predictions and metrics."""

from support.proofs.canned import keys as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
