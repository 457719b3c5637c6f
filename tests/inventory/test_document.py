"""YAML as a tree: each value knows its line, its key, and how it was written."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eagleops.inventory.document import Items, Node, Scalar, Table, read
from eagleops.inventory.problems import Wrong, nearest


@pytest.mark.parametrize(
    ("written", "kind", "text"),
    [
        ("plain", "text", "plain"),
        ("'8000'", "text", "8000"),
        ("8000", "number", "8000"),
        ("0x10", "number", "0x10"),
        ("1.5", "number", "1.5"),
        (".inf", "number", ".inf"),
        ("on", "boolean", "on"),
        ("No", "boolean", "No"),
        ("y", "text", "y"),
        ("null", "null", "null"),
        ("~", "null", "~"),
        ("", "blank", ""),
        ("''", "text", ""),
        ("2024-01-01", "text", "2024-01-01"),
        ("=", "text", "="),
        ("1e6", "text", "1e6"),
    ],
)
def test_a_scalar_keeps_its_text_and_its_kind(written, kind, text) -> None:
    """The kinds are YAML 1.1's; the text is the file's."""
    node = read(f"a: {written}")["a"]

    assert isinstance(node, Scalar)
    assert (node.kind, node.text) == (kind, text)


def test_every_value_knows_its_line_and_its_key() -> None:
    """A value's line is its key's, an item's its own."""
    tree = read("a:\n  b:\n    - x\n    - {c: y}\nd: z\n")

    assert (tree["a"].line, tree["a"].key) == (1, "a")
    items = tree["a"]["b"]
    assert isinstance(items, Items)
    assert [(item.line, item.key) for item in items] == [(3, "a.b[0]"), (4, "a.b[1]")]
    assert (items.items[1]["c"].line, items.items[1]["c"].key) == (4, "a.b[1].c")
    assert (tree["d"].line, tree["d"].key) == (5, "d")


def test_all_duplicate_keys_are_told_at_once() -> None:
    """Each with the line of the first."""
    with pytest.raises(Wrong) as caught:
        read("a: 1\na: 2\nb: {c: 1, c: 2}\n")

    assert [(p.line, p.key) for p in caught.value.problems] == [(2, "a"), (3, "b.c")]


def test_the_nearest_known_name_is_asked_after() -> None:
    """A name unlike all others gets the list of them."""
    assert nearest("pyhton", ["python", "port"]) == "Did you mean python?"
    assert nearest("zzz", ["python", "port"]) == "It is one of python, port."
    assert nearest("zzz", []) == ""


def plain(node: Node) -> object:
    """A tree as Python's own containers, scalars as their text."""
    if isinstance(node, Table):
        return {name: plain(value) for name, value in node.items()}
    if isinstance(node, Items):
        return [plain(item) for item in node]
    return node.text


words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
trees = st.recursive(
    words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(words.filter(lambda word: word != "<<"), trees, min_size=1, max_size=4))
def test_any_tree_of_texts_is_read_as_it_was_written(document) -> None:
    """Whatever YAML's own writer makes of it."""
    assert plain(read(yaml.safe_dump(document))) == document


@given(st.text(max_size=60))
def test_any_text_at_all_is_read_or_refused(text) -> None:
    """Nothing but a Wrong comes out, and its line lies in the text."""
    try:
        assert isinstance(read(text), Table)
    except Wrong as wrong:
        lines = text.count("\n") + text.count("\r") + text.count("\x85") + 2
        lines += text.count("\u2028") + text.count("\u2029")
        assert all(0 <= problem.line <= lines for problem in wrong.problems)  # noqa: PT017
