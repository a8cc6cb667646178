"""Writes limited_api_names.cpp from CPython's list of its limited API (Misc/stable_abi.toml).

    python limited_api.py stable_abi.toml > limited_api_names.cpp
"""
import sys
import textwrap
import tomllib

NEWEST = (3, 9)


def names(path):
    with open(path, "rb") as file:
        document = tomllib.load(file)
    for kind in ("function", "data"):
        for name, entry in document[kind].items():
            added = tuple(int(part) for part in entry["added"].split("."))
            if added <= NEWEST:
                yield name


def main():
    listed = " ".join(sorted(names(sys.argv[1])))
    print("// Written by limited_api.py; do not edit.")
    print('#include "binary/limited_api.h"\n')
    print("namespace twinkle::binary {\n")
    print("// Separated by spaces, sorted.")
    print("const std::string_view limited_api_names =")
    for line in textwrap.wrap(listed, 88):
        print(f'    "{line} "')
    print("    ;\n")
    print("}  // namespace twinkle::binary")


main()
