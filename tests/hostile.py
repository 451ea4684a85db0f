"""Texts that want to be more than text: what a log, a name or an entry may hold that somebody else wrote."""

from __future__ import annotations

import gzip
from pathlib import Path

from workbench.safety import to_yaml

MARKUP = [
    "<script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<img/src=x/onerror=window.hit=1//",
    "<svg onload=window.hit=1>",
    "<svg><script>window.hit=1</script></svg>",
    "<svg><animate onbegin=window.hit=1 attributeName=x dur=1s>",
    "<svg><foreignObject><iframe src=javascript:window.hit=1></iframe></foreignObject></svg>",
    "<iframe src=javascript:window.hit=1></iframe>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<a href=javascript:window.hit=1>click</a>",
    "<a href='data:text/html,<script>window.hit=1</script>'>x</a>",
    "<object data=javascript:window.hit=1>",
    "<embed src=javascript:window.hit=1>",
    "<body onload=window.hit=1>",
    "<details open ontoggle=window.hit=1>",
    "<input autofocus onfocus=window.hit=1>",
    "<select autofocus onfocus=window.hit=1>",
    "<textarea autofocus onfocus=window.hit=1>",
    "<video><source onerror=window.hit=1></video>",
    "<audio src=x onerror=window.hit=1>",
    "<marquee onstart=window.hit=1>",
    "<form action=javascript:window.hit=1><button>x</button></form>",
    "<math><mtext><script>window.hit=1</script></mtext></math>",
    "<style>*{background:url('javascript:window.hit=1')}</style>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example/>",
    "<template><script>window.hit=1</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=window.hit=1>'>",
    '"><img src=x onerror=window.hit=1>',
    "'><img src=x onerror=window.hit=1>",
    "' onmouseover='window.hit=1",
    '" onfocus="window.hit=1" autofocus="',
    "`${window.hit=1}`",
    "{{constructor.constructor('window.hit=1')()}}",
    "${window.hit=1}",
    "javascript:window.hit=1",
    "<b>bold</b><i>and</i><u>more</u>",
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
    "&#60;img src=x onerror=window.hit=1&#62;",
    "\\u003cscript\\u003ewindow.hit=1\\u003c/script\\u003e",
    "<!--<script>window.hit=1</script>-->",
    "<![CDATA[<script>window.hit=1</script>]]>",
    "<?xml version='1.0'?><x/>",
    "[click](javascript:window.hit=1)",
    "![x](//evil.example/x.png)",
    "$$\\href{javascript:window.hit=1}{x}$$",
    "$\\require{html}\\style{background:red}{x}$",
    "| a | b |\n|---|---|\n| <script>window.hit=1</script> | x |",
]
FORMULAS = [
    '=HYPERLINK("http://evil.example","x")',
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1+1)",
    "\t=1+1",
]
LETTERS = [
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "null\x00byte\x01\x02\x7f\x9b31m",
    "bell\x07back\x08\x08\x08space",
    "\u202eright to left\u202c",
    "\u2066isolated\u2069 \u200f\u200e\u061c",
    "\u2028lines\u2029and\nmore\r\nlines",
    "\ufeffzero\u200bwidth\u2060joiner\u200d",
    "e\u0301\u0301\u0301\u0301\u0301\u0301" * 20,
    "\U0001f4a3\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "שלום مرحبا عالم",
    "\ud800half".encode("utf-8", "backslashreplace").decode(),
    "x" * 20_000,
    "<" * 5_000,
    "wide " * 2_000,
    "../../../etc/passwd",
    "file:///etc/passwd",
    "constructor",
    "__proto__",
    "toString",
    "",
    " ",
    "0",
    "NaN",
]
PAYLOADS = [*MARKUP, *FORMULAS, *LETTERS]


IN_NAMES = [
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "<a href=javascript:window.hit=1>x</a>",
    "<b>bold</b>$x^2$**b**",
]
"""Without commas, colons and line ends, so that names of entries and of servers can hold them."""


def poisoned_incident(source: Path, folder: Path) -> list[Path]:
    """A recorded incident whose servers, links and entries have names that want to be markup: its snapshots."""
    made = []
    for snapshot in sorted(path for path in source.iterdir() if path.is_dir()):
        into = folder / snapshot.name
        into.mkdir(parents=True)
        for file in sorted(snapshot.iterdir()):
            data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            for number in range(20):
                data = data.replace(b"k1u%05d" % number, IN_NAMES[number % len(IN_NAMES)].encode() + b"%d" % number)
            data = data.replace(b"s1-to-s3", IN_NAMES[0].encode())
            (into / file.name.removesuffix(".gz")).write_bytes(data)
        servers = [{"name": f"{IN_NAMES[at - 1]}s{at + 1}", "files": [f"s{at + 1}.*"]} for at in range(3)]
        (into / "case.yaml").write_text(to_yaml({"servers": servers}), encoding="utf-8")
        made.append(into)
    return made
