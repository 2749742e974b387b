"""What kind of page a URL leads to."""

from __future__ import annotations

from typing import get_args

from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from harvestman.policy.kinds import Kind, page_kind


@for_each(
    ("url", "kind"),
    [
        ("https://news.example.org/item?id=1", "news"),
        ("https://example.org/news/2026/11/15/something", "news"),
        ("https://example.org/NEWS/today", "news"),
        ("https://blog.example.org/about-us", "blog"),
        ("https://example.org/2026/11/a-title", "blog"),
        ("https://example.org/a/2026-11-15-a-title", "blog"),
        ("https://example.org/", "blog"),
        ("https://docs.example.org/en/latest/news.html", "docs"),
        ("https://example.org/docs/news/", "docs"),
        ("https://example.org/report.PDF", "docs"),
        ("https://example.org/wiki/News", "docs"),
        ("https://example.org/shop/item/12", "other"),
        ("https://example.org/good-news-about-blogs", "other"),
        ("https://example.org/2026/13/part", "other"),
        ("https://example.news/shop", "other"),
    ],
)
def test_by_url(url: str, kind: Kind) -> None:
    assert page_kind(url) == kind


def test_a_feed_brings_blog_pages_unless_their_names_say_more() -> None:
    assert page_kind("https://example.org/p/12", "feed") == "blog"
    assert page_kind("https://example.org/p/12", "sitemap") == "other"
    assert page_kind("https://example.org/news/12", "feed") == "news"


@given(st.text(), st.sampled_from(["a", "seed", "feed", "sitemap"]))
def test_any_path_has_a_kind(path: str, source: str) -> None:
    assert page_kind(f"http://example.org/{path}", source) in get_args(Kind)
