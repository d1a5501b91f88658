"""The page on the design lists the doors and the rooms of the engine, as `.importlinter` does.

`python tests/docs/test_design.py` writes the page's list anew.
"""

import ast
import configparser
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "tpu_estimator_compat"
PAGE = ROOT / "migration_guide" / "design.md"
BEGIN, END = "<!-- modules: begin -->\n", "<!-- modules: end -->\n"
MOST_ENTRIES = 17
"""Modules and folders at the package's top level: as many as a reader holds in the head."""


def parts() -> tuple[str, str, str]:
    """The page before its list of modules, the list, and the page after it."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    listed, _, after = rest.partition(END)
    return before, listed, after


def rows(contract: str) -> list[list[pathlib.Path]]:
    """The entries of each row of a contract in `.importlinter`, the highest row first."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    return [
        [pathlib.Path(*name.strip().split(".")[1:]) for name in line.split("|")]
        for line in contracts[f"importlinter:contract:{contract}"]["layers"].split("\n")
        if line
    ]


def entries(folder: pathlib.Path) -> set[pathlib.Path]:
    files = {path.with_suffix("") for path in folder.glob("*.py")} - {folder / "__init__"}
    packages = {path.parent for path in folder.glob("*/__init__.py")}
    return {path.relative_to(PACKAGE) for path in files | packages}


def line(entry: pathlib.Path) -> str:
    is_package = (PACKAGE / entry).is_dir()
    module = entry / "__init__.py" if is_package else entry.with_suffix(".py")
    text = ast.get_docstring(ast.parse((PACKAGE / module).read_text())) or ""
    sentence = text.partition("\n")[0].partition(". ")[0].rstrip(".:")
    count = sum(1 for _ in (PACKAGE / entry).rglob("*.py"))
    more = f" {count} modules." if is_package and count > 1 else ""
    return f"- `{entry}{'/' if is_package else '.py'}`: {sentence}.{more}"


def made() -> str:
    lists = {"The doors": rows("doors"), "The rooms of the engine": rows("engine")}
    text = ""
    for heading, found in lists.items():
        paragraphs = ["\n".join(map(line, row)) for row in found]
        text += f"\n### {heading}\n\n" + "\n".join(paragraphs) + "\n"
    return text + "\n"


def test_every_entry_has_a_row():
    for contract, folder in ("doors", PACKAGE), ("engine", PACKAGE / "engine"):
        listed = [entry for row in rows(contract) for entry in row]
        assert sorted(listed) == sorted(entries(folder))


def test_the_top_level_can_be_held_in_the_head():
    assert len(entries(PACKAGE)) < MOST_ENTRIES


def test_the_list_has_the_words_of_the_docstrings():
    assert parts()[1].splitlines() == made().splitlines(), f"run python {__file__}"


def test_the_rest_of_the_page_names_what_exists():
    paths = re.findall(r"`?\b([a-z_]+(?:/[\w]+)*(?:/|\.py))(?![\w/])", "".join(parts()[::2]))
    assert len(paths) > 20
    roots = [PACKAGE, PACKAGE / "engine", ROOT]
    assert [p for p in paths if not any((root / p).exists() for root in roots)] == []


if __name__ == "__main__":
    start, _, rest = parts()
    PAGE.write_text(f"{start}{BEGIN}{made()}{END}{rest}")
