"""Archives of torch.export as models like any other: converted, run, kernelized, refused."""

import copy
import json
import os
import random
import shutil
import subprocess
import sys
import warnings
import zipfile

import pytest
from conftest import ROOT
from kernels_for_tests import PREFIX, made_models, needs_runtime, outcome

pytestmark = needs_runtime
torch = pytest.importorskip("torch")
warnings.filterwarnings("ignore")  # torch.jit is deprecated: known
torch.set_num_threads(1)  # as the results were made: sums of several threads have other bits

sys.path.insert(0, str(ROOT / "tests/models"))

OWN = ["branches", "cache", "cache_decomposed", "changes", "changes_decomposed", "cnn", "cnn_decomposed", "cnn_trains",
       "constants", "derived", "drops", "dynamic_integer", "experts", "guarded", "heads", "heads_bfloat16", "loop", "lstm",
       "map", "nested", "quiet", "scalars", "shared", "sizes", "tied"]
FAMILIES = ["qwen2", "qwen3", "llama", "mistral", "gemma", "phi3", "gpt2", "bert", "vit", "t5", "whisper", "t5_encoder"]
VARIANTS = ["llama_eager", "llama_bfloat16", "bert_bfloat16", "vit_bfloat16", "qwen2_float16", "gpt2_float16", "bert_strict", "vit_strict",
            "llama_decomposed", "bert_decomposed", "whole_llama", "whole_bert"]


@pytest.fixture(scope="module")
def exported():
    return made_models() / "exported"


def flat(value):
    """The leaves of a result, with where they are."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in flat(value[key])]
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in flat(one)]
    return [value]


def same(found, expected):
    found, expected = flat(found), flat(expected)
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        if isinstance(other, torch.Tensor):
            assert one.dtype == other.dtype and one.shape == other.shape
            assert torch.equal(one, other), (one.double() - other.double()).abs().max()
        else:
            assert one == other and type(one) is type(other)


def nearly_same(found, expected):
    """Freezing makes one product of several of the same input (q, k and v)."""
    for one, other in zip(flat(found), flat(expected), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5 if getattr(other, "dtype", None) != torch.bfloat16 else 1e-2,
                                   atol=1e-5 if getattr(other, "dtype", None) != torch.bfloat16 else 1e-2)


def compare(file, calls, same=same):
    """Every call gives the same bits, and leaves the same in its inputs. LibTorch's executor computes addmm otherwise
    from the second call on (GPT-2), so that it must not optimize here."""
    model = torch.jit.load(file)
    for call in copy.deepcopy(calls):
        with torch.no_grad(), torch.jit.optimized_execution(False):
            result = model(*call["args"], **call["kwargs"])
        same(result, call["result"])
        same(call["args"], call["after"])


def convert(twinkle, model, *more):
    done = twinkle("convert", model, "-o", "model.pt", *more)
    assert done.code == 0, done.err
    return twinkle.folder / "model.pt"


@pytest.mark.parametrize("name", [*OWN, *FAMILIES, *VARIANTS])
def test_it_computes_what_the_exported_program_does(twinkle, exported, name):
    compare(convert(twinkle, exported / f"{name}.pt2"), torch.load(exported / f"{name}.io.pt"))


def test_every_exported_model_is_tested(exported):
    assert {*OWN, *FAMILIES, *VARIANTS} == {path.stem for path in exported.glob("*.pt2")}


# The hierarchy ---------------------------------------------------------------------------------------------------


def instances(model):
    return {path: module.original_name for path, module in model.named_modules()}


@pytest.mark.parametrize("name", ["llama", "bert", "gpt2", "vit"])
def test_modules_are_those_of_the_trace(twinkle, exported, name):
    made = torch.jit.load(convert(twinkle, exported / f"{name}.pt2"))
    traced = torch.jit.load(exported.parent / f"traced/{name}.pt")
    found, expected = instances(made), instances(traced)
    assert set(expected) <= set(found)
    unnamed = {"ModuleList", "Module"}  # what no node was made under
    assert {path: name for path, name in expected.items() if found[path] not in unnamed} == {
        path: found[path] for path in expected if found[path] not in unnamed}


def test_norms_take_one_tensor_and_give_one(twinkle, exported):
    model = torch.jit.load(convert(twinkle, exported / "llama.pt2"))
    norms = [module for module in model.modules() if module.original_name == "LlamaRMSNorm"]
    assert len(norms) == 5
    for norm in norms:
        schema = norm._c._get_method("forward").schema
        assert [str(one.type) for one in schema.arguments][1:] == ["Tensor"]
        assert [str(one.type) for one in schema.returns] == ["Tensor"]


def test_a_module_that_is_called_again_has_another_forward(twinkle, exported):
    model = torch.jit.load(convert(twinkle, exported / "shared.pt2"))
    assert set(getattr(model.shared, "0")._c._method_names()) == {"forward", "forward1"}


def test_tied_weights_are_one_tensor(twinkle, exported):
    model = torch.jit.load(convert(twinkle, exported / "tied.pt2"))
    assert model.embedding.weight.data_ptr() == model.head.weight.data_ptr()


# Gradients, saved again, frozen ------------------------------------------------------------------------------------

LEARNS = ["llama", "bert", "gpt2", "vit", "t5", "whisper", "llama_decomposed", "cnn", "cnn_trains", "drops",
          "experts", "heads", "lstm", "quiet", "shared", "sizes", "tied"]


def gradients(model, call):
    """Of all parameters and of the first input that can have one."""
    call = copy.deepcopy(call)
    inputs = [one.requires_grad_() for one in flat([call["args"], call["kwargs"]])
              if isinstance(one, torch.Tensor) and one.is_floating_point()]
    weights = dict(model.named_parameters())
    for weight in weights.values():
        weight.grad = None
    results = [one for one in flat(plain(model(*call["args"], **call["kwargs"])))
               if isinstance(one, torch.Tensor) and one.requires_grad]
    sum(one.float().square().mean() for one in results).backward()
    return {name: weight.grad for name, weight in weights.items()}, [one.grad for one in inputs]


def plain(value):
    return {key: value[key] for key in value.keys()} if hasattr(value, "keys") else value


def eager_gradients(file, call, shared):
    """torch.export.load makes two of a parameter that has two names: its gradient is the sum."""
    weights, inputs = gradients(torch.export.load(file).module(), call)
    for names in shared:
        parts = [weights.pop(name, None) for name in names]
        weights[names[0]] = sum(part for part in parts if part is not None)
    return weights, inputs


def names_of_tied(model):
    """The names of parameters that have several, as lists."""
    by_data = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        by_data.setdefault(weight.data_ptr(), []).append(name)
    return [names for names in by_data.values() if len(names) > 1]


def same_gradients(found, expected):
    assert set(found[0]) == set(expected[0])
    for name, gradient in expected[0].items():
        assert (found[0][name] is None) == (gradient is None), name
        if gradient is not None:
            torch.testing.assert_close(found[0][name], gradient, rtol=1e-4, atol=1e-6, msg=lambda text: f"{name}: {text}")
    for one, other in zip(found[1], expected[1]):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", LEARNS)
def test_every_parameter_gets_its_gradient(twinkle, exported, name):
    call = torch.load(exported / f"{name}.io.pt")[0]
    torch.jit.load(convert(twinkle, exported / f"{name}.pt2")).save(twinkle.folder / "again.pt")
    for file in ("model.pt", "again.pt"):
        model = torch.jit.load(twinkle.folder / file)
        expected = eager_gradients(exported / f"{name}.pt2", call, names_of_tied(model))
        assert any(gradient is not None for gradient in [*expected[0].values(), *expected[1]])
        # The executor takes another way from the second call on; a batch norm that trains remembers the first.
        for _ in range(1 if name in ("cnn_trains", "drops") else 2):
            same_gradients(gradients(model, call), expected)


# Frozen, the statistics of a batch norm that trains are constants which it changes; a saved model has equal constants once.
FROZEN = [name for name in [*OWN, "llama", "bert", "gpt2", "vit", "t5", "whisper"]
          if name not in ("cnn_trains", "cnn_decomposed", "drops")]


@pytest.mark.parametrize("name", FROZEN)
def test_saved_again_and_frozen(twinkle, exported, name):
    calls = torch.load(exported / f"{name}.io.pt")
    model = torch.jit.load(convert(twinkle, exported / f"{name}.pt2"))
    model.save(twinkle.folder / "again.pt")
    compare(twinkle.folder / "again.pt", calls)
    torch.jit.freeze(model.eval()).save(twinkle.folder / "frozen.pt")
    compare(twinkle.folder / "frozen.pt", calls, nearly_same)


# Inputs ----------------------------------------------------------------------------------------------------------


def refused_call(model, text, *args, **kwargs):
    with pytest.raises(Exception, match=text):
        model(*args, **kwargs)


def test_sizes_that_it_was_not_exported_for(twinkle, exported):
    model = torch.jit.load(convert(twinkle, exported / "derived.pt2"))
    refused_call(model, "dimension 0 of the input x must be at least 3, but is 2", torch.zeros(2, 2), torch.zeros(4, 2))
    refused_call(model, "dimension 0 of the input x must be at most 12, but is 13", torch.zeros(13, 2), torch.zeros(26, 2))
    refused_call(model, "dimension 1 of the input x must be 2", torch.zeros(4, 3), torch.zeros(8, 2))
    refused_call(model, "dimension 0 of the input y must be 8", torch.zeros(4, 2), torch.zeros(9, 2))
    refused_call(model, "the input x must have 2 dimensions, but has 1", torch.zeros(4), torch.zeros(8, 2))


def test_conditions_that_the_code_asked(twinkle, exported):
    model = torch.jit.load(convert(twinkle, exported / "guarded.pt2"))
    refused_call(model, "the inputs must fulfil", torch.zeros(3, 6), torch.zeros(20))
    refused_call(model, "dimension 1 of the input x must be at most 30, but is 31", torch.zeros(4, 31), torch.zeros(40))


def test_constants_and_nested_inputs(twinkle, exported):
    model = torch.jit.load(convert(twinkle, exported / "constants.pt2"))
    refused_call(model, "the input power must be 3", torch.zeros(2, 8), 2)
    model = torch.jit.load(convert(twinkle, exported / "nested.pt2"))
    call = torch.load(exported / "nested.io.pt")[0]
    pair, table, items = call["args"]
    refused_call(model, "items must hold 2 values", pair, table, items[:1])
    model = torch.jit.load(convert(twinkle, exported / "whole_llama.pt2"))
    call = torch.load(exported / "whole_llama.io.pt")[0]
    same(model(call["kwargs"]["input_ids"])["logits"], call["result"]["logits"])
    refused_call(model, "the input use_cache must be False", call["kwargs"]["input_ids"], use_cache=True)


# The commands ----------------------------------------------------------------------------------------------------


def save_call(folder, call):
    torch.save(tuple(call["args"]) or call["kwargs"], folder / "inputs.pt")
    return folder / "inputs.pt"


def test_run(twinkle, exported):
    call = torch.load(exported / "bert.io.pt")[1]
    done = twinkle("run", exported / "bert.pt2", "--inputs", save_call(twinkle.folder, call), "-o", "out.pt")
    assert done.code == 0, done.err
    same(torch.load(twinkle.folder / "out.pt", weights_only=True), call["result"])


def test_inspect(twinkle, exported):
    done = twinkle("inspect", exported / "llama.pt2", "--json")
    assert done.code == 0, done.err
    assert done.json["kind"] == "exported" and done.json["loaded"] is True
    classes = {one["name"]: one["instances"] for one in done.json["classes"]}
    assert classes["transformers.models.llama.modeling_llama.LlamaRMSNorm"] == 5


# What an exporter writes otherwise has a formula of its own, which calls the same operator.
SAME_OPERATOR = {"fused_exported_rotary": "fused_rotary", "fused_partial_rotary": "fused_rotary",
                 "fused_exported_grouped_attention": "fused_grouped_attention"}


@pytest.mark.parametrize("name", ["llama", "qwen3", "phi3", "gpt2", "bert", "t5", "llama_eager"])
def test_kernelize_finds_what_it_finds_in_the_trace(twinkle, exported, name):
    """bench/export_sites.py shows more of them, with errors and times."""
    call = torch.load(exported / f"{name}.io.pt")[0]
    inputs = save_call(twinkle.folder, call)
    reports = {}
    for kind, model in {"exported": exported / f"{name}.pt2", "traced": exported.parent / f"traced/{name}.pt"}.items():
        done = twinkle("kernelize", model, "--inputs", inputs, "-o", f"{kind}.pt", "--json")
        assert done.code == 0, done.err
        reports[kind] = done.json
    assert reports["exported"]["verified"] and reports["exported"]["replaced"] > 0

    def kernels(report):
        counted = {}
        for site in report["sites"]:
            if site["status"] == "replaced":
                kernel = site["kernel"].split(": ")[1]
                kernel = SAME_OPERATOR.get(kernel, kernel)
                counted[kernel] = counted.get(kernel, 0) + 1
        return counted

    assert kernels(reports["exported"]) == kernels(reports["traced"])
    assert not name.endswith("_eager") or "fused_grouped_attention" in kernels(reports["exported"])


# Other dtypes and devices ----------------------------------------------------------------------------------------


def relative_error(found, expected):
    found, expected = flat(found)[0].double(), flat(expected)[0].double()
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("name", ["llama", "qwen3", "bert", "gpt2", "vit", "t5", "heads"])
def test_another_dtype_than_it_was_exported_in(twinkle, exported, name):
    (twinkle.folder / "twinkle.toml").write_text('presets = ["transformers", "patterns"]\n')
    call = torch.load(exported / f"{name}.io.pt")[0]
    inputs = save_call(twinkle.folder, call)
    done = twinkle("kernelize", exported / f"{name}.pt2", "--dtype", "bfloat16", "--inputs", inputs, "--only", "nothing",
                   "-o", "fast.pt", "--json")
    assert done.code == 0, done.err
    assert done.json["verified"] and done.json["dtype"] == "bfloat16"
    model = torch.jit.load(twinkle.folder / "fast.pt")
    assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    run = twinkle("run", "fast.pt", "--inputs", cast_inputs(twinkle.folder, call), "-o", "out.pt")
    assert run.code == 0, run.err
    result = torch.load(twinkle.folder / "out.pt", weights_only=True)
    assert flat(result)[0].dtype == torch.bfloat16
    assert relative_error(result, call["result"]) < 0.05


def cast_inputs(folder, call):
    cast = tuple(one.bfloat16() if one.is_floating_point() else one for one in call["args"])
    torch.save(cast, folder / "cast.pt")
    return folder / "cast.pt"


@pytest.mark.parametrize("name", ["llama", "bert", "t5"])
def test_another_device_than_it_was_exported_on(twinkle, exported, name):
    """What an exporter with a GPU writes, as far as the archive says so."""
    on_gpu = rewritten(exported / f"{name}.pt2", twinkle.folder / "gpu.pt2",
                       lambda record, data: data.replace(b'"type": "cpu", "index": null', b'"type": "cuda", "index": 0')
                       if record.endswith("models/model.json") else data)
    assert on_gpu.read_bytes().count(b'"cuda"') > 10
    call = torch.load(exported / f"{name}.io.pt")[0]
    inputs = save_call(twinkle.folder, call)
    if not torch.cuda.is_available() and name != "bert":  # only its mask was made on a device, and is dropped
        assert twinkle("run", on_gpu, "--inputs", inputs).code == 2
    done = twinkle("kernelize", on_gpu, "--device", "cpu", "--only", "nothing", "-o", "cpu.pt", "--json")
    assert done.code == 0, done.err
    compare(twinkle.folder / "cpu.pt", [call])


# Archives that are not as they should be -------------------------------------------------------------------------


def rewritten(source, target, change, stored=True):
    """Copies an archive and changes its records."""
    with zipfile.ZipFile(source) as old, \
            zipfile.ZipFile(target, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            changed = change(name, old.read(name))
            if changed is not None:
                new.writestr(*(changed if isinstance(changed, tuple) else (name, changed)))
    return target


def with_json(part, edit):
    def change(name, data):
        if not name.endswith(part):
            return data
        document = json.loads(data)
        return json.dumps(edit(document) or document).encode()

    return change


def edit_weight(**changes):
    def edit(document):
        payload = next(iter(document["config"].values()))
        for key, value in changes.items():
            (payload if key in payload else payload["tensor_meta"])[key] = value

    return with_json("_weights_config.json", edit)


def first_node(edit):
    return with_json("models/model.json", lambda d: edit(d["graph_module"]["graph"]["nodes"][0]))


def huge(document):
    payload = next(iter(document["config"].values()))
    payload["tensor_meta"]["sizes"] = [{"as_int": 2 ** 62}, {"as_int": 4}]
    payload["tensor_meta"]["strides"] = [{"as_int": 2 ** 62}, {"as_int": 1}]


HOSTILE = {
    "a schema that is not known": (with_json("models/model.json", lambda d: d["schema_version"].update(major=9)), "schema"),
    "a pickle": (edit_weight(use_pickle=True), "pickle"),
    "a record outside": (edit_weight(path_name="../../../etc/passwd"), "leaves"),
    "no record": (edit_weight(path_name="weight_99"), "no record"),
    "a weight that is too large": (edit_weight(sizes=[{"as_int": 1000}] * 4), "larger"),
    "sizes that overflow": (with_json("_weights_config.json", huge), "larger"),
    "a negative stride": (edit_weight(strides=[{"as_int": -1}] * 4), "negative"),
    "an offset": (edit_weight(storage_offset={"as_int": 2 ** 61}), "larger"),
    "no weights": (lambda name, data: None if name.endswith("weight_0") else data, "no record"),
    "empty weights": (lambda name, data: b"" if name.endswith("weight_0") else data, "fake"),
    "a record twice": (lambda name, data: (name.replace("weight_1", "weight_0"), data), "twice"),
    "no JSON": (lambda name, data: data[:-9] if name.endswith("model.json") else data, "JSON"),
    "deep JSON": (lambda name, data: b"[" * 100000 if name.endswith("model.json") else data, "deep"),
    "an operator that is not there": (first_node(lambda n: n.update(target="torch.ops.nowhere.to_be.default")), "nowhere"),
    "an operator that is none": (first_node(lambda n: n.update(target="os.system")), "os.system"),
    "a value that is not defined": (first_node(lambda n: n["inputs"][0].update(arg={"as_tensor": {"name": "no"}})), "defined"),
    "another byte order": (lambda name, data: b"big" if name.endswith("byteorder") else data, "little-endian"),
    "a TorchBind object": (with_json("models/model.json", lambda d: d["graph_module"]["signature"]["input_specs"].insert(
        0, {"custom_obj": {"arg": {"name": "obj", "class_fqn": "__torch__.torch.classes.my.Object"},
                           "custom_obj_name": "obj"}})), "torch.classes.my.Object"),
    "an old one": (lambda name, data: ("cnn/serialized_exported_program.json", b"{}") if name.endswith("model.json")
                   else data, "2.7"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_archives_that_are_refused(twinkle, exported, what):
    change, why = HOSTILE[what]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        broken = rewritten(exported / "cnn.pt2", twinkle.folder / "broken.pt2", change)
    before = outcome(twinkle.folder)
    for command in (["convert", broken, "-o", "model.pt"], ["run", broken, "--inputs", "float32[2,3,8,8]"]):
        done = twinkle(*command, "--json")
        assert done.code in (2, 3, 6), (command, done.err)
        assert why in json.dumps(done.error), done.err
    assert outcome(twinkle.folder) == before


class Prints(torch.nn.Module):
    def forward(self, x):
        torch.ops.aten._print("here")
        return x + 1


@pytest.mark.parametrize("decomposed", [True, False])
def test_what_is_done_besides_results_is_refused(twinkle, decomposed):
    """TorchScript would leave it out without a word."""
    program = torch.export.export(Prints(), (torch.ones(3),))
    torch.export.save(program.run_decompositions() if decomposed else program, twinkle.folder / "prints.pt2")
    done = twinkle("convert", "prints.pt2", "-o", "model.pt", "--json")
    assert done.code == 6 and "aten::_print has no result" in done.err and "return a tensor" in done.err, done.err
    assert not (twinkle.folder / "model.pt").exists()


def test_compressed_records_are_refused(twinkle, exported):
    broken = rewritten(exported / "cnn.pt2", twinkle.folder / "broken.pt2", lambda name, data: data, stored=False)
    done = twinkle("convert", broken, "-o", "model.pt", "--json")
    assert done.code == 2 and "compressed" in done.error["why"]


def test_several_models_in_one_archive(twinkle, exported):
    shutil.copy(exported / "cnn.pt2", twinkle.folder / "two.pt2")
    with zipfile.ZipFile(twinkle.folder / "two.pt2", "a", zipfile.ZIP_STORED) as archive:
        for name in archive.namelist():
            if name.endswith(("models/model.json", "model_weights_config.json", "model_constants_config.json")):
                archive.writestr(name.replace("/model.json", "/other.json").replace("/model_", "/other_"), archive.read(name))
    done = twinkle("convert", "two.pt2", "-o", "model.pt", "--json")
    assert done.code == 3 and "model, other" in done.error["why"] and "--model" in done.error["hint"]
    assert twinkle("convert", "two.pt2", "--model", "none", "-o", "model.pt").code == 3
    compare(convert(twinkle, "two.pt2", "--model", "other"), torch.load(exported / "cnn.io.pt"))
    assert twinkle("run", convert(twinkle, "two.pt2", "--model", "other"), "--model", "other").code == 2


def test_nothing_is_converted_that_is_no_archive(twinkle, exported):
    done = twinkle("convert", exported.parent / "models/tiny_llama.pt", "-o", "model.pt", "--json")
    assert done.code == 2 and "no archive of torch.export" in done.error["why"]


def mutated(data, random_):
    data = bytearray(data)
    for _ in range(random_.choice((1, 1, 4, 32))):
        at = random_.randrange(len(data))
        data[at] = random_.choice((data[at] ^ (1 << random_.randrange(8)), random_.randrange(256), 0, 255))
    return bytes(data[: random_.randrange(len(data))] if random_.random() < 0.1 else data)


@pytest.mark.parametrize("seed", range(int(os.environ.get("TWINKLE_MUTATIONS", "6"))))
def test_mutated_archives(twinkle, exported, seed):
    """Whatever comes of it, nothing crashes, hangs or leaves anything behind."""
    random_ = random.Random(seed)
    name = random_.choice(["cnn", "nested", "derived", "branches", "tied"])
    (twinkle.folder / "broken.pt2").write_bytes(mutated((exported / f"{name}.pt2").read_bytes(), random_))
    done = twinkle("convert", "broken.pt2", "-o", "model.pt", "--json")
    assert done.code in (0, 2, 3, 6), done.err
    assert {path.name for path in twinkle.folder.iterdir()} <= {"broken.pt2", "model.pt"}


def test_what_changed_archives_compute(exported):
    """As PyTorch's own loader reads them; a short run of what CONTRIBUTING.md names."""
    fuzz = PREFIX / "tests/fuzz/fuzz_exports"
    if not fuzz.exists():
        pytest.skip("fuzz_exports was not built")
    done = subprocess.run([sys.executable, ROOT / "tests/fuzz/compare_exports.py", fuzz, "30",
                           *(exported / f"{name}.pt2" for name in ("derived", "tied"))], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0 and " equal" in done.stdout, done.stdout + done.stderr[-2000:]


def test_what_an_archive_says_is_safe_to_show(twinkle, exported):
    escape = first_node(lambda node: node.update(target="torch.ops.evil\x1b[31m.op.default"))
    broken = rewritten(exported / "cnn.pt2", twinkle.folder / "broken.pt2", escape)
    for command in (["inspect", broken], ["inspect", broken, "--graph", "Residual"], ["convert", broken]):
        done = twinkle(*command)
        assert "\x1b[31m" not in done.out + done.err
        assert "evil" in done.out + done.err
