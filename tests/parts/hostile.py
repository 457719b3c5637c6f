"""Bytes that break what quotes badly, as hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

# What some shell, or some layer in between, reads as more than itself.
FRAGMENTS = [
    b"'",
    b'"',
    b"\\",
    b"\\'",
    b"'\\''",
    b"$(id)",
    b"`id`",
    b"${HOME}",
    b"$HOME",
    b"$?",
    b"!!",
    b"~",
    b"~root",
    b"*",
    b"[a-z]*",
    b"{a,b}",
    b"%self",
    b"=ls",
    b"#",
    b"&",
    b"&&",
    b"|",
    b";",
    b"<",
    b">",
    b"(",
    b")",
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b"\\\n",
    b"\x01",
    b"\x7f",
    b"\x1b[31m",
    b"\x80",
    b"\xff\xfe",
    b"\xc3\x28",
    "é".encode(),
    "\U0001f680".encode(),
    "\u2028".encode(),
    "\ue000\uf600\uf8ff".encode(),  # where fish keeps characters of its own
    b"-",
    b"--",
    b"-n",
    b"A=1",
    b"NCCL_PROTO=LL \\ NCCL_ALGO=Ring",
]


def _no_nul(data: bytes) -> bytes:
    return data.replace(b"\0", b"\n")


_any = st.binary(max_size=48).map(_no_nul)

#: One argument, or one value of an environment variable: any bytes but NUL.
values = st.one_of(
    st.lists(st.sampled_from(FRAGMENTS), max_size=6).map(b"".join),
    st.tuples(_any, st.sampled_from(FRAGMENTS), _any).map(b"".join),
    _any,
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).map(str.encode),
)

argvs = st.lists(values, min_size=1, max_size=8)

#: A name of an environment variable: any bytes but NUL and =.
names = values.map(lambda value: value.replace(b"=", b"_")).filter(bool)

environments = st.dictionaries(names, values, max_size=6)


def long_values(size: int) -> st.SearchStrategy[bytes]:
    """``size`` bytes, of a few hostile ones over and over."""
    pattern = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6).map(b"".join)
    return pattern.map(lambda part: (part * (size // len(part) + 1))[:size])
