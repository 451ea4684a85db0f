"""Words of any sentence: a server, a person or a table may be called so, and not each such word is that name."""

from __future__ import annotations

import re

ORDINARY = frozenset(
    re.findall(
        r"\w+",
        "add after again all and another any anybody are as at be because been before behind between both but by came can "
        "case change changes claim claims client com consumer could data delete did do does domain during each earlier end "
        "entries entry every example few file files first folder for found from go goes gone group groups had has have he "
        "held hold holds host how hub if in incident into is it its last later link links log logs lost made mail make makes "
        "many may missed missing modify more most much must name named needs net never new no nobody none nor not nothing now "
        "of off old on once one only or origin other others out over own people port position positions present put reach "
        "read reads replica report root same second see seen send sends sent server servers session sessions she show shown "
        "shows since snapshot so some start state stays stranded such supplier suppliers takes test than that the their them "
        "then there these they this those time times to today told took two under unit unknown until up upto us use user "
        "users vector wait waits was way we were what when where which while who why will with without would you",
    )
)
"""Names that are words of any sentence: they are replaced where a name stands, not wherever the word is used."""
