"""Served names: `tf.contrib.learn.ModelFnOps`."""

from support.proofs.contrib.learn import model_fn_ops as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
