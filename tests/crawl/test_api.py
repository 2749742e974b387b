"""The Python API, and the example in the README, run as it stands there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from simweb import sim_web

from harvestman.api import Crawl
from harvestman.config import Config
from harvestman.errors import UsageError
from harvestman.model import Page

README = Path(__file__).parents[2] / "README.md"


def test_pages_come_typed_and_hooks_are_asked(tmp_path: Path) -> None:
    seen: list[str] = []

    async def collect(config: Config) -> list[Page]:
        crawl = Crawl(config, accept=lambda url: "?" not in url, see=lambda page: seen.append(page.url))
        return [page async for page in crawl]

    with sim_web(tmp_path, hosts=6, pages=4, profile="clean") as web:
        pages = asyncio.run(collect(web.config(tmp_path / "data", delay=0.1)))
        again = asyncio.run(collect(web.config(tmp_path / "data", delay=0.1)))
    assert len(pages) > 3
    assert [page.url for page in pages] == seen
    assert not [page.url for page in pages if "?" in page.url]
    assert all(page.text and page.title and page.links and page.language for page in pages)
    assert again == []


@pytest.mark.slow
def test_leaving_the_loop_early_keeps_the_rest_for_later(tmp_path: Path) -> None:
    async def some(config: Config, most: int) -> int:
        count = 0
        pages = aiter(Crawl(config))
        async for _ in pages:
            count += 1
            if count == most:
                break
        await pages.aclose()  # type: ignore[attr-defined]  # an async generator
        return count

    with sim_web(tmp_path, hosts=5, pages=4, profile="clean") as web:
        config = web.config(tmp_path / "data", delay=0.1)
        first = asyncio.run(some(config, 3))
        rest = asyncio.run(some(config, 1000))
    assert first == 3
    assert first + rest >= 17, "pages handed over but not looked at are the only ones that may be missed"


def test_a_crawl_of_the_world_needs_a_contact(tmp_path: Path) -> None:
    async def start() -> None:
        async for _ in Crawl(Config(seeds=("https://example.org/",), data=str(tmp_path / "data"))):
            pass

    with pytest.raises(UsageError, match="contact"):
        asyncio.run(start())


@pytest.mark.slow
def test_the_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    assert len(code.strip().splitlines()) <= 12
    monkeypatch.chdir(tmp_path)
    with sim_web(tmp_path, hosts=3, pages=4, profile="clean") as web:
        code = code.replace("https://example.org/", web.seeds[0])
        config = f'Config(dns="{web.dns}", allow=("127.0.0.0/8",), '
        exec(compile(code.replace("Config(", config, 1), "README.md", "exec"), {"__name__": "__main__"})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 4
    assert web.seeds[0] in lines[0]
