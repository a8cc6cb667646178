#!/usr/bin/env python3
"""Writes unicode_tables.cpp: which code points from 0x80 on may stand in a Python identifier."""

import sys
import unicodedata


def ranges(holds):
    out = []
    for code in range(0x80, 0x110000):
        if 0xD800 <= code <= 0xDFFF or not holds(chr(code)):
            continue
        if out and out[-1][1] == code - 1:
            out[-1][1] = code
        else:
            out.append([code, code])
    return out


def composing():
    """Second characters of canonical compositions."""
    found = {chr(code) for code in [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]}
    for code in range(0x80, 0x110000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            pair = chr(int(parts[0], 16)) + chr(int(parts[1], 16))
            if unicodedata.normalize("NFC", pair) == chr(code):
                found.add(pair[1])
    return found


def table(name, holds):
    rows, row = [], "   "
    for first, last in ranges(holds):
        item = f" {{0x{first:x}, 0x{last:x}}},"
        if len(row) + len(item) > 100:
            rows.append(row)
            row = "   "
        row += item
    return [f"constexpr CodeRange {name}[] = {{", *rows, row, "};"]


combining = composing()
lines = [
    f"// Written by unicode_tables.py from Unicode {unicodedata.unidata_version}.",
    '#include "python/unicode_tables.h"',
    "",
    "namespace twinkle::python {",
    "namespace {",
    "",
    "// clang-format off",
    *table("start", str.isidentifier),
    *table("rest", lambda c: ("a" + c).isidentifier()),
    *table(
        "unstable",
        lambda c: ("a" + c).isidentifier()
        and (unicodedata.normalize("NFKC", c) != c or c in combining),
    ),
    "// clang-format on",
    "",
    "}  // namespace",
    "",
    "std::span<const CodeRange> identifier_start_ranges() { return start; }",
    "std::span<const CodeRange> identifier_continue_ranges() { return rest; }",
    "std::span<const CodeRange> normalization_unstable_ranges() { return unstable; }",
    "",
    "}  // namespace twinkle::python",
]
sys.stdout.write("\n".join(lines) + "\n")
