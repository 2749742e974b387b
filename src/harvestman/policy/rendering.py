"""What a browser may cost and what it is worth: which sites' pages are rendered, when, and when to stop trying.

A render takes seconds of CPU where a page takes two thousandths of one, so three things bound it. A site whose renders
bring nothing is given up, all but a few (`worth_it`). All renders of a worker together get a share of the time
(`Share`). And a page whose scripts and data do not come is not waited for for ever (`next_try`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harvestman.model import Instant, Learned, Seconds

PERHAPS: Final = "perhaps: "
"""How a weak reason for a browser begins (`pages.scripted`): it counts only on sites where rendering has paid."""
TRIALS: Final = 10
"""Renders of a site before it can be given up ..."""
BARREN: Final = 0.1
"""... because so small a part of them gained anything."""
AGAIN: Final = 0.05
"""The part of its pages that are rendered all the same: a site that is built anew is found out by them."""
PROVEN: Final = 4
"""Renders of a site before its weak reasons count ..."""
PAYS: Final = 0.5
"""... because at least so many of them gained something."""
MEMORY: Final = 64
"""Renders that are counted; then both counts are halved, so that what a site did last weighs more."""

MORE: Final = 1.5
"""How many times the text, or the links, of the raw page are notably more ..."""
MORE_TEXT: Final = 200
MORE_LINKS: Final = 5
"""... if they are so many more at least."""

ROUNDS: Final = 5
"""How often a page is given to the browser at most: each time its scripts may ask for something further."""
SOONEST: Final = Seconds(2.0)
LATEST: Final = Seconds(60.0)
SILENCE: Final = Seconds(15 * 60.0)
"""Time without anything new after which what is still missing will not come."""


def gained(raw_text: int, raw_links: int, text: int, links: int) -> bool:
    """Whether a rendered page has notably more text (characters) or links than the raw one."""
    return text >= max(MORE * raw_text, raw_text + MORE_TEXT) or links >= max(MORE * raw_links, raw_links + MORE_LINKS)


def learn(learned: Learned, gained: bool) -> Learned:
    """What is known of a site after one more render."""
    rendered, gains = learned.rendered + 1, learned.gained + gained
    return Learned(rendered // 2, gains // 2) if rendered >= MEMORY else Learned(rendered, gains)


def worth_it(learned: Learned, reason: str, chance: float) -> bool:
    """Whether a page is rendered for `reason` ('' is none), by what its site has taught; `chance` is in [0, 1)."""
    if not reason:
        return False
    if learned.rendered >= TRIALS and learned.gained < BARREN * learned.rendered:
        return chance < AGAIN
    if reason.startswith(PERHAPS):
        return learned.rendered >= PROVEN and learned.gained >= PAYS * learned.rendered
    return True


@dataclass(slots=True)
class Share:
    """The browser's part of a worker's time: it earns `share` seconds of CPU a second and spends what renders took.

    Renders go one at a time, each begun only while something is left, so that it is in debt by one render at most: over
    any time they take no more than share x time + burst + one render. While the crawl has nothing else to do, all of
    the time is earned. A share of 0 is for no browser at all.
    """

    share: float
    burst: Seconds
    """What can be saved up: what one render may take, so that one can begin at once."""
    at: Instant
    """When it earned last."""
    saved: Seconds = Seconds(0.0)
    """Below 0: owed."""

    def may(self, now: Instant, idle: bool = False) -> bool:
        """Whether a render may begin; `idle`: there was nothing else to do since it was asked last."""
        passed = max(0.0, now - self.at)
        self.at = max(now, self.at)
        self.saved = Seconds(min(self.burst, self.saved + passed * (1.0 if idle else self.share)))
        return self.share > 0.0 and self.saved > 0.0

    def spend(self, took: Seconds) -> None:
        """A render has ended; `took`: the CPU time of all of the browser's processes."""
        self.saved = Seconds(self.saved - took)


def next_try(round: int, waiting: int, since: Instant, now: Instant) -> Instant | None:
    """When to look again for what a page still lacks; `now` when it lacks nothing, None when it is time to give up.

    `round`: how often it was in the browser; `waiting`: what was asked of the frontier and has no answer yet; `since`:
    when the last of its resources was asked for or came. From there on it is looked for after 2 s, 4 s, 8 s ..., then
    once a minute: the pause is as long as the wait so far.
    """
    waited = now - since
    if round >= ROUNDS or (waiting and waited >= SILENCE):
        return None
    return Instant(now + min(LATEST, max(SOONEST, waited))) if waiting else now
