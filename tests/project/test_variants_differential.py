"""Which builds run on a system, and which is preferred: against the decisions of the installed `kernels`, and where
its own are random, that ours are not."""

import functools
import random

from kernels.backends import parse_backend
from kernels.variants import VariantAccepted, _resolve_variant_for_system, _sort_variants, parse_variant
from packaging.version import Version

BACKENDS = ["cpu", "cu126", "cu128", "cu129", "cu130", "cu131", "cu118", "rocm63", "rocm71", "xpu20252", "xpu20253",
            "cann83", "metal", "neuron", "tpu"]
DEVICES = {"cu": "cuda", "rocm": "rocm", "xpu": "xpu", "cann": "npu", "metal": "mps", "neuron": "neuron", "tpu": "tpu",
           "cpu": "cpu"}
TORCH = ["2.7", "2.8", "2.9", "2.10", "2.11", "2.13", "3.0"]
TVM_FFI = ["0.1", "0.2", "1.0"]
NOARCH = ["cpu", "cuda", "rocm", "xpu", "npu", "metal", "neuron", "tpu", "universal"]
SYSTEMS = 800


def system(rng):
    os = rng.choices(["linux", "darwin", "windows"], [6, 2, 1])[0]
    return {
        "backend": rng.choice(["metal", "metal", "cpu"] if os == "darwin" else BACKENDS),
        "cpu": rng.choice(["x86_64", "x86_64", "aarch64"]),
        "os": os,
        "torch": rng.choice([*TORCH, None]),
        "cxx11": rng.choice([True, True, False]) if os == "linux" else None,
        "tvm-ffi": rng.choice([*TVM_FFI, None]),
        "macos": rng.choice([None, "15.6", "26.0", "26.1", "27.2"]) if os == "darwin" else None,
    }


def variant(rng, near):
    """A name that often fits the system, or nearly."""
    def pick(own, others):
        return own if own is not None and rng.random() < 0.7 else rng.choice(others)

    if rng.random() < 0.15:
        return "torch-" + rng.choice(NOARCH)
    backend = pick(near["backend"], BACKENDS)
    if backend.startswith("cu") and rng.random() < 0.5:
        backend = rng.choice(["cu126", "cu128", "cu130", "cu131"])
    platform = f"{backend}-{pick(near['cpu'], ['x86_64', 'aarch64'])}-{pick(near['os'], ['linux', 'darwin', 'windows'])}"
    framework = rng.choice(["torch", "torch", "torch-stable-abi", "tvm-ffi"])
    version = pick(near["tvm-ffi"], TVM_FFI) if framework == "tvm-ffi" else pick(near["torch"], TORCH)
    tag = rng.choice(["", "", "-cxx11", "-cxx98"]) if framework == "torch" else ""
    return f"{framework}{version.replace('.', '')}{tag}-{platform}"


def target_text(near):
    values = {key: "none" if value is None else "1" if value is True else "0" if value is False else value
              for key, value in near.items()}
    return ",".join(f"{key}={value}" for key, value in {**values, "arch": "none"}.items())


def decide(near, names, device):
    """The reference's accepted builds, each with its rank; equal ranks come in random order."""
    def version(text):
        return None if text is None else Version(text)

    backend = parse_backend("cpu" if device == "cpu" else near["backend"])
    accepted, trace = _resolve_variant_for_system(
        [parse_variant(name) for name in names], backend, near["cpu"], near["os"], version(near["torch"]),
        near["cxx11"], version(near["tvm-ffi"]), version(near["macos"]))
    assert len(trace) == len(names)
    return {build.variant_str: rank_of(build.variant_str) for build in accepted}


@functools.cache
def rank_of(name):
    """By pairs: how the reference's own sort puts this build against each of a ladder of others."""
    build = parse_variant(name)
    ladder = [parse_variant(name) for name in LADDER]
    before = 0
    for step in ladder:
        two = [VariantAccepted(step), VariantAccepted(build)]
        there = _sort_variants(two)[0] is two[0]
        back = _sort_variants(two[::-1])[0] is two[0]
        before += there + back  # 2: the step is better, 1: they are equal, 0: the build is better
    return before


# Every rank that a build of these tests can have.
LADDER = [f"torch-stable-abi{t.replace('.', '')}-{b}-x86_64-linux" for t in TORCH for b in BACKENDS] + [
    f"torch29{tag}-{b}-x86_64-linux" for tag in ("", "-cxx11") for b in BACKENDS] + [
    f"tvm-ffi01-{b}-x86_64-linux" for b in BACKENDS] + ["torch-cpu", "torch-universal"]


def cases():
    rng = random.Random(20)
    for _ in range(SYSTEMS):
        near = system(rng)
        names = sorted({variant(rng, near) for _ in range(rng.randrange(1, 16))})
        if rng.random() < 0.2 and near["tvm-ffi"]:  # two that the reference cannot tell apart
            names = sorted({*names, "torch-cpu", f"tvm-ffi{near['tvm-ffi'].replace('.', '')}-cpu-{near['cpu']}-{near['os']}"})
        own = DEVICES[near["backend"].rstrip("0123456789")]
        yield near, names, rng.choice([own, own, "cpu"])


def test_decisions_are_those_of_the_reference(ask):
    all_cases = list(cases())
    answers = ask([{"do": "rank", "variants": [{"name": name} for name in names], "target": target_text(near),
                    "device": device} for near, names, device in all_cases])
    accepted = ties = pairs = 0
    for (near, names, device), answer in zip(all_cases, answers):
        python = decide(near, names, device)
        ours = answer.get("accepted")
        assert ours is not None, (near, answer)
        assert set(ours) == set(python), (near, device, answer)
        assert set(ours) | set(answer["rejected"]) == set(names)
        assert all(answer["rejected"].values())
        # Better first; the reference says nothing about equal ones.
        assert [python[name] for name in ours] == sorted(python.values()), (near, device, ours)
        best = min(python.values(), default=None)
        ties += list(python.values()).count(best) > 1
        accepted += bool(ours)
        pairs += len(names)
    assert len(all_cases) >= 200 and accepted > 300 and ties > 10 and pairs > 4000


def test_equal_builds_are_in_the_same_order_every_time(ask):
    rng = random.Random(21)
    for near, names, device in list(cases())[:100]:
        shuffled = [rng.sample(names, len(names)) for _ in range(5)]
        answers = ask([{"do": "rank", "variants": [{"name": name} for name in some], "target": target_text(near),
                        "device": device} for some in shuffled])
        assert all(answer["accepted"] == answers[0]["accepted"] for answer in answers)


def test_builds_for_other_gpus_are_passed_over(ask):
    """The reference takes the first and fails when it is loaded."""
    variants = [{"name": "torch-stable-abi29-cu130-x86_64-linux", "archs": ["9.0a", "10.0"]},
                {"name": "torch213-cu130-x86_64-linux", "archs": ["8.0", "9.0"]},
                {"name": "torch-cuda"}]
    system = "torch=2.13,cxx11=1,backend=cu130,cpu=x86_64,os=linux,tvm-ffi=none,macos=none"
    expected = {"9.0": 0, "8.6": 1, "10.3": 0, "12.0": 2, "none": 0}
    answers = ask([{"do": "rank", "variants": variants, "target": f"{system},arch={arch}", "device": "cuda"}
                   for arch in expected])
    assert [answer["accepted"][0] for answer in answers] == [variants[i]["name"] for i in expected.values()]
