"""Served names: convolutional cells."""

from support.proofs.contrib import conv_cells as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
