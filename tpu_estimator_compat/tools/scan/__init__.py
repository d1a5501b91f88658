"""Finds the uses of dead names in source files, without running them or importing TensorFlow."""

from tpu_estimator_compat.tools.scan.each_file import EachFile
from tpu_estimator_compat.tools.scan.files import CannotRead, FileText, NoFiles, python_files, read
from tpu_estimator_compat.tools.scan.findings import ScanFinding, Status, unreadable, unwritten
from tpu_estimator_compat.tools.scan.module import scan_text
from tpu_estimator_compat.tools.scan.notebooks import placed, scan_notebook

__all__ = [
    "CannotRead",
    "EachFile",
    "FileText",
    "NoFiles",
    "ScanFinding",
    "Status",
    "placed",
    "python_files",
    "read",
    "scan_notebook",
    "scan_text",
    "unreadable",
    "unwritten",
]
