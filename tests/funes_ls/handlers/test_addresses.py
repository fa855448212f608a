"""Names of `funes:` documents go there and back, whatever is in them."""

import pytest

from funes_ls.handlers.addresses import Address, address_of, address_of_command, slug, uri_of
from funes_ls.handlers.failures import Refused
from funes_ls.retrieval.answers import get_command

ADDRESSES = [
    Address(kind="turn", session="8845927a", turn="u-1"),
    Address(kind="turn", session="日本 語/#?%", turn="x&y=z"),
    Address(kind="turn", session="s", turn="t", memory="/work/other memory"),
    Address(kind="session", session="20261014_090500_af4af9"),
    Address(kind="recall", query="why?\nbecause & <b> 🎈", memory="/m"),
    Address(kind="file", path="/work/a b/ü#.py"),
    Address(kind="why", path="C:\\work\\x.py", line=41),
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_goes_there_and_back(address: Address) -> None:
    uri = uri_of(address)
    assert uri.startswith(f"funes:/{address.kind}/")
    assert uri.isascii() and " " not in uri
    assert address_of(uri) == address


def test_editors_may_code_a_query_once_more() -> None:
    uri = uri_of(Address(kind="recall", query="x" * 40))
    assert address_of(uri.replace("_", "%5F").replace("-", "%2D")).query == "x" * 40


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "file:///etc/passwd",
        "funes:",
        "funes:/",
        "funes:/turn",
        "funes:/turn/only.md",
        "funes:/unheard/of.md",
        "funes:/recall/x.md",
        "funes:/recall/x.md?!!!!",
        "funes:/recall/x.md?eyJraW5kIjoiZmlsZSJ9",
        "funes:/file/x.md?eyJraW5kIjoiZmlsZSIsImxpbmUiOiJ4In0",
        "https://example.org/turn/a/b.md",
    ],
)
def test_other_names_are_refused(uri: str) -> None:
    with pytest.raises(Refused, match="no such document"):
        address_of(uri)


@pytest.mark.parametrize("memory", ["local", "/work/other memory"])
@pytest.mark.parametrize(("session", "turn"), [("s-1", "t-1"), ("s 1", "-t"), ("s", "")])
def test_commands_lead_to_documents(memory: str, session: str, turn: str) -> None:
    found = address_of_command(get_command(session, turn, memory_name=memory))
    assert found is not None
    assert (found.session, found.turn) == (session, turn)
    assert found.memory == ("" if memory == "local" else memory)
    assert found.kind == ("turn" if turn else "session")


@pytest.mark.parametrize(
    "command", ["", "rm -rf /", "funes get", "funes get a b c", "funes get 'a"]
)
def test_other_commands_lead_nowhere(command: str) -> None:
    assert address_of_command(command) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [("why is it?", "why-is-it"), ("../../etc/passwd", "etc-passwd"), ("???", "document")],
)
def test_slugs_are_names_of_files(text: str, name: str) -> None:
    assert slug(text) == name
