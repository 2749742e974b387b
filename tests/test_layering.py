"""Who may import whom, read from the source: the drawing in ARCHITECTURE.md, kept true."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from cases import for_each

ROOT = Path(__file__).parents[1] / "src" / "harvestman"

BELOW: dict[str, set[str]] = {
    "model": set(),
    "errors": set(),
    "headers": set(),
    "media": set(),
    "config": {"errors", "model"},
    "ports": {"model", "policy"},
    "clock": {"model"},
    "policy": {"config", "errors", "model"},
    "fetch": {"errors", "headers", "media", "model"},
    "pages": {"media", "model", "policy"},
    "render": {"errors", "model"},
    "store": {"errors", "headers", "model"},
    "sim": {"errors"},
    "frontier": {"config", "model", "policy", "ports"},
    "embedded": {"errors", "layout", "model", "policy", "ports"},
    "layout": {"config", "errors"},
    "jobs": {"errors", "layout", "model", "policy"},
    "seeds": {"errors", "pages", "policy"},
    "messages": {"config", "model"},
}
"""What each of these parts may import besides itself. The stages (fetch, pages, render, store, frontier, sim) never
import one another; what joins them (harvest, asking, dispatch, crawl) sits above and is not listed."""

KNOW_THE_EMBEDDED = {"wiring", "regions", "views", "mend", "simulate", "embedded"}
"""`wiring` puts the parts together; `regions` moves sites between runs; `views` opens a State read-only for those who
look, `mend` for those who repair; `simulate` runs the frontier over a real one."""

CLOCKS = {"clock", "sim", "cli", "supervise"}
"""Where the hour may be asked. `supervise` measures how long a run took (monotonic), nothing more."""

WAITS = {"embedded/opening.py": "time.sleep"}
"""A pause that decides nothing: until the worker of a killed supervisor has let go of its database."""

CHANCE = {"wiring", "sim", "simulate", "cli"}
"""Where a source of chance may be made. Everyone else is handed one."""

ASKS_THE_HOUR = {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "sleep", "now", "utcnow", "today"}
NAMES_A_RECORD = {"store/warc.py": "uuid"}
"""Chance that decides nothing: the identity of a WARC record."""


@cache
def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


JUDGED = (ast.Import, ast.ImportFrom, ast.Attribute, ast.Call, ast.AsyncFunctionDef, ast.Await)


@cache
def nodes(path: Path) -> list[ast.AST]:
    """What the rules below are about; most of a file is not."""
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, JUDGED)]


@cache
def imports(path: Path) -> list[tuple[str, str]]:
    """(module, name) of every import, wherever in the file it stands; relative ones made absolute."""
    return list(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, str]]:
    package = ("harvestman", *path.relative_to(ROOT).parts[:-1])
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *([node.module] if node.module else [])))
            yield from ((module, alias.name) for alias in node.names)


@cache
def parts_imported(path: Path) -> set[str]:
    """The parts of Harvestman a module imports, its own not counted."""
    found = set()
    for module, name in imports(path):
        top, *rest = module.split(".")
        if top == "harvestman":
            found.add(rest[0] if rest else name)
    return found - {part_of(path), "__version__", ""}


def there_is_something_to_look_at() -> None:
    assert {part_of(path) for path in modules()} >= set(BELOW)
    assert "policy" in parts_imported(ROOT / "frontier" / "frontier.py")
    assert parts_imported(ROOT / "store" / "replay.py") == {"errors", "model"}


def a_part_imports_only_what_lies_below_it() -> None:
    wrong = {
        f"{named(path)} imports {part}"
        for path in modules()
        if part_of(path) in BELOW
        for part in parts_imported(path) - BELOW[part_of(path)]
    }
    assert wrong == set()


def only_the_wiring_and_the_views_know_the_embedded_ports() -> None:
    knowing = {part_of(path) for path in modules() if "embedded" in parts_imported(path)}
    assert knowing <= KNOW_THE_EMBEDDED


def the_simulated_web_is_known_to_the_command_line_alone() -> None:
    assert {part_of(path) for path in modules() if "sim" in parts_imported(path)} <= {"cli"}


def time_is_an_argument() -> None:
    wrong = [
        f"{named(path)}: {use}"
        for path in modules() if part_of(path) not in CLOCKS
        for use in hours_asked(path) if not use.endswith(WAITS.get(named(path), "-"))
    ]  # fmt: skip
    assert wrong == []


def hours_asked(path: Path) -> list[str]:
    """Where a module looks at a clock, by attribute or by a name it imported."""
    used = [
        f"line {node.lineno}: {node.value.id}.{node.attr}"
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in ASKS_THE_HOUR
        if node.value.id in ("time", "datetime", "date")
    ]
    return used + [name for module, name in imports(path) if module == "time" and name in ASKS_THE_HOUR]


def chance_is_an_argument() -> None:
    wrong = [f"{named(path)}: {use}" for path in modules() if part_of(path) not in CHANCE for use in dice_thrown(path)]
    assert wrong == []


def dice_thrown(path: Path) -> list[str]:
    """Where a module makes a source of chance; naming the type of one it is handed is no sin."""
    sources = {"random", "secrets", "uuid"} - {NAMES_A_RECORD.get(named(path), "")}
    imported = {(module, name) for module, name in imports(path) if module in sources} - {("random", "Random")}
    made = [node for node in nodes(path) if isinstance(node, ast.Call) and called(node) == "Random"]
    return [f"{module}.{name}" for module, name in imported] + [f"line {node.lineno}: Random()" for node in made]


def called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


IMPURE = {"os", "io", "time", "random", "socket", "asyncio", "logging", "pathlib", "threading", "subprocess"}


def policy_is_pure() -> None:
    wrong = []
    for path in (path for path in modules() if part_of(path) == "policy"):
        wrong += [f"{named(path)}: {module}" for module, _ in imports(path) if module.partition(".")[0] in IMPURE]
        for node in nodes(path):
            does = isinstance(node, ast.Call) and called(node) in ("open", "print")
            if does or isinstance(node, ast.AsyncFunctionDef | ast.Await):
                wrong.append(f"{named(path)}: line {getattr(node, 'lineno', 0)}")
    assert wrong == []


@for_each("rule", [
    there_is_something_to_look_at, a_part_imports_only_what_lies_below_it,
    only_the_wiring_and_the_views_know_the_embedded_ports, the_simulated_web_is_known_to_the_command_line_alone,
    time_is_an_argument, chance_is_an_argument, policy_is_pure,
])  # fmt: skip
def test_the_rules_hold(rule: Callable[[], None]) -> None:
    """One test, for reading the whole source takes a second, and every worker would."""
    rule()
