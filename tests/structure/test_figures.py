"""The figures of the pages are drawn from what was measured."""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import readme_figure  # noqa: E402


def test_the_figure_of_the_readme_is_drawn_from_its_data():
    panels = json.loads(readme_figure.DATA.read_text())["panels"]
    assert readme_figure.PICTURE.read_text() == readme_figure.draw(panels)
    assert all(len(row["ms"]) == len(panel["contestants"]) for panel in panels for row in panel["rows"])


def test_new_figures_of_both_benchmarks_are_taken(tmp_path, monkeypatch):
    sizes = [{"tokens": 1, "model": "bert", "dtype": "float32", "contestants":
              {name: {"medians": [0.004, 0.002, 0.003], "wait": [0.001, 0.002, 0.009]}
               for name in [*readme_figure.OF_CPU.values(), *readme_figure.OF_GPU.values()]}}]
    raw = {"rows": sizes, "processor": "a processor", "versions": "LibTorch 2.13", "threads": "1", "before": "a GPU, 1"}
    (tmp_path / "raw.json").write_text(json.dumps(raw))
    (tmp_path / "data.json").write_text(readme_figure.DATA.read_text())
    monkeypatch.setattr(readme_figure, "DATA", tmp_path / "data.json")
    monkeypatch.setattr(readme_figure, "PICTURE", tmp_path / "speed.svg")
    monkeypatch.setattr(sys, "argv", ["readme_figure.py", "--cpu", str(tmp_path / "raw.json"), "--gpu",
                                      str(tmp_path / "raw.json"), "--date", "2030-01-02"])
    readme_figure.main()
    gpu, cpu = json.loads((tmp_path / "data.json").read_text())["panels"]
    assert gpu["rows"] == [{"tokens": 1, "ms": [2.0] * 4}] and cpu["rows"] == [{"tokens": 1, "ms": [3.0] * 4}]
    drawn = (tmp_path / "speed.svg").read_text()
    assert drawn.count("measured 2030-01-02") == 2 and "a processor" in drawn and "a GPU" in drawn
