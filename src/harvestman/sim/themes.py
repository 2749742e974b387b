"""The boilerplate of pages: style, script, header, aside, foot, and some broken markup."""

from __future__ import annotations

import random

COUNT = 12
_COLOURS = ("#1b1f3b", "#7a1f1f", "#0b5d1e", "#3d2b56", "#00405d", "#5c4300")
_PARTS = (
    "header",
    "masthead",
    "main-nav",
    "item",
    "lead",
    "text",
    "pull-quote",
    "more",
    "aside",
    "elsewhere",
    "foot",
    "badge",
)
_RULES = (
    "margin:{0}px {1}px",
    "padding:{0}px {1}px",
    "line-height:1.{0}",
    "color:{2}",
    "border:1px solid {2}",
    "display:flex",
    "font-size:{0}px",
    "max-width:{1}0px",
    "background:linear-gradient({2},#fff {1}%)",
    "border-radius:{0}px",
)

MIDDLE = b"""</article>
</main>
<aside class="aside" role="complementary">
<p class="note">Written by the people of the simulated web. Nothing here is true, and all of it is repeatable.</p>
<h2>More from this site</h2>
"""

FOOT = b"""<footer class="foot">
<p>All rights imagined. Reading this costs nothing; asking for it once a second is quite enough.</p>
<p><a href="/">Back to the front page</a></p>
</footer>
</body>
</html>
"""

JUNK = b"""<div class=outer <p><b><i>never closed <font color=red size=+1>
<table><tr><td>one<td>two<tr>stray text outside of cells <a name=here>anchor without a target
</p></b></div></div></span></article><p/><br></br>
<a href = / title='a > b & c'>home, unquoted</A><IMG SRC="/pixel.gif" alt="5 > 4" alt=twice>
&nbsp &bogus; &#x1F577 &#0; &amp <!-- a -- comment -- with > dashes ---> <!bogus> <?php echo "x" ?>
<ul><li>one<li>two<li>three<p>para<p>para</ul></table>
"""


def _style(rng: random.Random) -> str:
    lines = []
    for number in range(42):
        rules = ";".join(rng.sample(_RULES, 4)).format(rng.randint(1, 24), rng.randint(2, 64), rng.choice(_COLOURS))
        lines.append(f".{rng.choice(_PARTS)}-{number},.{rng.choice(_PARTS)}{{{rules}}}")
    return "\n".join(lines)


def _script(rng: random.Random) -> str:
    calls = "\n".join(
        f'  settings.push({{"slot": "{rng.choice(_PARTS)}-{rng.randint(1, 999)}", "wait": {rng.randint(10, 5000)}}});'
        for _ in range(18)
    )
    return f"(function () {{\n  var settings = [];\n{calls}\n  window.simulated = settings;\n}})();"


def theme(number: int) -> bytes:
    """One of the looks of a site: what stands between the page's own head and its navigation."""
    rng = random.Random(f"theme/{number}")
    return f"""<meta name="viewport" content="width=device-width, initial-scale=1">
<meta property="og:type" content="article">
<style>
{_style(rng)}
</style>
<script>
{_script(rng)}
</script>
</head>
<body class="theme-{number}">
<header class="masthead">
<p class="badge">Theme {number} of the simulated web</p>
<form action="/" method="get" role="search"><input type="search" name="q" ><button>Go</button></form>
</header>
""".encode()
