"""Every step that the worker announces has words on the command line."""

import pathlib
import re

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"


def test_every_stage_has_words():
    sent = set()
    for folder in ("worker", "runtime"):
        for file in (SOURCES / folder).rglob("*.cpp"):
            sent |= set(re.findall(r'\b(?:stage|observe|observer)\(\s*"([a-z-]+)"', file.read_text()))
    conversation = (SOURCES / "cli" / "worker_conversation.cpp").read_text()
    table = conversation[conversation.index("std::string stage_words"):]
    known = set(re.findall(r'\{"([a-z-]+)", "[^"]+"\}', table[: table.index("};")]))
    assert len(sent) > 10 and sent <= known, f"without words: {sent - known}"
    assert known - sent == {"start"}, "words for what nobody sends"
