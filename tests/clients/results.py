"""What the clients' scripts and tests gave: `results.csv`, and the guide's table made from it.

A test that runs a client says what it found with `record`, which compares it with the row of
`results.csv`. To write the rows anew, and the page with them:

    TPU_ESTIMATOR_COMPAT_UPDATE_RESULTS=1 python -m pytest tests/clients
"""

import csv
import fcntl
import os
import pathlib

HERE = pathlib.Path(__file__).parent
ROWS = HERE / "results.csv"
EXPECTED = HERE / "expected_failures.csv"
PAGE = HERE.parents[1] / "migration_guide" / "field.md"
UPDATE = "TPU_ESTIMATOR_COMPAT_UPDATE_RESULTS"
BEGIN, END = "<!-- clients: begin -->\n", "<!-- clients: end -->\n"


def record(package: str, what: str, passed: int = 1, run: int = 1) -> None:
    """Compares a result with the row of `results.csv`; with UPDATE set, writes the row.

    Args:
      package: name and version.
      what: a script and what it was asked to do, or a test module.
      passed: how many scripts or tests ended well.
      run: how many there were; skipped ones do not count.
    """
    if os.environ.get(UPDATE):
        _write(package, what, str(passed), str(run))
    found = read().get((package, what))
    assert found == (str(passed), str(run)), (
        f"{package}, {what}: {passed} of {run} passed, and results.csv says {found}. Set "
        f"{UPDATE}=1 to write it anew."
    )


def read() -> dict[tuple[str, str], tuple[str, str]]:
    with ROWS.open(newline="") as file:
        return {(r["package"], r["what"]): (r["passed"], r["run"]) for r in csv.DictReader(file)}


def expected_failures(module: str) -> dict[str, str]:
    with EXPECTED.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {r["test"]: r["reason"] for r in rows if r["test"].startswith(f"{module}.")}


def table() -> str:
    """The page's table: a line for each package."""
    lines = ["| package | what runs | passes |", "|---|---|---|"]
    packages: dict[str, list[tuple[str, int, int]]] = {}
    for (package, what), (passed, run) in read().items():
        packages.setdefault(package, []).append((what, int(passed), int(run)))
    for package, rows in packages.items():
        scripts = [what for what, _, run in rows if not what.endswith("_test")]
        tests = [row for row in rows if row[0].endswith("_test")]
        for what in scripts:
            lines.append(f"| `{package}` | {what} | yes |")
        if tests:
            passed, run = sum(row[1] for row in tests), sum(row[2] for row in tests)
            short = [what.rpartition(".")[2].removesuffix("_test") for what, *_ in tests]
            names = ", ".join(dict.fromkeys(short))
            lines.append(f"| `{package}` | {run} tests of its own: {names} | {passed} |")
    return "\n".join(lines) + "\n"


def _write(package: str, what: str, passed: str, run: str) -> None:
    with (HERE / ".results.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = read() if ROWS.exists() else {}
        rows[package, what] = (passed, run)
        with ROWS.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["package", "what", "passed", "run"])
            writer.writerows([*key, *value] for key, value in sorted(rows.items()))
        text = PAGE.read_text()
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}")
