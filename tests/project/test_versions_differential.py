"""Releases and specifiers against Python's own `packaging`."""

import random

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

MALFORMED = ["", "v", "1.", ".1", "1..2", "1a.b", "1.0+", "1.0+a..b", "1.0-", "1!", "!1", "1!2!3", "1.0 0", "x1",
             "1.0post1dev", "1.0dev1a1", "latest", "1_0", "1.0a1b1", "1.0+é", "2024.01", "v1.0.0-alpha.1", "1.0-1-1"]


def number(rng):
    return rng.choice(["0", "1", "2", "3", "10", "00", "01"])


def release(rng):
    text = rng.choice(["", "", "", "v", "V"]) + rng.choice(["", "", "", "", "0!", "1!"])
    text += ".".join(number(rng) for _ in range(rng.choice([1, 2, 2, 3, 3, 4])))
    if rng.random() < 0.3:
        text += rng.choice(["", ".", "-", "_"]) + rng.choice(["a", "b", "rc", "c", "alpha", "beta", "pre", "preview", "RC"])
        text += rng.choice(["", number(rng), "." + number(rng), "-" + number(rng)])
    if rng.random() < 0.25:
        text += rng.choice(["-" + number(rng), ".post" + number(rng), "post", "-r" + number(rng), ".rev" + number(rng)])
    if rng.random() < 0.2:
        text += rng.choice(["", ".", "-", "_"]) + "dev" + rng.choice(["", number(rng)])
    if rng.random() < 0.15:
        text += "+" + rng.choice(["cu130", "1", "abc.1", "ABC-2", "1.0", "a_b", "01"])
    return text


def python_version(text):
    try:
        return Version(text)
    except InvalidVersion:
        return None


def specifier(rng):
    parts = []
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
        operator = rng.choice(["==", "!=", ">=", "<=", "<", ">", "~=", "==", ">=", "<", "==="])
        text = release(rng)
        if operator in ("==", "!=") and rng.random() < 0.4:
            text = text.split("+")[0] + ".*"
        parts.append(rng.choice(["", " "]) + operator + rng.choice(["", " "]) + text)
    return ",".join(parts)


def test_releases_are_read_and_ordered_as_in_python(ask):
    rng = random.Random(1)
    for _ in range(20):
        texts = [release(rng) for _ in range(200)] + MALFORMED
        [answer] = ask([{"do": "order", "releases": texts}])
        assert answer["valid"] == [python_version(text) is not None for text in texts]
        valid = [text for text in texts if python_version(text) is not None]
        assert [Version(text) for text in answer["sorted"]] == sorted(map(Version, valid))


def test_specifiers_admit_what_they_admit_in_python(ask):
    rng = random.Random(2)
    releases = list({release(rng) for _ in range(400)})
    releases = [text for text in releases if python_version(text) is not None][:250]
    texts = [specifier(rng) for _ in range(1500)]
    answers = ask([{"do": "admit", "specifier": text, "releases": releases} for text in texts])
    compared = 0
    for text, answer in zip(texts, answers):
        try:
            python = SpecifierSet(text)
        except InvalidSpecifier:
            assert not answer["valid"], text
            continue
        assert answer["valid"], text
        assert answer["admitted"] == list(python.filter(releases, prereleases=True)), text
        chosen = list(python.filter(releases))
        newest = max(map(Version, chosen), default=None)
        assert (answer["newest"] and Version(answer["newest"])) == newest, (text, answer["newest"], newest)
        compared += 1
    assert compared > 900


def test_a_bare_release_is_that_tag(ask):
    tags = ["v0.1.0", "0.2.0", "v0.1.0+cu130", "v0.3.0rc1", "nightly", "v0.3"]
    asked = {"0.1.0": "v0.1.0", "0.2.0": "0.2.0", "0.3.0rc1": "v0.3.0rc1", "0.3.0": "v0.3", "0.4": None, ">=0.1,<0.3": "0.2.0",
             "~=0.1": "v0.3", "<0.1": None}
    valid = [tag for tag in tags if tag != "nightly"]
    answers = ask([{"do": "admit", "specifier": text, "releases": valid} for text in asked])
    assert [answer["newest"] for answer in answers] == list(asked.values())
