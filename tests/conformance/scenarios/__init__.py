"""Conformance scenarios: every public function here is one documented behaviour of the original.

A scenario takes `model_dir`, an empty directory, and `record`, which notes what it is called with;
what it returns is noted, too. Its code is legacy code: the same file runs on TensorFlow 2.15 and,
as a legacy package, on this one.
"""
