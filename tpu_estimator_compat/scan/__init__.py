"""Finds the uses of dead names in source files, without running them or importing TensorFlow."""

from tpu_estimator_compat.scan.files import CannotRead, Source, python_files, read
from tpu_estimator_compat.scan.findings import Finding, Status
from tpu_estimator_compat.scan.module import scan_file, scan_text

__all__ = [
    "CannotRead",
    "Finding",
    "Source",
    "Status",
    "python_files",
    "read",
    "scan_file",
    "scan_text",
]
