"""Served names: cells that wrap a cell."""

from support.proofs.contrib import cell_wrappers as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
