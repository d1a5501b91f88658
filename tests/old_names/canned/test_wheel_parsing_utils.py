"""Served names: the parsing specs of canned models."""

from support.proofs.canned import parsing_utils as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
