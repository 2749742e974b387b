"""From the command line, a TOML file and the last run to one Config.

Precedence: command line, then --config, then what the crawl in the data directory was last run with, then the
defaults. So a crawl is resumed by naming its directory and nothing else.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import TypeAlias

import msgspec

from harvestman.config import Config, check, load
from harvestman.errors import ConfigError, StateError
from harvestman.jobs import Terms
from harvestman.layout import Layout

Tree: TypeAlias = dict[str, object]
"""Settings as TOML has them: tables within tables."""

OPTIONS = {
    "scope": "scope",
    "contact": "contact",
    "data": "data",
    "workers": "workers",
    "dns": "dns",
    "allow": "allow",
    "allow_port": "ports",
    "delay": "politeness.delay",
    "max_pages": "limits.max_pages",
    "max_depth": "limits.max_depth",
    "patience": "limits.patience",
    "keep": "recrawl.keep",
}
"""Options of `crawl` and the settings they stand for."""
_NOT_REMEMBERED = frozenset({"seeds", "data", "scope", "workers", "partitions", "regions"})
"""Kept in crawl.json and with the jobs, or (where the data lies) known from where one looks."""
_NOT_REMEMBERED_BELOW = {"limits": frozenset({"max_pages", "max_depth"}), "recrawl": frozenset({"keep"})}
"""They are of a run, or (how deep) of a job."""


class Settings(msgspec.Struct):
    """The configuration of a run, and which of it somebody has set."""

    config: Config
    given: Tree
    terms: Terms
    """What this run's seeds ask for: what was said now, not what was said before."""


def settle(options: argparse.Namespace) -> Settings:
    """The settings of a run from the parsed options. Raises ConfigError."""
    spoken = _spoken(options)
    written = _written(options.config)
    data = str(spoken.get("data") or written.get("data") or Config().data)
    before = remembered(Path(data))
    given = merged(merged(before, written), spoken)
    given = merged(_split_so_far(Path(data), given), given)
    return Settings(check(_eased(_convert(given), given)), given, _terms(options, merged(written, spoken)))


def merged(lower: Tree, upper: Tree) -> Tree:
    """`upper` laid over `lower`, table by table."""
    result = dict(lower)
    for key, value in upper.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


def remember(data: Path, given: Tree) -> None:
    """Keep what was set for the next run in the same directory."""
    kept = {key: value for key, value in given.items() if key not in _NOT_REMEMBERED}
    for table, names in _NOT_REMEMBERED_BELOW.items():
        found = kept.get(table)
        if isinstance(found, dict):
            kept[table] = {key: value for key, value in found.items() if key not in names}
    part = data / "settings.json.part"
    part.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=2) + b"\n")
    part.replace(data / "settings.json")


def remembered(data: Path) -> Tree:
    """What the crawl in a directory was last run with; empty when there is none."""
    path = data / "settings.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Tree)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise StateError(f"{path} cannot be read: {error}; delete it to go on with the defaults") from None


def remembered_config(data: Path) -> Config:
    """The settings of the last run in a directory, for those who look at it."""
    return _convert(merged(remembered(data), {"data": str(data)}))


def spelt(tree: Tree, prefix: str = "") -> list[str]:
    """Settings as people write them: ['politeness.delay = 0.5', ...]."""
    lines: list[str] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            lines += spelt(value, f"{prefix}{key}.")
        else:
            lines.append(f"{prefix}{key} = {msgspec.json.encode(value).decode()}")
    return lines


def _spoken(options: argparse.Namespace) -> Tree:
    tree: Tree = {}
    for option, setting in OPTIONS.items():
        value = getattr(options, option)
        if value is not None:
            table, _, key = setting.rpartition(".")
            tree = merged(tree, {table: {key: value}} if table else {key: value})
    return tree


def _terms(options: argparse.Namespace, said: Tree) -> Terms:
    named, limits = _convert(said), said.get("limits")
    depth = named.limits.max_depth if isinstance(limits, dict) and "max_depth" in limits else None
    scope = named.scope if "scope" in said else None
    return Terms(options.name, options.priority, depth, scope, options.ttl)


def _written(path: Path | None) -> Tree:
    if path is None:
        return {}
    load(path)  # says what is wrong with it
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _convert(tree: Tree) -> Config:
    try:
        return msgspec.convert(tree, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(str(error)) from None


def _eased(config: Config, given: Tree) -> Config:
    """A delay set below the one per address takes that along, unless it was set as well."""
    politeness = config.politeness
    table = given.get("politeness")
    if isinstance(table, dict) and "ip_delay" not in table and politeness.delay < politeness.ip_delay:
        politeness = msgspec.structs.replace(politeness, ip_delay=politeness.delay)
    return msgspec.structs.replace(config, politeness=politeness)


def _split_so_far(data: Path, given: Tree) -> Tree:
    """The regions of the crawl in a directory, or its workers where there are none. Workers of regions are theirs."""
    layout = Layout(data)
    if not layout.exists():
        return {}
    facts = layout.read()
    if "regions" not in given and facts.regions:
        return {"regions": msgspec.to_builtins(facts.regions)}
    return {} if given.get("regions") else {"workers": facts.workers}
