"""The guide's page on the design names the modules, in the rows of `.importlinter`.

`python tests/docs/test_design.py` writes the page's list of modules anew.
"""

import ast
import collections
import configparser
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "tpu_estimator_compat"
PAGE = ROOT / "migration_guide" / "design.md"
BESIDE = frozenset(
    (
        *("commands", "v1", "compare", "doctor", "contrib", "migrate", "scan", "canned"),
        *("legacy", "tpu", "preflight", "export", "reports", "lowering", "embedding"),
    )
)
"""Rooms that the data of a plain model does not pass; the page names each, and no module of it."""
BEGIN, END = "<!-- modules: begin -->\n", "<!-- modules: end -->\n"


def parts() -> tuple[str, str, str]:
    """The page before its list of modules, the list, and the page after it."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    listed, _, after = rest.partition(END)
    return before, listed, after


def listed() -> str:
    """The page's list of modules."""
    return parts()[1]


def rows() -> list[list[str]]:
    """The rooms of each row of `.importlinter`, the highest row first."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = contracts["importlinter:contract:layers"]["layers"]
    return [
        [name.strip().removeprefix(f"{PACKAGE.name}.") for name in line.split("|")]
        for line in layers.split("\n")
        if line
    ]


def modules() -> list[pathlib.Path]:
    """All modules, as paths within the package."""
    return sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def shown() -> list[pathlib.Path]:
    """The modules that the page names: of a room beside the way of the data, its door."""
    return [m for m in modules() if m.parts[0] not in BESIDE or m.parts[1:] == ("__init__.py",)]


def line(module: pathlib.Path) -> str:
    """What the page says of a module: the first sentence of its docstring."""
    text = ast.get_docstring(ast.parse((PACKAGE / module).read_text())) or ""
    sentence = text.partition("\n")[0].partition(". ")[0].rstrip(".:")
    room = module.parts[0]
    more = ""
    if room in BESIDE:
        count = sum(other.parts[0] == room for other in modules())
        more = f" {count} modules." if count > 1 else ""
    return f"- `{module}`: {sentence}.{more}"


def made() -> str:
    """The list of modules as it should be."""
    lines = ["", line(pathlib.Path("__init__.py")), ""]
    for row in rows():
        lines += ["### " + ", ".join(f"`{room}`" for room in row), ""]
        found = [m for room in row for m in shown() if m.parts[0] in (room, f"{room}.py")]
        lines += [*map(line, found), ""]
    return "\n".join(lines) + "\n"


def test_modules_on_the_way_of_the_data_are_named_once_and_doors_of_the_rooms_beside_it():
    named = collections.Counter(re.findall(r"^- `([\w/]+\.py)`: ", listed(), re.MULTILINE))
    there = {str(module) for module in shown()}
    missing, unknown = there - set(named), set(named) - there
    twice = {name for name, count in named.items() if count > 1}
    assert (missing, unknown, twice) == (set(), set(), set())


def test_rows_are_those_of_the_layers():
    headings = re.findall(r"^### (.*)$", listed(), re.MULTILINE)
    assert [re.findall(r"`(\w+)`", heading) for heading in headings] == rows()


def test_every_room_has_a_row():
    rooms = {module.parts[0].removesuffix(".py") for module in modules()} - {"__init__"}
    assert rooms == {room for row in rows() for room in row}


def test_modules_are_in_their_rows_with_their_own_words():
    assert listed().splitlines() == made().splitlines(), f"run python {__file__}"


def test_no_module_on_the_way_of_the_data_imports_a_room_beside_it_but_at_its_plug():
    """Rooms beside the way are reached from a call's beginning, or not at all."""
    allowed = {"estimator", "keras_model", "jax_runtime", *BESIDE}
    found = []
    for module in modules():
        room = module.parts[0].removesuffix(".py")
        if room in allowed or len(module.parts) == 1:
            continue
        for node in ast.walk(ast.parse((PACKAGE / module).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = [f"{node.module}.{alias.name}".split(".") for alias in node.names]
                rooms = {name[1] for name in named if name[0] == PACKAGE.name}
                found += [f"{module}: {beside}" for beside in rooms & BESIDE]
    assert found == []


def test_the_rest_of_the_page_names_what_exists():
    paths = re.findall(r"`?\b([a-z_]+(?:/[\w]+)*(?:/|\.py))(?![\w/])", "".join(parts()[::2]))
    assert len(paths) > 20
    roots = [PACKAGE, ROOT]
    assert [p for p in paths if not any((root / p).exists() for root in roots)] == []


if __name__ == "__main__":
    start, _, rest = parts()
    PAGE.write_text(f"{start}{BEGIN}{made()}{END}{rest}")
