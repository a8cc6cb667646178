"""Models of torch.export: those that are traced, too, and what else people export.

Each is NAME.pt2 with NAME.io.pt: a list of calls (positional and named inputs, and what the exported program gives for
them), and for models that remember something the same calls in a row.
"""

import copy
import pathlib
import warnings
from dataclasses import dataclass

import torch
import torch.nn.functional as F
import transformers as hf
from torch import nn
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch.export import Dim
from transformers_traced import DECODER, DTYPES, FAMILIES, give_strong_weights, inputs_of

AUTO = Dim.AUTO


@dataclass
class Exported:
    model: nn.Module
    calls: list  # of positional inputs, or of pairs of positional and named ones; the first is the example
    dynamic: object = None
    strict: bool = False
    decomposed: bool = False


def randn(*shape, seed=1, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


# Models of transformers ----------------------------------------------------------------------------------------------

TEXT = {0: AUTO, 1: AUTO}
SHAPES = {"tokens": (TEXT,), "two texts": (TEXT, TEXT), "image": ({0: AUTO},), "sound": ({0: AUTO},)}


def of_family(name: str, dtype: torch.dtype = torch.float32, eager: bool = False, **how) -> Exported:
    make, kind = FAMILIES[name]
    torch.manual_seed(7)
    model = make().eval()
    if eager:
        model.model.set_attn_implementation("eager")
    give_strong_weights(model, 3)
    model = model.to(dtype)

    def inputs(batch, length, seed):
        given = inputs_of(kind, batch, length, seed)
        return tuple(x.to(dtype) if x.is_floating_point() else x for x in given)

    return Exported(model, [inputs(2, 9, 1), inputs(3, 14, 2), inputs(1, 7, 3)], SHAPES[kind], **how)


def whole_llama() -> Exported:
    """As transformers has it: keyword arguments, some of them constants, an output by key."""
    torch.manual_seed(7)
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**DECODER)).eval()
    give_strong_weights(model, 3)

    def call(batch, length, seed):
        return (), {"input_ids": inputs_of("tokens", batch, length, seed)[0], "use_cache": False}

    return Exported(model, [call(2, 9, 1), call(3, 4, 2)], {"input_ids": TEXT, "use_cache": None})


def whole_bert() -> Exported:
    torch.manual_seed(7)
    model = hf.BertModel(hf.BertConfig(hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
                                       vocab_size=96, max_position_embeddings=64)).eval()
    give_strong_weights(model, 3)

    def call(batch, length, seed):
        ids = inputs_of("tokens", batch, length, seed)[0]
        mask = torch.ones_like(ids)
        mask[:, -2:] = 0
        return (), {"input_ids": ids, "attention_mask": mask}

    return Exported(model, [call(2, 9, 1), call(4, 5, 2)], {"input_ids": TEXT, "attention_mask": TEXT})


def t5_encoder() -> Exported:
    from transformers_traced import FirstOutput, t5_config
    torch.manual_seed(7)
    model = FirstOutput(hf.T5EncoderModel(t5_config())).eval()
    give_strong_weights(model, 3)
    return Exported(model, [inputs_of("tokens", b, n, b) for b, n in ((2, 9), (3, 14))], (TEXT,))


# Our own -------------------------------------------------------------------------------------------------------------


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.body = nn.ModuleList([nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=2), nn.GroupNorm(2, 8), nn.SiLU())
                                   for _ in range(2)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = self.stem(x)
        for block in self.body:
            x = x + block(x)
        return self.head(self.pool(x).flatten(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 8, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.lstm(x)


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(4, 8))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long), persistent=False)

    def forward(self, x, position):
        self.keys.index_copy_(0, position, x)
        self.calls.add_(1)
        return self.keys.cumsum(0) * self.calls


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.small, self.large = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        by_size = torch.cond(x.shape[0] > 4, lambda x: self.large(x), lambda x: self.small(x).sin(), (x,))
        return torch.cond(x.sum() > 0, lambda x: x.cos(), lambda x: x - 1, (by_size,))


class Loop(nn.Module):
    def forward(self, n, x):
        return torch._higher_order_ops.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, x * 1.5 + n), (n, x))


class MapAndScan(nn.Module):
    def forward(self, xs, y):
        total, products = scan(lambda carry, x: (carry + x, carry * x), y, xs)
        return map_over(lambda x, y: x * y + 1, xs, y), total, products


class Nested(nn.Module):
    def forward(self, pair, table, items):
        a, b = pair
        return {"sum": a + table["x"], "parts": (b[0] * table["y"], [items[0], items[1] - 1], None), "rows": a.shape[0]}


class Scalars(nn.Module):
    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 2)
        torch._check(k <= 8)
        return x[:k] * k, x.new_ones(k), x + k


class Sizes(nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        half = x.reshape(rows * columns // 2, 2)
        return half.sum(0), x.sum() / rows, x * (columns ** 2 % 7), x.new_zeros(max(rows, 3), min(columns, 8)), rows / 3


class Derived(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, x]) + y


class Guarded(nn.Module):
    def forward(self, x, y):
        if x.shape[1] <= 30 and x.shape[0] % 2 == 0:
            return x.view(2, -1).sum(0), y[: x.shape[1]] + 1
        return x, y


class Constants(nn.Module):
    def forward(self, x, power: int, scale: float = 2.0, flag: bool = True, mode: str = "plus", other=None):
        x = x ** power * scale
        return x + 1 if mode == "plus" and flag and other is None else x


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 9, bias=False)
        self.head.weight = self.embedding.weight
        self.norms = nn.ModuleList([nn.LayerNorm(4)] * 2)
        self.table = torch.arange(4.0)

    def forward(self, x):
        y = self.embedding(x)
        for norm in self.norms:
            y = norm(y) + self.table
        first, second = y.chunk(2, -1)
        values, indices = y.max(-1)
        return self.head(y), first * second, values, indices, torch.split(y, [1, 3], -1)[1], y[values > 0]


class Changes(nn.Module):
    def forward(self, x, out):
        out.copy_(x * 2)
        x.add_(1)
        return x + out


class Quiet(nn.Module):
    """Parts without gradients, and one that is cast as it runs."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        with torch.no_grad():
            scale = self.first(x).abs().mean()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = F.softmax(self.second(x) @ x.transpose(-1, -2), -1)
        return y.float() * scale


class Drops(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.linear = nn.Linear(6, 6)

    def forward(self, x):
        return self.linear(F.dropout(self.norm(x), 0.0, training=True))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(8, 16), nn.GELU("tanh"), nn.Linear(16, 8))
                                      for _ in range(4)])

    def forward(self, x):
        weight, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        result = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            result = result + expert(x) * torch.where(chosen == index, weight, 0.0).sum(-1, keepdim=True)
        return result


class Aggregate(nn.Module):
    """A module that is called several times, and one that calls itself through another."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        self.other = nn.ModuleDict({"inner-one": self.shared, "last": nn.Linear(6, 6)})

    def forward(self, x):
        x = self.shared(x)
        x = self.other["inner-one"](x)
        return self.other["last"](self.shared[0](x))


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.0)

    def forward(self, x):
        return self.layer(self.attention(x, x, x, need_weights=False)[0])


def own() -> dict[str, Exported]:
    rows = {0: AUTO}
    some = Dim("some", min=3, max=12)
    torch.manual_seed(11)
    return {
        "cnn": Exported(Residual().eval(), [(randn(2, 3, 8, 8),), (randn(5, 3, 8, 8, seed=2),)], (rows,)),
        "cnn_trains": Exported(Residual().train(), [(randn(4, 3, 8, 8),), (randn(4, 3, 8, 8, seed=2),)], (rows,)),
        "cnn_decomposed": Exported(Residual().train(), [(randn(4, 3, 8, 8),), (randn(3, 3, 8, 8, seed=2),)], (rows,),
                                   decomposed=True),
        "lstm": Exported(Recurrent(), [(randn(2, 7, 8),), (randn(4, 7, 8, seed=2),)], (rows,)),
        "cache": Exported(Cache(), [(randn(2, 8), torch.tensor([0, 1])), (randn(2, 8, seed=2), torch.tensor([3, 1]))]),
        "cache_decomposed": Exported(Cache(), [(randn(2, 8), torch.tensor([0, 1])),
                                               (randn(2, 8, seed=2), torch.tensor([3, 1]))], decomposed=True),
        "branches": Exported(Branches(), [(randn(6, 6),), (randn(3, 6, seed=2),), (-randn(6, 6).abs(),)], (rows,)),
        "loop": Exported(Loop(), [(torch.tensor(0), randn(3)), (torch.tensor(2), randn(3)), (torch.tensor(5), randn(3))]),
        "map": Exported(MapAndScan(), [(randn(3, 4), randn(4, seed=2))]),
        "nested": Exported(Nested(), [((randn(3, 2), [randn(3, 2)]), {"x": randn(3, 2), "y": randn(3, 2)},
                                       [randn(2), randn(2)])]),
        "scalars": Exported(Scalars(), [(randn(8, 6), torch.tensor(3)), (randn(8, 6), torch.tensor(7))]),
        "sizes": Exported(Sizes(), [(randn(6, 4),), (randn(9, 10, seed=2),)], (TEXT,)),
        "derived": Exported(Derived(), [(randn(4, 2), randn(8, 2)), (randn(7, 2), randn(14, 2))],
                            ({0: some}, {0: 2 * some})),
        "guarded": Exported(Guarded(), [(randn(4, 6), randn(20)), (randn(8, 10), randn(30))], (TEXT, rows)),
        "constants": Exported(Constants(), [(randn(2, 8), 3)]),
        "dynamic_integer": Exported(Constants(), [(randn(2, 8), 3), (randn(2, 8), 2)],
                                    {"x": None, "power": Dim.DYNAMIC}),
        "tied": Exported(Tied(), [(torch.randint(0, 9, (2, 7)),), (torch.randint(0, 9, (3, 7)),)], (rows,)),
        "changes": Exported(Changes(), [(randn(3), torch.zeros(3))]),
        "changes_decomposed": Exported(Changes(), [(randn(3), torch.zeros(3))], decomposed=True),
        "quiet": Exported(Quiet(), [(randn(4, 8),), (randn(6, 8, seed=2),)], (rows,)),
        "drops": Exported(Drops().train(), [(randn(4, 6),), (randn(9, 6, seed=2),)], (rows,)),
        "experts": Exported(Experts(), [(randn(5, 8),), (randn(3, 8, seed=2),)], (rows,)),
        "shared": Exported(Aggregate(), [(randn(4, 6),)]),
        "heads": Exported(Heads().eval(), [(randn(2, 5, 16),), (randn(3, 8, 16, seed=2),)], (TEXT,)),
        "heads_bfloat16": Exported(Heads().eval().bfloat16(), [(randn(2, 5, 16, dtype=torch.bfloat16),)], (TEXT,)),
    }


def all_models() -> dict[str, Exported]:
    models = own()
    models |= {name: of_family(name) for name in FAMILIES}
    models |= {f"{name}_bfloat16": of_family(name, torch.bfloat16) for name in ("llama", "bert", "vit")}
    models |= {f"{name}_float16": of_family(name, torch.float16) for name in ("qwen2", "gpt2")}
    models |= {f"{name}_eager": of_family(name, eager=True) for name in ("llama",)}
    models |= {f"{name}_strict": of_family(name, strict=True) for name in ("bert", "vit")}
    models |= {f"{name}_decomposed": of_family(name, decomposed=True) for name in ("llama", "bert")}
    return models | {"whole_llama": whole_llama(), "whole_bert": whole_bert(), "t5_encoder": t5_encoder()}


def as_call(call):
    return call if len(call) == 2 and isinstance(call[0], tuple) and isinstance(call[1], dict) else (call, {})


def plain(value):
    """Outputs of models as dictionaries, which every reader of files has."""
    if isinstance(value, hf.utils.ModelOutput):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return type(value)(plain(one) for one in value) if isinstance(value, (tuple, list)) else value


def save(folder: pathlib.Path, name: str, one: Exported) -> None:
    calls = [as_call(call) for call in one.calls]
    args, kwargs = copy.deepcopy(calls[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(one.model, args, kwargs, dynamic_shapes=one.dynamic, strict=one.strict)
        if one.decomposed:
            program = program.run_decompositions()
        torch.export.save(program, folder / f"{name}.pt2")
    module = torch.export.load(folder / f"{name}.pt2").module()
    results = []
    for args, kwargs in calls:
        given = copy.deepcopy((args, kwargs))
        with torch.no_grad():
            result = plain(module(*args, **kwargs))  # which may change its inputs
        results.append({"args": given[0], "kwargs": given[1], "after": plain(args), "result": copy.deepcopy(result)})
    torch.save(results, folder / f"{name}.io.pt")


def make(folder: pathlib.Path) -> None:
    for name, one in all_models().items():
        save(folder, name, one)
