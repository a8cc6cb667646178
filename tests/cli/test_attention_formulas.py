"""The formulas of presets/attention.py, run as Python: what the pack has in their place computes the same, also where the
operators refuse or would read their mask in another way."""

import importlib.util
import inspect
import math
import pathlib
import sys

import pytest
import torch
from kernels_for_tests import PREFIX, needs_runtime

pytestmark = needs_runtime


def imported(name, path, **options):
    spec = importlib.util.spec_from_file_location(name, path, **options)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PRESETS = pathlib.Path(__file__).resolve().parents[2] / "kernels/presets"
attention = imported("attention", PRESETS / "attention.py")
HELPERS = {"scores", "weights", "weights_by_float32", "left_out", "mixed", "repeated", "repeated_by"}
FORMULAS = {name: function for name, function in inspect.getmembers(attention, inspect.isfunction)
            if function.__module__ == "attention" and name not in HELPERS}
REPLACEMENTS = {"biased": "biased_attention", "grouped": "grouped_attention", "left_out": "attention_left_out",
                "dropout": "attention_dropout", "exported": "exported_grouped_attention"}
torch.set_num_threads(1)  # threads that wait for each other cost more than they gain here
ROUNDOFF = {torch.float32: 6e-8, torch.bfloat16: 4e-3, torch.float16: 5e-4}


@pytest.fixture(scope="module", params=["pack", "PyTorch"])
def replacement_of(request):
    """By the pack's copy of the file, and by PyTorch's operator alone."""
    if request.param == "pack":
        build = next((PREFIX / "lib/twinkle/kernels/twinkle-pack/build").iterdir())
        pack = imported("pack_of_attention_formulas", build / "__init__.py", submodule_search_locations=[str(build)])
    else:
        pack = imported("written_attention", PRESETS / "written_attention.py")

    def of(name):
        return getattr(pack, "fused_" + next((other for word, other in REPLACEMENTS.items() if name.startswith(word)),
                                             "written_attention"))

    return of


@pytest.fixture(params=[True, False], ids=["inference", "grad enabled"])
def by_the_pack(request):
    """The pack's operator is for inference alone."""
    with torch.inference_mode(request.param):
        yield


def arguments(name, shape, dtype, generator, mask="float"):
    """What each parameter of the formula stands for; those that it does not use have their defaults."""
    batch, heads, group, length, keys, width = shape
    q, k, v = (torch.randn(batch, h, n, width, generator=generator).to(dtype)
               for h, n in ((heads * group, length), (heads, keys), (heads, keys)))
    masked = torch.rand(batch, 1, length, keys, generator=generator) < 0.3
    masked[..., 0] = False
    additive = torch.zeros(batch, 1, length, keys).masked_fill(masked, torch.finfo(dtype).min)
    additive[:, :, 0] = torch.finfo(dtype).min  # a row that sees nothing: the mean of all
    masks = {"float": additive.to(dtype), "two": additive[0, 0].to(dtype), "heads": torch.randn(1, heads * group, length, keys),
             "one": additive[0, 0, -1].to(dtype), "larger": torch.randn(3 * batch, 1, length, keys).to(dtype),
             "wide": additive.double(), "bool": masked}
    bias = torch.randn(1, heads * group, length, keys, generator=torch.Generator().manual_seed(1)).to(dtype)
    values = {"bias": bias, "q": q, "k": k, "v": v, "rows": 2, "columns": 3, "group": group, "mask": masks[mask].to(
        torch.bool if "left_out" in name else masks[mask].dtype), "scale": 1 / math.sqrt(width), "divisor": math.sqrt(width),
        "p": 0.25, "training": False, "batch": batch, "heads": heads, "all_heads": heads * group, "length": keys, "width": width}
    if "left_out" in name:
        values["mask"] = masked if mask == "float" else masked[:1]
    parameters = inspect.signature(FORMULAS[name]).parameters
    used = FORMULAS[name].__code__
    for key, parameter in parameters.items():
        if parameter.default is not inspect.Parameter.empty and key not in reads(used):
            values[key] = parameter.default
    return {key: values[key] for key in parameters}


def reads(code):
    return {code.co_varnames[i] for i in range(code.co_argcount) if any(
        one.argval == code.co_varnames[i] or (isinstance(one.argval, tuple) and code.co_varnames[i] in one.argval)
        for one in __import__("dis").get_instructions(code))}


def in_double(values):
    return {key: one.double() if isinstance(one, torch.Tensor) and one.is_floating_point() else one
            for key, one in values.items()}


def error(result, expected):
    return ((result.double() - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_and_its_replacement(by_the_pack, replacement_of, name, dtype):
    generator = torch.Generator().manual_seed(3)
    group = 2 if name.startswith(("grouped", "exported")) else 1
    for shape in ((2, 2, group, 5, 7, 16), (1, 4, group, 1, 33, 24), (3, 1, group, 17, 17, 9), (1, 2, group, 70, 140, 64)):
        values = arguments(name, shape, dtype, generator)
        exact = torch.float64 if "by_float32" in name else None
        own = FORMULAS[name](**values)
        result = replacement_of(name)(**values)
        assert result.dtype == own.dtype and result.shape == own.shape
        assert result.reshape(-1).shape == own.contiguous().reshape(-1).shape
        double = {**in_double(values)}
        plain = name.replace("_by_float32", "") if exact else name
        expected = FORMULAS[plain](**double)
        assert error(result, expected) <= max(1.5 * error(own, expected), ROUNDOFF[dtype]), shape


@pytest.mark.parametrize("mask", ["two", "heads", "one", "larger", "wide"])
def test_masks_of_other_shapes_and_dtypes(by_the_pack, replacement_of, mask):
    """Whatever the sum takes: what the operator refuses is left to the formula."""
    generator = torch.Generator().manual_seed(4)
    values = arguments("masked", (1, 2, 1, 5, 7, 16), torch.float32, generator, mask)
    if mask == "wide":
        with pytest.raises(RuntimeError):
            FORMULAS["masked"](**values)
        values["v"] = values["v"].double()
    own, result = FORMULAS["masked"](**values), replacement_of("masked")(**values)
    assert result.dtype == own.dtype and result.shape == own.shape
    torch.testing.assert_close(result, own, rtol=0, atol=1e-6)


def test_numbers_that_are_added_as_a_mask(by_the_pack, replacement_of):
    """A sum with flags adds ones; the operator would leave scores out."""
    generator = torch.Generator().manual_seed(5)
    values = arguments("masked", (2, 2, 1, 5, 7, 16), torch.float32, generator, "bool")
    assert values["mask"].dtype == torch.bool
    torch.testing.assert_close(replacement_of("masked")(**values), FORMULAS["masked"](**values), rtol=0, atol=1e-6)


@pytest.mark.parametrize("bias, mask", [(torch.bool, torch.bool), (torch.int8, torch.int8), (torch.bfloat16, torch.bfloat16),
                                        (torch.float32, torch.bfloat16)])
def test_two_sums_of_other_dtypes(by_the_pack, replacement_of, bias, mask):
    """Added to each other first they would be rounded, wrap around, or be one flag."""
    generator = torch.Generator().manual_seed(10)
    values = arguments("biased", (2, 2, 1, 5, 7, 16), torch.float32, generator)
    sums = torch.randn(2, 5, 7, generator=generator) * 60
    values["bias"], values["mask"] = (one > 0 if dtype == torch.bool else one.to(dtype) for one, dtype in zip(sums, (bias, mask)))
    torch.testing.assert_close(replacement_of("biased")(**values), FORMULAS["biased"](**values), rtol=0, atol=1e-5)


# Sizes of q, k, v and the mask. An empty tensor is spread where another has one; masks widen a single key.
UNUSUAL = {
    "a batch of v": ((1, 3, 1, 4), (1, 3, 0, 4), (2, 3, 0, 4), None),
    "heads of v": ((1, 1, 0, 9), (1, 1, 1, 9), (1, 2, 1, 5), None),
    "no row in the mask": ((1, 2, 1, 4), (1, 2, 2, 4), (1, 2, 2, 4), (0, 2)),
    "no head in the mask": ((2, 1, 1, 9), (2, 1, 3, 9), (2, 1, 3, 3), (1, 0, 1, 3)),
    "a single key": ((1, 2, 5, 4), (1, 2, 1, 4), (1, 2, 7, 4), (1, 2, 5, 7)),
}


@pytest.mark.parametrize("case", UNUSUAL)
def test_what_is_spread_over_others(by_the_pack, replacement_of, case):
    q, k, v, mask = (size and torch.randn(size) for size in UNUSUAL[case])
    values = {"q": q, "k": k, "v": v, "rows": 2, "columns": 3, "mask": mask, "scale": 0.5, "divisor": 1.0}
    own, result = FORMULAS["masked" if mask is not None else "scaled"](**values), replacement_of("masked")(**values)
    torch.testing.assert_close(result, own, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 2, 1, 4), (1, 2, 7, 1)])
def test_numbers_of_an_exported_model_that_are_not_those_of_its_keys(by_the_pack, replacement_of, shape):
    values = arguments("exported_masked", (1, 2, 3, 5, 7, 4), torch.float32, torch.Generator().manual_seed(11))
    for name in ("k", "v"):
        values[name] = torch.randn(shape)
        torch.testing.assert_close(replacement_of("exported")(**values), FORMULAS["exported_masked"](**values), rtol=0,
                                   atol=1e-6)


@pytest.mark.parametrize("rows, columns", [(2, 3), (3, 2), (-2, -1), (-1, -2), (1, 2), (1, 3), (2, 2)])
def test_transpositions(by_the_pack, replacement_of, rows, columns):
    generator = torch.Generator().manual_seed(6)
    values = {**arguments("scaled", (2, 6, 1, 6, 6, 6), torch.float32, generator), "rows": rows, "columns": columns}
    own, result = FORMULAS["scaled"](**values), replacement_of("scaled")(**values)
    torch.testing.assert_close(result, own, rtol=0, atol=1e-6)


def test_dropout_is_that_of_the_graph(by_the_pack, replacement_of):
    """On average what it is without, and off unless it trains."""
    generator = torch.Generator().manual_seed(7)
    values = arguments("dropout_scaled", (2, 2, 1, 4, 9, 8), torch.float32, generator)
    without = replacement_of("dropout")(**values)
    torch.testing.assert_close(without, FORMULAS["dropout_scaled"](**values), rtol=0, atol=1e-6)
    torch.manual_seed(8)
    for function in (replacement_of("dropout"), FORMULAS["dropout_scaled"]):
        runs = torch.stack([function(**{**values, "training": True}) for _ in range(300)])
        assert (runs[0] - without).abs().max() > 0.01
        torch.testing.assert_close(runs.mean(0), without, rtol=0, atol=0.3)


@pytest.mark.parametrize("name", ["grouped", "grouped_masked", "scaled"])
def test_gradients(replacement_of, name):
    """Of rows that see nothing, too: PyTorch's operator has others there."""
    generator = torch.Generator().manual_seed(9)
    values = arguments(name, (2, 2, 2 if "grouped" in name else 1, 5, 7, 16), torch.float32, generator)

    def gradients(function, values):
        leaves = {key: values[key].detach().clone().requires_grad_() for key in ("q", "k", "v")}
        function(**{**values, **leaves}).square().sum().backward()
        return [one.grad for one in leaves.values()]

    expected = gradients(FORMULAS[name], in_double(values))
    for own, result, exact in zip(gradients(FORMULAS[name], values), gradients(replacement_of(name), values), expected,
                                  strict=True):
        assert error(result, exact) <= max(1.5 * error(own, exact), 3e-7)
