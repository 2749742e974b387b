"""Many small cases in one test: of a case that takes microseconds, pytest and its workers make three milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

Proof = Callable[..., None]


def for_each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Proof], Callable[[], None]]:
    """Written like `pytest.mark.parametrize`: every case is tried, and every one that fails is named.

    For cases that share nothing but the test: no fixture is made anew between them.
    """
    words = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    tried = list(cases)

    def over(prove: Proof) -> Callable[[], None]:
        def test() -> None:
            if not tried:
                pytest.skip("no cases: the data they are made from is not here")
            failed: list[BaseException] = []
            for case in tried:
                given = dict(zip(words, [case] if len(words) == 1 else case, strict=True))
                try:
                    prove(**given)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note("case: " + ", ".join(f"{name}={value!r}" for name, value in given.items()))
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{prove.__name__}: {len(failed)} of {len(tried)} cases", failed)

        test.__name__, test.__qualname__ = prove.__name__, prove.__qualname__
        test.__doc__, test.__module__ = prove.__doc__, prove.__module__
        return test

    return over
