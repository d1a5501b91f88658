"""Served names: the linear models."""

from support.proofs.canned import linear as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
