"""The page of --report: well-formed, without scripts or anything from outside, whatever names a model has."""

import html.parser
import json

import pytest
from test_bench import HOSTILE
from test_report_groups import SPEED, large, report_of, site

VOID = {"meta", "rect", "line"}
TAGS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "span", "details", "summary", "svg", "rect",
        "line", "dl", "dt", "dd", "table", "tr", "th", "td", "ul", "li"}


class Page(html.parser.HTMLParser):
    """Fails where a tag is not closed, or none of ours."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.looks = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS
        for name, value in attributes:
            assert not name.startswith("on") and name not in ("href", "src", "style"), (name, value)
            if name == "class":
                self.looks += value.split()
            assert "nan" not in (value or "").split() and "inf" not in (value or "").split()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            assert "url(" not in data and "@import" not in data and "prefers-color-scheme:dark" in data
        else:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


@pytest.fixture(autouse=True)
def measuring(twinkle):
    twinkle.measures = True


@pytest.fixture
def page(fake_worker):
    def make(sites, name="page.html", **more):
        report = report_of(sites, **more)
        twinkle = fake_worker("event({'result': {**json.loads(open('report.in').read())}})\n")
        (twinkle.folder / "report.in").write_text(json.dumps(report))
        done = twinkle("kernelize", "model.pt", "--map", "empty.map.json", "--inputs", "inputs.pt", "--dry-run",
                       "--report", name)
        assert done.code == 0 and f"wrote {name}" in done.err, done.err
        text = (twinkle.folder / name).read_text()
        assert text.startswith("<!DOCTYPE html>") and "default-src 'none'" in text
        return Page(text)
    return make


def test_everything_is_on_it(page):
    sites = large(8)
    sites[0] = site("model.layers.0.mlp", sites[0]["of"], "reverted", because="its error is 3.0e-3", error=3e-3)
    sites[5] = site("model.layers.1.mlp", sites[5]["of"], "kept", "", "no kernel fits", None)
    modules = [{"path": f"model.layers.{i}.attention", "class": "my.Attention"} for i in range(8)]
    shown = page(sites, modules=modules, warnings=["mind the gap"],
                 whole={"max_error": 1e-7, "allowed_error": 2e-7, **SPEED})
    for text in ("39 of 41 sites replaced", "1.31x", "317 ms → 242 ms", "6 × LlamaMLP", "its error is 3.0e-3",
                 "no kernel fits", "put back", "mind the gap", "attention", "2 … 7", "verified on the given inputs"):
        assert text in shown.text, text
    assert {"replaced", "kept", "reverted", "none", "part"} <= set(shown.looks)


def test_layers_that_are_alike_are_one(page):
    shown = page(large(32))
    assert shown.text.count("0 … 31") == 1 and shown.text.count("· 32 alike") == 1


def test_hostile_names(page):
    sites = [site(name, of=name, because=name, kernel=name, status=status)
             for name in HOSTILE for status in ("replaced", "kept", "reverted")]
    shown = page(sites, modules=[{"path": name, "class": name} for name in HOSTILE], warnings=HOSTILE, mode=HOSTILE[0],
                 device=HOSTILE[2], shapes=[{"size": "given", "inputs": HOSTILE[0]}])
    assert HOSTILE[0] in shown.text and "\\x1B[31mred\\x07" in shown.text and "\x1b" not in shown.text


def test_numbers_out_of_all_reason(page):
    sites = [site(f"s{i}", error=error, times=(times, times)) for i, (error, times) in
             enumerate([(0, 1e-9), (1e300, 1e300), (1e-300, 1), (5e-324, 3)])]
    page([*sites, {**site("zero"), "allowed_error": 0, "max_error": 0}])


def test_a_large_model(page):
    shown = page([site(f"a{i}.b.c") for i in range(5000)])
    assert "more are not shown" in shown.text and "5000 × LlamaRMSNorm" in shown.text
    page([site(".".join("ab" * 500))])


def test_json_stays_the_worker_s(fake_worker):
    twinkle = fake_worker("event({'result': {'request': request}})")
    call = ["kernelize", "model.pt", "--map", "empty.map.json", "--json", "--report"]
    request = twinkle(*call, "r.json").json["request"]
    assert request["report"].endswith("r.json") and not request["modules"]
    request = twinkle(*call, "r.html").json["request"]
    assert request["report"] is None and request["modules"] and not request["measure"]
    assert twinkle(*call, "r.html", "--inputs", "inputs.pt").json["request"]["measure"]
    assert not twinkle(*call, "r.html", "--inputs", "inputs.pt", "--no-measure").json["request"]["measure"]


@pytest.mark.parametrize("name, code", [("model.pt", 2), ("inputs.pt", 2), ("no/page.html", 1), ("libexec", 2)])
def test_where_it_cannot_be_written(fake_worker, name, code):
    twinkle = fake_worker("open('started', 'w')\n")
    done = twinkle("kernelize", "model.pt", "--map", "empty.map.json", "--inputs", "inputs.pt", "--report", name)
    assert done.code == code and not (twinkle.folder / "started").exists()
