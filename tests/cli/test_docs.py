"""The manual and the program say the same: every verb, option, setting and exit code, both ways."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from cases import for_each

from harvestman import errors, export
from harvestman.cli import audit, bench, main, running
from harvestman.cli.explain import VERDICTS
from harvestman.cli.settings import OPTIONS
from harvestman.config import Config
from harvestman.model import FailureKind, Page, Tally

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MANUAL = (DOCS / "cli.md").read_text(encoding="utf-8")


def verbs() -> dict[str, argparse.ArgumentParser]:
    actions = main.parser()._actions
    found = next(action for action in actions if isinstance(action, argparse._SubParsersAction))
    return dict(found.choices)


def actions_of(verb: argparse.ArgumentParser) -> list[argparse.Action]:
    """Those of its sub-commands included."""
    below = next((action.choices for action in verb._actions if isinstance(action, argparse._SubParsersAction)), {})
    return [*verb._actions, *(action for deed in below.values() for action in actions_of(deed))]


def options_of(verb: argparse.ArgumentParser) -> set[str]:
    return {name for action in actions_of(verb) for name in action.option_strings if name.startswith("--")} - {"--help"}


def section(title: str) -> str:
    _, _, rest = MANUAL.partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0]


def test_verbs_are_in_the_manual() -> None:
    assert set(re.findall(r"^## harvestman (\w+)$", MANUAL, re.MULTILINE)) == set(verbs())


@for_each("name", sorted(verbs()))
def test_options_are_in_the_manual(name: str) -> None:
    documented = set(re.findall(r"^\| `(--[a-z-]+)", section(f"harvestman {name}"), re.MULTILINE))
    assert documented == options_of(verbs()[name])


@for_each("name", sorted(verbs()))
def test_every_option_explains_itself_and_its_default(name: str) -> None:
    for action in actions_of(verbs()[name]):
        if action.option_strings and "--help" not in action.option_strings:
            assert action.help, action.option_strings
            assert "default" in action.help, action.option_strings


@for_each("name", sorted(verbs()))
def test_documented_defaults_are_the_real_ones(name: str) -> None:
    rows = re.findall(
        r"^\| `(--[a-z-]+)[^|]*(?:\\\|[^|]*)*\|(?:[^|]|(?<=\\)\|)*\| `?([\d.]+)\b", section(f"harvestman {name}"), re.M
    )
    known = {option: action.default for action in actions_of(verbs()[name]) for option in action.option_strings}
    for option, default in rows:
        if known[option] is not None:
            assert float(known[option]) == float(default), option


@for_each("name", sorted(verbs()))
def test_help_teaches_with_examples(name: str) -> None:
    assert "examples:" in verbs()[name].format_help()
    assert f"harvestman {name}" in (verbs()[name].epilog or "")


def exit_codes() -> set[int]:
    kinds: list[type[errors.HarvestmanError]] = [errors.HarvestmanError, *_below(errors.HarvestmanError)]
    return {
        0,
        *(kind.exit_code for kind in kinds),
        audit.VIOLATIONS,
        running.VIOLATIONS,
        main.INTERRUPTED,
        running.INTERRUPTED,
        running.NOTHING,
    }


def _below(kind: type[errors.HarvestmanError]) -> Iterator[type[errors.HarvestmanError]]:
    for below in kind.__subclasses__():
        yield below
        yield from _below(below)


def test_exit_codes_are_in_the_manual() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE)}
    assert documented == exit_codes()


def settings(kind: type[msgspec.Struct] = Config, prefix: str = "") -> Iterator[tuple[str, str]]:
    for field in msgspec.structs.fields(kind):
        default = field.default
        if isinstance(default, msgspec.Struct):
            yield from settings(type(default), f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, msgspec.json.encode(default).decode()


def test_settings_and_their_defaults_are_in_the_manual() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([a-z_.]+)` \| `([^`]*)` \|", text, re.MULTILINE)
    assert sorted(documented) == sorted(settings())


def test_options_named_with_settings_are_the_real_ones() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"^\| `([a-z_.]+)` \| `[^`]*` \| `(--[a-z-]+)`:", text, re.MULTILINE))
    assert named == {setting: "--" + option.replace("_", "-") for option, setting in OPTIONS.items()}


def test_columns_of_the_export_are_in_the_manual() -> None:
    text = (DOCS / "export.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE) == ["schema_version", *export.Row.__struct_fields__]


def test_verdicts_of_why_are_in_the_manual() -> None:
    rows = re.findall(r"^\| ([a-z, -]+) \| [^`]", section("harvestman why"), re.MULTILINE)
    words = {word for row in rows for word in row.split(", ")} - {"verdict", "option"}
    assert words == set(VERDICTS)


def error_words() -> set[str]:
    """All words that the source counts errors under."""
    source = (ROOT / "src" / "harvestman" / "policy" / "outcomes.py").read_text(encoding="utf-8")
    return {*map(str, FailureKind), *re.findall(r'error="(\w+)"', source), "throttled", "http_5xx", "http_4xx"}


def test_every_error_word_is_explained() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"^\| `([a-zN_0-9.]+)` \|", text, re.MULTILINE))
    assert explained == error_words() | {"http_NNN", "robots_..."}


def test_the_api_page_knows_every_field() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    for name in (*Page.__struct_fields__, *(set(Tally.__struct_fields__) - {"received"})):
        assert f"`{name}`" in text, name


def test_the_benchmark_in_the_help_exists() -> None:
    names = set(re.findall(r"harvestman bench (\w+)", bench.EPILOG))
    assert names
    assert all((ROOT / "bench" / f"{name}.py").exists() for name in names)
