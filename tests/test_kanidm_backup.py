"""Backups of Kanidm read many items at once: always what the exact reader gives, and ordinary items are read that way."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kanidm_samples import START, Entry, backup, entry_id, origin

from workbench.intake import files
from workbench.intake.files import pieces
from workbench.model import ITEMS, Parsed, Piece, Source
from workbench.systems.kanidm.formats import backup as reader
from workbench.systems.kanidm.formats.backup_fast import OPENS, ordinary_items

FOLDER = Path(__file__).parent / "samples" / "kanidm"
CID = {"t": {"secs": START, "nanos": 1}, "s": origin("a")}


def compact(document: Any) -> bytes:
    """As the server writes it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def plain(parsed: Parsed) -> dict[str, Any]:
    """All that a reader gives; columns are texts, whatever they are made of."""
    made = {}
    for name, one in parsed.tables.items():
        one.validate(full=True)
        texts = [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in one.schema]
        made[name] = one.cast(pa.schema(texts)).to_pydict()
    return {"rows": parsed.rows, "rejects": parsed.rejects, "facts": parsed.facts, "tables": made}


def check(data: bytes, offset: int = 0, ended: bool = True) -> Parsed:
    """Both readers give the same."""
    piece = Piece(Source("A.json", "now", "A"), data, offset, ended)
    fast = reader.read(piece)
    assert plain(fast) == plain(reader.read_exactly(piece))
    return fast


def left_out(data: bytes) -> list[int]:
    """The numbers of the items that are read by themselves."""
    borders, _ = reader._borders(data, reader._start(data)[1], True)
    found = ordinary_items(data, borders)
    return found.left if found else list(range(len(borders) - 1))


def ordinary() -> dict[str, Any]:
    """Live entries, one of them in the recycle bin, and tombstones."""
    entries = {n: Entry(changes={"mail": (n, "b"), "name": (n, "c")}) for n in range(5)}
    made = backup("a", 9, [(1, "a"), (2, "b")], {**entries, 5: Entry(gone=(3, "b")), 6: Entry(), 7: Entry()})
    made["entries"][6]["ent"]["V3"]["attrs"]["class"]["I8"].append("recycled")
    del made["entries"][7]["ent"]["V3"]["attrs"]["name"]
    return made


def test_ordinary_items_are_read_many_at_once() -> None:
    data = compact(ordinary())
    assert left_out(data) == []
    parsed = check(data)
    assert (parsed.rows, parsed.facts["live"], parsed.facts["tombstones"]) == (8, 7, 1)
    assert parsed.tables["entries"]["class"].to_pylist()[5:] == ["tombstone", "recycled", None]
    assert parsed.tables["entries"]["target"].to_pylist()[4:6] == ["entry0004", None]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("backup*")), ids=lambda path: path.name[:9])
def test_the_samples_are_ordinary(path: Path) -> None:
    data = gzip.decompress(path.read_bytes())
    assert check(data).rejects == [] and left_out(data) == []


def _edit(change: Callable[[dict[str, Any]], None]) -> bytes:
    document = ordinary()
    change(document["entries"][2]["ent"]["V3"])
    return compact(document)


def _attrs(**more: Any) -> bytes:
    return _edit(lambda body: body["attrs"].update(more))


def _text(old: bytes, new: bytes) -> bytes:
    """The text of the third item with something else in it."""
    head, *items = compact(ordinary()).split(OPENS)
    assert old in items[1]
    return OPENS.join([head, items[0], items[1].replace(old, new, 1), *items[2:]])


UUID = entry_id(2).encode()
ODD = {
    "escaped": _attrs(description={"U8": ['say "hello"']}),
    "two names": _attrs(name={"N8": ["one", "two"]}),
    "secret name": _attrs(name={"RU": ["canary"], "N8": ["one"]}),
    "name of another kind": _attrs(name={"U8": ["one"]}),
    "empty name": _attrs(name={"N8": [""]}, spn={"U8": ["other"]}),
    "name of two kinds": _attrs(name={"N8": ["one"], "RU": ["canary"]}),
    "no name but an spn": _edit(lambda body: body["attrs"].update(spn={"U8": [body["attrs"].pop("name")["N8"][0]]})),
    "name further down": _edit(lambda body: body["attrs"].update(x={"name": body["attrs"].pop("name")})),
    "uuid further down": _edit(lambda body: body["attrs"].update(x={"uuid": body["attrs"].pop("uuid")})),
    "capital uuid": _text(UUID, UUID.upper()),
    "capital origin": _text(origin("b").encode(), origin("b").upper().encode()),
    "no uuid": _edit(lambda body: body["attrs"].pop("uuid")),
    "uuid of a number": _attrs(uuid={"UU": [5]}),
    "class of a null": _attrs(**{"class": {"I8": ["object", None]}}),
    "conflict": _attrs(**{"class": {"I8": ["conflict"]}, "source_uuid": {"UU": [entry_id(3)]}}),
    "conflict without source": _attrs(**{"class": {"I8": ["conflict"]}}),
    "no class value": _attrs(**{"class": {"I8": []}}),
    "no changes": _edit(lambda body: body["changestate"]["V1Live"].update(changes={})),
    "no change state": _edit(lambda body: body.pop("changestate")),
    "later change state": _edit(lambda body: body.update(changestate=body.pop("changestate"))),
    "attributes first": _edit(lambda body: body.update(x=1, attrs=body.pop("attrs"))),
    "another key behind": _edit(lambda body: body.update(more={"attrs": 1})),
    "deep": _attrs(x=json.loads("[" * 200 + "]" * 200)),
    "too deep": _text(b'"attrs":{', b'"attrs":{"x":' + b"[" * 5000 + b"]" * 5000 + b","),
    "name twice": _text(b'"attrs":{', b'"attrs":{"name":{"N8":["first"]},'),
    "attributes twice": _text(b'"attrs":{', b'"attrs":{"uuid":{"UU":["%s"]}},"attrs":{' % UUID),
    "attributes twice, a blank between": _text(b'"attrs":{', b'"attrs" :{"uuid":{"UU":["%s"]}},"attrs":{' % UUID),
    "a change twice": _text(b'"mail":{"t"', b'"name":{"t"'),
    "version twice": _text(b'"V3":', b'"V3":{},"V3":'),
    "two versions": _text(b'"V3":', b'"V2":{},"V3":'),
    "another version": _text(b'"V3":', b'"V2":'),
    "no version": _text(b'"V3":', b'"V9":'),
    "second version behind": compact(ordinary()).replace(b'}}}},{"ent"', b'}}},"V1":{}},{"ent"', 1),
    "ent behind": compact(ordinary()).replace(b'}}}},{"ent"', b'}}},"ent":{}},{"ent"', 1),
    "two documents": compact(ordinary()).replace(b'}}}},{"ent"', b'}}}}{},{"ent"', 1),
    "too early": _text(b'"secs":1', b'"secs":'),
    "too late": _text(b'"secs":1', b'"secs":9999999999'),
    "beyond 2262": _text(b'"secs":1767225600', b'"secs":9223372036'),
    "just before 2262": _text(b'"secs":1767225600', b'"secs":9223372035'),
    "a second too many nanos": _text(b'"nanos":0', b'"nanos":1000000000'),
    "nanos of nine digits": _text(b'"nanos":0', b'"nanos":999999999'),
    "negative nanos": _text(b'"nanos":0', b'"nanos":-0'),
    "broken nanos": _text(b'"nanos":0', b'"nanos":0.0'),
    "leading zero": _text(b'"nanos":0', b'"nanos":00'),
    "exponent": _text(b'"nanos":0', b'"nanos":1e3'),
    "NaN": _text(b'"attrs":{', b'"attrs":{"x":NaN,'),
    "infinite": _text(b'"attrs":{', b'"attrs":{"x":-Infinity,'),
    "huge": _text(b'"attrs":{', b'"attrs":{"x":1e999,'),
    "endless": _text(b'"attrs":{', b'"attrs":{"x":' + b"7" * 5000 + b","),
    "endless in a text": _text(b'"attrs":{', b'"attrs":{"x":"' + b"7" * 5000 + b'",'),
    "no UTF-8": _text(b"entry0", b"entry\xff"),
    "a surrogate": _text(b"entry0", b"entry\xed\xa0\x80"),
    "other letters": _text(b"entry0", "entr\u00fc-\U0001f600".encode()),
    "a control character": _text(b"entry0", b"entry\x01"),
    "a line end": _text(b"entry0", b"entry\n"),
    "a zero byte": _text(b"entry0", b"entry\0"),
    "a line end between": _text(b'"attrs":{', b'"attrs":{\n'),
    "blanks between": _text(b'"attrs":{', b'"attrs": { '),
    "byte order mark": _text(b'"attrs":{', b'\xef\xbb\xbf"attrs":{'),
    "comma at the end": _text(b'"]}}}}', b'"]},}}}'),
    "bracket missing": _text(b'"]}}}}', b'"]}}}'),
    "a name of a change with blanks": _text(b'"mail"', b'"the mail"'),
    "an empty name of a change": _text(b'"mail"', b'""'),
    "a change called as what it is in": _text(b'"mail"', b'"attrs"'),
    "a change called as a version": _text(b'"mail"', b'"V3"'),
    "an entry in an entry": _attrs(x=[1, {"ent": {"V3": {}}}]),
    "a text like a border": _attrs(x=',{"ent":{'),
    "other borders": compact(ordinary()).replace(OPENS, b', { "ent" : {'),
    "one other border": compact(ordinary()).replace(OPENS, b', {"ent":{', 3),
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
def test_unusual_items_are_read_by_themselves(data: bytes) -> None:
    parsed = check(data)
    assert b"canary" not in repr(plain(parsed)).encode()


PIECES = [
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b" ", b"\\", b"\n", b"0", b"9", b"-", b"null", b"1.5", b"\xff", b"\0"),
    *(b'"attrs":{', b'"attrs"', b'"name"', b'"uuid"', b'"class"', b'"changes":{', b'"ent":{', b'{"ent":{', OPENS),
    *(
        b'"V3":{',
        b'"V2":{',
        b'"V1Live":{',
        b'"V1Tombstone":{',
        b'"spn":{"U8":["x"]},',
        b'"name":{"N8":["x"]},',
        b"}}}}",
    ),
    *(
        b'"uuid":{"UU":["%s"]},' % UUID,
        b'"class":{"I8":["recycled"]},',
        b'"x":1,',
        b'"x" :1,',
        b'"attrs" :',
        b'"]}',
        b"e",
    ),
    *(
        compact(CID),
        b'"mail":%s,' % compact(CID),
        b'"secs":',
        b'"nanos":',
        b'"t":',
        b'"s":',
        b"{}",
        b"[]",
        b"]}",
        b"}]}",
    ),
]
BASE = compact(ordinary())
cids = st.tuples(st.integers(0, 9), st.sampled_from("abc"))
names = st.one_of(st.sampled_from(["mail", "name", "attrs", "V1", "ent", "x y", "\u00fc", 'q"']), st.text(max_size=3))
shown = st.builds(Entry, at=cids, changes=st.dictionaries(names, cids, max_size=4), gone=st.one_of(st.none(), cids))
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.sampled_from(["conflict", UUID.decode()])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["N8", "U8", "UU", "I8", "RU", "name", "uuid", "attrs", "x"]), inner, max_size=3
        ),
    ),
    max_leaves=6,
)
more = st.dictionaries(
    st.sampled_from(["name", "uuid", "class", "spn", "source_uuid", "x", "attrs"]), values, max_size=3
)


@settings(max_examples=250, deadline=None)
@given(st.lists(st.tuples(shown, more, st.sampled_from(["V1", "V3", "V3", "V3"])), max_size=6), st.booleans())
def test_whatever_a_backup_holds_both_ways_give_the_same(made: list[Any], blanks: bool) -> None:
    document = backup("a", 9, [(1, "a")], {number: one for number, (one, _, _) in enumerate(made)})
    for item, (_, attributes, version) in zip(document["entries"], made, strict=True):
        body = item["ent"].pop("V3")
        body["attrs"] |= attributes
        item["ent"][version] = body
    check(json.dumps(document).encode() if blanks else compact(document))


mended = st.lists(
    st.tuples(st.integers(0, len(BASE)), st.integers(0, 40), st.one_of(st.sampled_from(PIECES), st.binary(max_size=3))),
    min_size=1,
    max_size=3,
)


def _damaged(edits: list[tuple[int, int, bytes]]) -> bytes:
    data = BASE
    for at, size, new in edits:
        data = data[:at] + new + data[at + size :]
    return data


@settings(max_examples=400, deadline=None)
@given(mended)
def test_whatever_is_damaged_both_ways_give_the_same(edits: list[tuple[int, int, bytes]]) -> None:
    check(_damaged(edits))


def swapped(draw: random.Random) -> bytes:
    """The ordinary backup, with pieces of it put or exchanged where such pieces begin or end: mostly JSON still."""
    data = BASE
    for _ in range(draw.choice([1, 1, 2, 3])):
        borders = [at for at, one in enumerate(data) if one in b'{}[],:"']
        at = draw.choice(borders) + draw.randrange(2)
        end = at + draw.choice([0, 0, 0, 1, draw.choice(borders) - at])
        data = (
            data[:at]
            + draw.choice([draw.choice(PIECES), data[draw.choice(borders) : draw.choice(borders)]])
            + data[max(at, end) :]
        )
    return data


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 60))])
def test_whatever_is_swapped_both_ways_give_the_same(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(150):
        data = swapped(draw)
        parsed = check(data)
        if "live" in parsed.facts:  # what stands before the entries is whole
            at = reader._start(data)[1]
            (_, *inner, end), _ = reader._borders(data, at, True)
            assert inner == [one.start() for one in reader._ITEM.finditer(data, at + 1, end)]


def test_pieces_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "A.json"
    document = ordinary()
    document["entries"] = document["entries"] * 20
    document["entries"][33]["ent"]["V3"]["attrs"]["x"] = "\\"
    path.write_bytes(compact(document))
    monkeypatch.setattr(files, "PIECE", 4000)
    found = list(pieces(path, Source("A.json", "now", "A"), ITEMS, opens=OPENS))
    assert len(found) > 5
    for piece in found:
        assert isinstance(piece, Piece)
        check(piece.data, piece.offset, piece.ended)
        check(piece.data, piece.offset, not piece.ended)


def test_many_items_of_which_some_are_no_json_are_read_in_parts() -> None:
    document = ordinary()
    document["entries"] = document["entries"] * 40
    head, *items = compact(document).split(OPENS)
    for number in (7, 150):
        items[number] = items[number].replace(b"}}}}", b"}},}}")
    data = OPENS.join([head, *items])
    assert len(check(data).rejects) == 2
    assert 2 <= len(left_out(data)) < 100
