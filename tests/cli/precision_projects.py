"""Models, inputs and a kernel for tests of fewer bits: it is plain Python, so that PyTorch itself runs what was written."""

import copy
import shutil

import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
nn = torch.nn
KERNEL = ROOT / "tests/kernels/fewer_bits"


def manifest(*layers):
    tables = "".join(f'[[layers.Linear]]\nrepo_path = "{{}}"\npackage_name = "fewer_bits"\nlayer_name = "{layer}"\n'
                     'classes = ["torch.nn.modules.linear.Linear"]\n' for layer in layers)
    return lambda folder: tables.replace("{}", str(folder))


class Blocks(nn.Module):
    """Residual blocks of linear layers, as a transformer has them."""

    def __init__(self, width=64, count=4):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(count))
        self.up = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(count))
        self.down = nn.ModuleList(nn.Linear(2 * width, width, bias=False) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for norm, up, down in zip(self.norms, self.up, self.down):
            x = x + down(nn.functional.gelu(up(norm(x))))
        return x


@pytest.fixture
def project(twinkle, tmp_path):
    """Saves a model and inputs, and kernelizes with fewer bits."""
    torch.manual_seed(0)

    class Project:
        folder = tmp_path
        kernel = KERNEL

        def save(self, model, *inputs, scripted=False):
            self.model = model.eval()
            made = torch.jit.script(model) if scripted else torch.jit.trace(model, inputs)
            made.save(str(tmp_path / "model.pt"))
            torch.save(inputs, tmp_path / "inputs.pt")
            self.inputs = inputs
            return self

        def bind(self, *layers, more=""):
            (tmp_path / "twinkle.toml").write_text(manifest(*layers)(self.kernel) + more)
            return self

        def run(self, *options, precision="int8", max_error=0.02):
            return twinkle("kernelize", "model.pt", "--inputs", "inputs.pt", "--precision", precision, "--max-error",
                           max_error, "-o", "small.pt", "--json", *options)

        def error(self, *inputs):
            """The error of what was written, by PyTorch."""
            small = torch.jit.load(tmp_path / "small.pt")
            exact = copy.deepcopy(self.model).double()
            inputs = inputs or self.inputs
            wanted = exact(*(one.double() if one.is_floating_point() else one for one in inputs))
            return ((small(*inputs).double() - wanted).norm() / wanted.norm()).item()

        def weights(self):
            return dict(torch.jit.load(tmp_path / "small.pt").named_parameters())

    return Project()


@pytest.fixture
def spoiled(project, tmp_path):
    """A copy of the kernel with one thing changed."""
    def change(before, after):
        project.kernel = tmp_path / "kernel" / "fewer_bits"
        shutil.copytree(KERNEL, project.kernel, ignore=shutil.ignore_patterns("__pycache__"))
        text = (project.kernel / "layers.py").read_text()
        assert before in text
        (project.kernel / "layers.py").write_text(text.replace(before, after, 1))
        return project
    return change


def by_site(report):
    return {one["site"]: one for one in report["sites"]}


def in_int8(report):
    return [one["site"] for one in report["sites"] if one.get("precision") == "int8" and one["status"] == "replaced"]
