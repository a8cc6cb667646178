"""Several candidates of a site: the first that is right serves it, and with --tune the fastest. What is slow here is so by
far, whatever the machine does."""

import pytest
from kernels_for_tests import AMPLE, needs_runtime

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

# 1/256: see test_tune_sizes.
LAYER = """import torch
from torch import nn


class Layer(nn.Module):
    def forward(self, x):
        z = torch.full([256, 256], 0.00390625, dtype=x.dtype)
        for i in range({work}):
            z = torch.mm(z, z)
        return {result} + 0.0 * z[0, 0]
"""
CANDIDATE = '[[layers.Layer]]\nrepo_path = "{}"\nlayer_name = "Layer"\nclasses = ["{}"]\n'
PACKAGES = {
    "slow": {"work": 60, "result": "x * 2"},
    "fast": {"work": 0, "result": "x + x"},
    "wrong": {"work": 0, "result": "x * 2.1"},
    "broken": {"work": 0, "result": "x * two"},
    "off": {"work": 0, "result": "x * 2.2"},
    "raising": {"work": 0, "result": "x * x[999, 0]"},
}
INPUTS = ["--inputs", "float32[3,64]"]


class Doubling(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = torch.full([256, 256], 0.00390625, dtype=x.dtype)
        for _ in range(12):
            z = torch.mm(z, z)
        return x * 2 + 0.0 * z[0, 0]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.line = Doubling(), Doubling(), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.line(self.first(x)))


@pytest.fixture(name="project")
def model_and_packages(twinkle):
    twinkle.env["OMP_NUM_THREADS"] = "1"
    twinkle.env["XDG_CACHE_HOME"] = twinkle.folder / "cache"
    model = torch.jit.script(Model().eval())
    model.save(twinkle.folder / "model.pt")
    name = model.first.original_name
    classes = f"{Doubling.__module__}.{name}"
    for package, values in PACKAGES.items():
        (twinkle.folder / package).mkdir()
        (twinkle.folder / package / "__init__.py").write_text("")
        (twinkle.folder / package / "layers.py").write_text(LAYER.format(**values))

    def kernelized(packages, *more, code=0):
        manifest = "presets = []\n" + "".join(CANDIDATE.format(one, classes) for one in packages)
        (twinkle.folder / "twinkle.toml").write_text(manifest)
        done = twinkle("kernelize", "model.pt", "-o", "fast.pt", "--json", *INPUTS, *more)
        assert done.code == code, done.err
        return done.json if code == 0 else done

    twinkle.kernelized = kernelized
    return twinkle


def chosen(report):
    """By site: the kernel, or none where the original stayed."""
    return {site["site"]: site["kernel"] if site["status"] == "replaced" else None for site in report["sites"]}


def reasons(site):
    return {one["kernel"]: one["because"] for one in site["candidates"]}


def both(kernel):
    return {"first": kernel, "second": kernel}


def test_the_first_candidate_without_measuring(project):
    report = project.kernelized(["slow", "fast"])
    assert chosen(report) == both("slow: Layer")
    for site in report["sites"]:
        assert reasons(site) == {"slow: Layer": None, "fast: Layer": "it comes after slow: Layer"}


def test_the_fastest_candidate(project):
    report = project.kernelized(["slow", "fast"], "--tune", "--budget", AMPLE)
    assert chosen(report) == both("fast: Layer")
    for site in report["sites"]:
        assert "times as fast as the original here" in site["because"] and site["max_error"] is not None
        assert "times as fast" in reasons(site)["slow: Layer"] and reasons(site)["fast: Layer"] is None
    x = torch.randn(5, 64)
    torch.save((x,), project.folder / "in.pt")
    assert project("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt").code == 0
    result = torch.load(project.folder / "out.pt", weights_only=True)
    torch.testing.assert_close(result, torch.jit.load(project.folder / "model.pt")(x))


def test_the_original_where_no_candidate_is_faster(project):
    report = project.kernelized(["slow"], "--tune", "--budget", "2s")
    assert chosen(report) == both(None) and report["kept"] == 2 and report["reverted"] == 0
    for site in report["sites"]:
        assert site["because"].startswith("no kernel is faster here: slow: Layer is 0.")
    shown = project("kernelize", "model.pt", *INPUTS, "--tune", "--budget", AMPLE, "-v")
    assert shown.code == 0 and "no kernel is faster here" in shown.out
    shown = project("kernelize", "model.pt", *INPUTS, "--tune", "--budget", AMPLE)  # its times are in a table of their own
    assert any(line.split()[:1] == ["Doubling"] and line.split()[-1] == "chosen" for line in shown.out.splitlines()), shown.out


@pytest.mark.parametrize("more", [[], ["--tune", "--budget", AMPLE]])
@pytest.mark.parametrize("bad,why", [("wrong", "its error is"), ("broken", "two")])
def test_what_is_not_right_gives_way_to_the_next(project, bad, why, more):
    report = project.kernelized([bad, "fast"], *more)
    assert chosen(report) == both("fast: Layer")
    for site in report["sites"]:
        assert why in reasons(site)[bad + ": Layer"] and reasons(site)["fast: Layer"] is None
    shown = project("kernelize", "model.pt", *INPUTS, "-v").out
    assert f"not {bad}: Layer (" in " ".join(shown.split())


def test_nothing_that_is_left_is_right(project):
    report = project.kernelized(["wrong", "broken"])
    assert chosen(report) == both(None)
    for site in report["sites"]:
        assert "its error is" in reasons(site)["wrong: Layer"] and "two" in reasons(site)["broken: Layer"]


def test_strict_fails_where_no_candidate_is_right(project):
    done = project.kernelized(["wrong"], "--strict", code=4)
    assert "first" in done.err and not (project.folder / "fast.pt").exists()
    assert chosen(project.kernelized(["wrong", "fast"], "--strict")) == both("fast: Layer")
    assert chosen(project.kernelized(["fast", "wrong"], "--strict", "--tune", "--budget", AMPLE)) == both("fast: Layer")
    torch.jit.script(nn.Sequential(Doubling(), nn.Linear(64, 64)).eval()).save(project.folder / "model.pt")  # both are judged in one run
    project.env["XDG_CACHE_HOME"] = project.folder / "nothing known"
    project.kernelized(["wrong", "off"], "--strict", "--tune", "--budget", AMPLE, code=4)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("packages,code", [(["wrong"], 4), (["wrong", "off"], 4), (["raising"], 6), (["wrong", "raising"], 4),
                                           (["raising", "wrong"], 6), (["slow", "wrong"], 0)])
def test_strict_ends_alike_where_the_store_knows_what_is_wrong(project, packages, code, layers):
    """Of layers that are called alike the first run tries each candidate in one alone."""
    if layers == 1:
        torch.jit.script(nn.Sequential(Doubling(), nn.Linear(64, 64)).eval()).save(project.folder / "model.pt")
    for _ in range(2):
        done = project.kernelized(packages, "--strict", "--tune", "--budget", AMPLE, code=code)
        assert code == 0 or (not (project.folder / "fast.pt").exists() and "a replaced site is not right" in done.err)


def test_one_kernel_twice_is_two_candidates(project):
    """Bound for two modes it has one name, and each of them is judged by itself."""
    project.kernelized(["slow"])
    name = (project.folder / "twinkle.toml").read_text().split('classes = ["')[1].split('"')[0]
    text = "".join(CANDIDATE.format("wrong", name) + f'mode = "{mode}"\n' for mode in ("inference", "training"))
    for tail, kernel in (("", None), (CANDIDATE.format("fast", name), "fast: Layer")):
        (project.folder / "twinkle.toml").write_text("presets = []\n" + text + tail)
        for more in ([], ["--tune", "--budget", AMPLE]):
            report = project("kernelize", "model.pt", "-o", "fast.pt", "--json", *INPUTS, *more).json
            assert chosen(report) == both(kernel), report
            assert all("its error is" in one["because"] for site in report["sites"] for one in site["candidates"]
                       if one["kernel"] == "wrong: Layer")


@pytest.mark.parametrize("arguments,words", [
    (["--tune"], "nothing is compared here"),
    (["--tune", "--no-verify", *INPUTS], "nothing is compared here"),
    (["--budget", "3", *INPUTS], "--budget is of no use"),
    (["--tune", "--budget", "0", *INPUTS], "--budget cannot be '0'"),
    (["--tune", "--budget", "nan", *INPUTS], "--budget cannot be"),
    (["--tune", "--budget", "1e9", *INPUTS], "up to a day"),
    (["--tune", "--budget", "2m", *INPUTS], "a number of seconds"),
    (["--tune-sizes", "1,2", *INPUTS], "--tune-sizes is of no use"),
    (["--tune", "--tune-sizes", "1,0", *INPUTS], "--tune-sizes cannot be '1,0'"),
    (["--tune", "--tune-sizes", "1,x", *INPUTS], "--tune-sizes cannot be '1,x'"),
])
def test_wrong_usage(project, arguments, words):
    done = project("kernelize", "model.pt", *arguments)
    assert done.code == 2 and words in done.err
