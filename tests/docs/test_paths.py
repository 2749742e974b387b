"""What the documentation names exists."""

from __future__ import annotations

import re
from pathlib import Path

from cases import for_each

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("decisions/*.md")]
SOURCE = ROOT / "src" / "harvestman"
_PATH = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml|svg|c|lock)|(?:[\w-]+/)+)`")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
_NAME = re.compile(r"`(\w+)\.(_?\w+)`")
MADE_BY_A_CRAWL = {"pages/", "warc/", "state/", "seen/", "logs/"}


def exists(name: str) -> bool:
    return name in MADE_BY_A_CRAWL or any(
        (base / name).exists() for base in (ROOT, SOURCE, ROOT / "docs", ROOT / "tests")
    )


@for_each("page", PAGES)
def test_every_path_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [name for name in _PATH.findall(text) if not exists(name)]
    missing += [name for name in _LINK.findall(text) if not (page.parent / name).exists()]
    assert missing == []


def test_the_architecture_names_what_is_there() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = [(owner, name) for owner, name in _NAME.findall(text) if name not in ("py", "md")]
    assert named
    for owner, name in named:
        assert re.search(rf"\b{name}\b", source), f"{owner}.{name}"


def test_every_decision_is_numbered_and_says_why() -> None:
    pages = sorted((ROOT / "decisions").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{number:04d}" for number in range(1, len(pages) + 1)]
    for page in pages:
        assert "**Choice.**" in page.read_text(encoding="utf-8"), page.name


def test_the_makefile_has_what_the_readme_and_contributing_name() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set()
    for page in ("README.md", "CONTRIBUTING.md"):
        named |= set(re.findall(r"\bmake ([a-z]+)", (ROOT / page).read_text()))
    assert {"crawl", "test", "setup", "check"} <= named <= targets
