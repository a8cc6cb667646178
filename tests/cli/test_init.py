"""twinkle init: a manifest to start from."""

import pytest
from kernels_for_tests import EXAMPLES, needs_runtime


def test_a_first_manifest_is_one_that_twinkle_reads(twinkle):
    done = twinkle("init", "--json")
    assert done.code == 0, done.err
    assert done.json["schema"] == "twinkle.init/1" and done.json["classes"] == []
    text = (twinkle.folder / "twinkle.toml").read_text()
    assert text.startswith("# ") and "[kernels]" in text
    resolved = twinkle("resolve", "-o", "twinkle.map.json", "--json")
    assert resolved.code == 0, resolved.err


def test_every_commented_line_is_right(twinkle):
    """What is proposed in comments is read without an error, once the # is away."""
    assert twinkle("init").code == 0
    manifest = twinkle.folder / "twinkle.toml"
    lines = []
    for line in manifest.read_text().splitlines():
        bare = line.removeprefix("# ")
        is_code = bare.startswith("[") or " = " in bare.split("#")[0]
        lines.append(bare if line.startswith("# ") and is_code else line)
    (twinkle.folder / "kernels/my_kernels").mkdir(parents=True)
    manifest.write_text("\n".join(lines))
    done = twinkle("resolve", "--offline", "-o", "twinkle.map.json")
    # It is read to the end: what is missing is the kernel.
    assert done.code == 3 and "kernels-community/activation" in done.err, done.err


def test_a_manifest_is_not_overwritten_but_by_force(twinkle):
    manifest = twinkle.folder / "twinkle.toml"
    manifest.write_text("# mine\n")
    done = twinkle("init")
    assert done.code == 2 and "--force" in done.err
    assert manifest.read_text() == "# mine\n"
    assert twinkle("init", "--force").code == 0
    assert manifest.read_text() != "# mine\n"
    manifest.unlink()
    manifest.symlink_to("elsewhere.toml")
    assert twinkle("init").code == 2 and not (twinkle.folder / "elsewhere.toml").exists()
    assert twinkle("--project", "none", "init").code == 3


@needs_runtime
@pytest.mark.parametrize("model, bound", [("traced.pt", True), ("scripted.pt", False)])
def test_the_classes_of_a_model(twinkle, model, bound):
    done = twinkle("init", EXAMPLES / model, "--json")
    assert done.code == 0, done.err
    assert {(found["layer"], found["bound"]) for found in done.json["classes"]} == {
        ("RMSNorm", bound), ("SwiGLUMLP", bound)}
    text = (twinkle.folder / "twinkle.toml").read_text()
    if bound:
        assert "LlamaRMSNorm (5 instances): twinkle-pack: RMSNorm" in text
    else:
        # Names prove nothing: proposed, and right when somebody says so.
        assert '# classes = ["tiny_llama.model.RMSNorm"]' in text
        (twinkle.folder / "twinkle.toml").write_text(
            text.replace("# [layers.RMSNorm]", "[layers.RMSNorm]")
                .replace('# classes = ["tiny_llama.model.RMSNorm"]', 'classes = ["tiny_llama.model.RMSNorm"]'))
        report = twinkle("kernelize", EXAMPLES / model, "-o", "fast.pt", "--json")
        assert report.code == 0 and report.json["replaced"] == 7, report.err  # and two nn.SiLU, by the preset


@needs_runtime
def test_a_model_that_is_none_writes_nothing(twinkle):
    (twinkle.folder / "model.pt").write_text("no model")
    assert twinkle("init", "model.pt").code == 2
    assert twinkle("init", "none.pt").code == 3
    assert not (twinkle.folder / "twinkle.toml").exists()
