"""Functions that a trace has inlined: found by their stacks, cut out, bound to what stands for them by a run on real
inputs, and replaced; right or kept with the reason, never wrong."""

import json

import pytest
from kernels_for_tests import made_models, needs_runtime
from traced_shop import FAST, assert_same, functions, kernelized, named, shop, traced  # noqa: F401 (a fixture)

torch = pytest.importorskip("torch")
pytestmark = [needs_runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def several(ops, h, x, model):
    h = ops.mix(h, ops.mix(x, h))  # two calls of one line, one in the other
    for _ in range(2):
        h = ops.mix(x, h)
    y = ops.mix(h, x)
    return y + y.tanh() * h


@pytest.mark.parametrize("frozen", [False, True])
def test_several_calls_of_one_line_and_of_a_loop(shop, frozen):
    traced(shop, several, frozen)
    report = kernelized(shop, functions(mix="mix"))
    assert named(report) == ["mix", "mix#2", "mix#3", "mix#4", "mix#5"]
    for site in report["sites"]:
        assert site["kind"] == "function" and site["kernel"] == "fast.py: mix"
        assert site["max_error"] <= site["allowed_error"]
    assert_same(shop)
    # Saved, loaded and kernelized again it is what it was.
    again = kernelized(shop, functions(mix="mix"), model="fast.pt", to="again.pt")
    assert again["replaced"] == 0 and again["kept"] == 5
    assert {site["because"] for site in again["sites"]} == {"it is kernelized already"}


def in_a_loop(ops, h, x, model):
    for _ in range(3):
        h = ops.act(h)
    return h


OF_ONE_PLACE = {  # and what a trace, or freezing it, has merged of them
    "of one value": (lambda ops, h, x, model: ops.pick(h, 1) + ops.pick(h, -1), 2),
    "of one value, joined": (lambda ops, h, x, model: torch.cat([ops.pick(h, 1), ops.pick(h)]), 2),
    "of each other": (lambda ops, h, x, model: ops.act(ops.act(h)), 2),
    "in a loop": (in_a_loop, 3),
    "in a list": (lambda ops, h, x, model: torch.cat([ops.act(t) for t in (h, x, h + x)], -1), 3),
    "and used beside": (lambda ops, h, x, model: ops.act(h) + ops.act(x) * h, 2),
}


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", OF_ONE_PLACE)
def test_calls_that_only_what_they_do_tells_apart(shop, name, frozen):
    body, calls = OF_ONE_PLACE[name]
    traced(shop, body, frozen)
    report = kernelized(shop, functions(act="act", pick="pick"))
    assert len(named(report)) == calls and report["kept"] == 0, report
    assert_same(shop)


def of_two_lengths(ops, h, x, model):
    return ops.longer(h) + ops.longer(x, True)


@pytest.mark.parametrize("impl, replaced", [("longer", ["longer", "longer#2"]), ("shorter", ["longer"]), ("longer_still", [])])
def test_calls_of_one_line_that_are_not_alike(shop, impl, replaced):
    """What is right for one of them takes that one, and the other one is not lost."""
    traced(shop, of_two_lengths)
    report = kernelized(shop, functions(longer=impl))
    assert named(report) == replaced
    assert named(report, "kept") == [name for name in ("longer", "longer#2") if name not in replaced]
    assert all("its error is" in site["because"] for site in report["sites"] if site["status"] == "kept")
    assert_same(shop)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name, impl, words", [
    ("halves", "halves", None), ("halves", "halves_as_a_tuple", None), ("halves", "halves_exchanged", None),
    ("halves", "wrong_halves", "its error is"), ("waves", "waves", None), ("waves", "two_waves", None),
    ("waves", "waves_as_a_tuple", None)])
def test_results_in_a_list(shop, frozen, name, impl, words):
    bodies = {"halves": lambda ops, h, x, model: torch.cat([ops.halves(h)[1], ops.halves(x)[0]], -1),
              "waves": lambda ops, h, x, model: sum(ops.waves(h, x)) * ops.waves(x, h)[0]}
    both = {"halves": lambda ops, h, x, model: (lambda one, other: torch.cat([one[1] + one[0], other[0]], -1))(
        ops.halves(h), ops.halves(x)), **bodies}
    for body in (bodies[name], both[name]):
        traced(shop, body, frozen)
        report = kernelized(shop, functions(**{name: impl}))
        if words:
            assert report["replaced"] <= 1 and any(words in site["because"] for site in report["sites"]), report["sites"]
        else:
            assert named(report) == [name, f"{name}#2"], report["sites"]
        assert_same(shop)


def test_one_call_alone_and_the_rest_later(shop):
    traced(shop, several)
    assert named(kernelized(shop, functions(mix="mix"), "--only", "*#2")) == ["mix#2"]
    assert_same(shop)
    (shop.folder / "fast.pt").rename(shop.folder / "half.pt")
    report = kernelized(shop, functions(mix="mix"), model="half.pt")
    assert sorted(named(report)) == ["mix", "mix#3", "mix#4", "mix#5"] and named(report, "kept") == ["mix#2"]
    assert_same(shop)


@pytest.mark.parametrize("impl", ["exchanged", "mix_into"])
def test_what_its_parameters_are_is_found_out(shop, impl):
    traced(shop, several)
    assert len(named(kernelized(shop, functions(mix=impl)))) == 5
    assert_same(shop)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_products_of_groups(shop):
    """LibTorch multiplies no groups of float64: the double run has other code for them."""
    traced(shop, lambda ops, h, x, model: ops.grouped(h, torch.outer(model.weight, model.weight).expand(h.size(0), 16, 16).contiguous()))
    report = kernelized(shop, functions(grouped="by_batch"))
    assert named(report) == ["grouped"], report["sites"]
    assert report["sites"][0]["max_error"] < 1e-5
    assert_same(shop)


def test_a_function_that_calls_what_others_call(shop):
    """Its proof computes in double; what it calls does elsewhere what it did."""
    traced(shop, lambda ops, h, x, model: ops.helped(h) + ops.by_one(x))
    report = kernelized(shop, functions(helped="helped"))
    assert named(report) == ["helped"], report["sites"]
    assert_same(shop)


def test_a_wrong_function_is_kept(shop):
    traced(shop, lambda ops, h, x, model: ops.mix(*ops.min_max(ops.mix(h, x))))
    report = kernelized(shop, functions(mix="wrong_mix", min_max="half_wrong"))
    assert named(report) == [] and len(report["sites"]) == 3
    assert all("its error is" in site["because"] for site in report["sites"])
    done = shop("kernelize", "model.pt", "--inputs", "float32[2,5,16]", "--strict")
    assert done.code == 6 and "its error is" in done.err


def test_without_inputs_nothing_can_be_proved(shop):
    traced(shop, several)
    (shop.folder / "twinkle.toml").write_text(functions(mix="mix"))
    done = shop("kernelize", "model.pt", "-o", "fast.pt", "--json")
    assert done.code == 0 and done.json["kept"] == 5
    assert {"--inputs" in site["because"] for site in done.json["sites"]} == {True}


@pytest.mark.parametrize("frozen", [False, True])
def test_arguments_that_the_trace_has_baked_in(shop, frozen):
    def body(ops, h, x, model):
        return ops.scaled(ops.scaled(h, 3.0), shift=0.25) + ops.normalize(x, model.weight, 1e-3) + ops.scaled(x)

    traced(shop, body, frozen)
    report = kernelized(shop, functions(scaled="scaled", normalize="normalize"))
    assert sorted(named(report)) == ["normalize", "scaled", "scaled#2", "scaled#3"], report["sites"]
    assert_same(shop)


@pytest.mark.parametrize("frozen", [False, True])
def test_several_results_nested_calls_and_shared_values(shop, frozen):
    def body(ops, h, x, model):
        low, high = ops.min_max(h)
        first, second = ops.swap(x, h)
        y = ops.normalize_range(x) + first * second
        h = ops.normalize(y, model.weight) + y.float()  # a trace hands on the function's own y.float()
        return h * (high - low) + high + low

    traced(shop, body, frozen)
    names = {name: name for name in ("min_max", "swap", "normalize_range", "normalize")}
    report = kernelized(shop, functions(**names))
    because = {site["site"].split(".")[-1]: site["because"] for site in report["sites"]}
    assert sorted(named(report)) == ["min_max", "normalize", "normalize_range", "swap"], because
    assert named(report, "kept") == ["min_max#2"] and because["min_max#2"] == "nothing that is left calls it"
    assert_same(shop)
    # Where the outer one stays, the inner one is replaced.
    report = kernelized(shop, functions(min_max="min_max"))
    assert named(report) == ["min_max", "min_max#2"]
    assert_same(shop)


def test_functions_of_one_name_in_two_modules(shop):
    traced(shop, lambda ops, h, x, model: ops.mix(h, x) + shop.other.mix(h, x))
    report = kernelized(shop, functions(mix="mix"))
    assert named(report) == ["mix"] and len(report["sites"]) == 1
    assert_same(shop)
    report = kernelized(shop, functions(mix="mix").replace("shop.ops", "ops"))  # both are in a file ops.py
    assert len(report["sites"]) == 2 and report["replaced"] == 1 and report["kept"] == 1
    assert_same(shop)


def test_what_cannot_be_cut_out_is_kept(shop):
    def body(ops, h, x, model):
        return ops.bumped(h) + ops.applied(x, model.linear) + ops.dropped(x)

    traced(shop, body)
    manifest = functions(bumped="bumped", applied="bumped", dropped="dropped")
    (shop.folder / "twinkle.toml").write_text(manifest)
    done = shop("kernelize", "model.pt", "-o", "fast.pt", "--inputs", "float32[2,5,16]", "--json")
    because = {site["of"].split(".")[-1]: site["because"] for site in done.json["sites"]}
    assert done.json["replaced"] == 0
    assert "aten::add_ writes into a tensor" in because["bumped"]
    assert "aten::dropout is random" in because["dropped"]


def test_a_function_that_hangs_takes_nothing_down(shop):
    traced(shop, lambda ops, h, x, model: ops.mix(h, x) + ops.scaled(x))
    (shop.folder / "fast.py").write_text(FAST + """

def endless(x, y):
    while bool((x == x).all()):
        x = x + y * 0
    return x
""")
    shop.env["TWINKLE_SANDBOX_SECONDS"] = "5"
    report = kernelized(shop, functions(mix="endless", scaled="scaled"))
    assert named(report) == ["scaled"]
    assert [site["because"] for site in report["sites"] if "mix" in site["of"]] == [
        "a trace has inlined it, and it hung: nothing came for 5 s"]


ROTARY = """import torch


def rotate_half(x):
    return torch.roll(x, [x.size(-1) // 2], [-1]) * torch.cat(
        [-torch.ones_like(x[..., : x.size(-1) // 2]), torch.ones_like(x[..., x.size(-1) // 2 :])], dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    c = cos.unsqueeze(unsqueeze_dim)
    s = sin.unsqueeze(unsqueeze_dim)
    half = q.size(-1) // 2
    q2 = torch.cat([-q[..., half:], q[..., :half]], dim=-1)
    k2 = torch.cat([-k[..., half:], k[..., :half]], dim=-1)
    return q * c + q2 * s, k * c + k2 * s


def wrong_rotary(q, k, cos, sin):
    q2, k2 = apply_rotary_pos_emb(q, k, cos, sin)
    return q2, k2 * 1.001


def repeat_kv(hidden_states, n_rep):
    return hidden_states.repeat_interleave(n_rep, dim=1)


def attention(query, key, value, attention_mask, scaling):
    groups = query.size(1) // key.size(1)
    y = torch.nn.functional.scaled_dot_product_attention(
        query, key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1),
        attn_mask=attention_mask, scale=scaling)
    return y.transpose(1, 2).contiguous()
"""

def transformers_functions(family, names):
    return "presets = []\n" + "".join(
        f'[functions.{function}]\ntarget_module = "{module}"\nfunc_impl = "rotary.py:{impl}"\n'
        for function, impl in names
        for module in ["transformers.integrations.sdpa_attention" if function in ("repeat_kv", "sdpa_attention_forward")
                       else f"transformers.models.{family}.modeling_{family}"])


def of_transformers(twinkle, path, manifest):
    """Kernelized on the inputs that the model was traced with; run on others, beside a run in double precision."""
    twinkle.env["OMP_NUM_THREADS"] = "1"
    (twinkle.folder / "rotary.py").write_text(ROTARY)
    (twinkle.folder / "twinkle.toml").write_text(manifest)
    data = torch.load(path.with_suffix(".io.pt"), weights_only=True)
    for i, inputs in enumerate(data["inputs"]):
        torch.save(inputs, twinkle.folder / f"in{i}.pt")
    model = twinkle.folder / "frozen.pt" if (twinkle.folder / "frozen.pt").exists() else path
    done = twinkle("kernelize", str(model), "-o", "fast.pt", "--inputs", "in0.pt", "--verify", "--json")
    assert done.code == 0, done.err
    original = torch.jit.load(path)
    for i, (inputs, expected) in enumerate(zip(data["inputs"], data["expected"], strict=True)):
        ran = twinkle("run", "fast.pt", "--inputs", f"in{i}.pt", "-o", "out.pt")
        assert ran.code == 0, ran.err
        result = torch.load(twinkle.folder / "out.pt", weights_only=True).double()
        own = (original(*inputs).double() - expected).norm()
        assert (result - expected).norm() <= 1.5 * own + 2**-20 * expected.norm()
    return done.json


@pytest.mark.parametrize("name, frozen", [
    ("qwen2", False), ("qwen2", True), ("llama_bfloat16", True), ("phi3_float16", False)])
def test_rotary_of_transformers(twinkle, name, frozen):
    family = name.split("_")[0]
    path = made_models() / "traced" / f"{name}.pt"
    if frozen:
        torch.jit.freeze(torch.jit.load(path)).save(twinkle.folder / "frozen.pt")
    both = [("apply_rotary_pos_emb", "apply_rotary_pos_emb"), ("rotate_half", "rotate_half")]
    report = of_transformers(twinkle, path, transformers_functions(family, both))
    by_status = {status: [site for site in report["sites"] if site["status"] == status]
                 for status in ("replaced", "kept", "reverted")}
    assert [site["of"].split(".")[-1] for site in by_status["replaced"]] == ["apply_rotary_pos_emb"] * 2
    assert [site["because"] for site in by_status["kept"]] == ["nothing that is left calls it"] * 4
    report = of_transformers(twinkle, path, transformers_functions(family, both[1:]))
    assert report["replaced"] == 4
    wrong = [("apply_rotary_pos_emb", "wrong_rotary")]
    if not name.endswith("bfloat16"):  # which does not see a thousandth
        report = of_transformers(twinkle, path, transformers_functions(family, wrong))
        assert report["replaced"] == 0 and all("its error is" in site["because"] for site in report["sites"])


@pytest.mark.parametrize("name, frozen", [("qwen2", True), ("gpt2", False)])
def test_attention_of_transformers(twinkle, name, frozen):
    path = made_models() / "traced" / f"{name}.pt"
    if frozen:
        torch.jit.freeze(torch.jit.load(path)).save(twinkle.folder / "frozen.pt")
    report = of_transformers(twinkle, path, transformers_functions(name, [("sdpa_attention_forward", "attention")]))
    assert report["replaced"] == 2, json.dumps(report["sites"])
    if name != "gpt2":
        report = of_transformers(twinkle, path, transformers_functions(name, [("repeat_kv", "repeat_kv")]))
        assert report["replaced"] == 4, json.dumps(report["sites"])
