"""A project with patterns, a model saved in it, and what a kernelize says of both."""

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(name="project")
def pattern_project(twinkle):
    twinkle.env["OMP_NUM_THREADS"] = "1"

    def kernelized(manifest, inputs, *more, model="model.pt", code=0):
        (twinkle.folder / "twinkle.toml").write_text(manifest)
        done = twinkle("kernelize", model, "-o", "fast.pt", "--inputs", inputs, "--verify", "--json", *more)
        assert done.code == code, done.err
        return done.json if code == 0 else done

    twinkle.kernelized = kernelized
    return twinkle


def counts(report, kind, status="replaced"):
    result = {}
    for site in report["sites"]:
        if site["kind"] == kind and site["status"] == status:
            name = site["of"].rsplit(".", 1)[-1]
            result[name] = result.get(name, 0) + 1
    return result


def by_site(report):
    return {site["site"]: site for site in report["sites"]}


def assert_same(project, model, x, tolerance=1e-5):
    """In a fresh process, at another shape."""
    torch.save((x,), project.folder / "in.pt")
    done = project("run", "fast.pt", "--inputs", "in.pt", "-o", "out.pt")
    assert done.code == 0, done.err
    with torch.no_grad():
        expected = model(x)
    result = torch.load(project.folder / "out.pt", weights_only=True)
    assert (result - expected).norm() < tolerance * expected.norm()


def save(project, model, how, formulas):
    model = model.eval()
    x = torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        if how == "scripted":
            made = torch.jit.script(model)
        else:
            made = torch.jit.trace(model, x, check_trace=False)
        made = torch.jit.freeze(made.eval()) if how == "frozen" else made
    made.save(project.folder / "model.pt")
    (project.folder / "formulas.py").write_text(formulas)
    return model
