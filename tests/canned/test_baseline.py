"""Served names: the baselines."""

from support.proofs.canned import baseline as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
