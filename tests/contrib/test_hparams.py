"""Served names: `tf.contrib.training.HParams`."""

from support.proofs.contrib import hparams as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
