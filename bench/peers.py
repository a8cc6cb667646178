"""What else people run a model of models.py with, in Python: answers what contestant.py asks, as model_runner does.

    peers.py PEER MODEL DTYPE FOLDER [--device cuda] [--mode MODE]

    torch.compile          the module, as it comes from its library; MODE is that of torch.compile
    dynamic-quantization   torch.ao.quantization.quantize_dynamic, traced
    torchao-int8           weights and activations in int8, compiled; MODE is that of torch.compile, also for these:
    torchao-fp8            weights and activations in fp8, scaled by row
    torchao-int8-weights   weights in int8
    torchao-int4-weights   weights in int4, in groups of 64
    openvino-f32, -bf16    reads FOLDER/plain.pt, computes so; bf16 is what it does by itself where the CPU can
    openvino-int8          with weights that nncf has compressed to 8 bits
    onnxruntime            torch.onnx.export of FOLDER/plain.pt's module
    onnxruntime-int8       with onnxruntime.quantization.quantize_dynamic

Errors are relative to what FOLDER/exact.pt says. As many threads as torch has. What a peer needs is its own package.
"""

import argparse
import os
import pathlib
import sys
import time
import warnings

warnings.filterwarnings("ignore")

import torch  # noqa: E402

import models  # noqa: E402


def seconds_per_call(call, calls: int, wait: bool, on_gpu: bool) -> float:
    """As model_runner does: back to back (on a GPU by its own clock), or waiting for each."""
    if on_gpu and not wait:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / calls
    clock = time.process_time if "TWINKLE_BENCH_CLOCK" in os.environ else time.perf_counter  # as model_runner.cpp
    start = clock()
    for _ in range(calls):
        call()
        if on_gpu:
            torch.cuda.synchronize()
    return (clock() - start) / calls


def resident() -> float:
    """MiB of this process."""
    fields = pathlib.Path("/proc/self/status").read_text().split()
    return int(fields[fields.index("VmRSS:") + 1]) / 1024


def weigh(*files: pathlib.Path) -> float:
    return sum(file.stat().st_size for file in files) / 2**20


class Compiled:
    def __init__(self, options):
        self.model = models.build(options.model, options.dtype, options.device)
        self.call = torch.compile(self.model, dynamic=False, mode=options.mode)


class DynamicQuantization:
    def __init__(self, options):
        model = models.build(options.model, options.dtype)
        quantized = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
        self.call = torch.jit.trace(quantized, models.example(options.model, options.dtype), check_trace=False)
        file = options.folder / "dynamic.pt"
        self.call.save(file)
        self.file = weigh(file)


class TorchAo:
    def __init__(self, options):
        from torchao import quantization
        configurations = {
            "torchao-int8": lambda: quantization.Int8DynamicActivationInt8WeightConfig(),
            "torchao-fp8": lambda: quantization.Float8DynamicActivationFloat8WeightConfig(granularity=quantization.PerRow()),
            "torchao-int8-weights": lambda: quantization.Int8WeightOnlyConfig(),
            "torchao-int4-weights": lambda: quantization.Int4WeightOnlyConfig(
                group_size=64, int4_packing_format="tile_packed_to_4d"),
        }
        if not (options.folder / "exact.pt").exists():  # compared with the same weights, before they are rounded
            self.model = models.build(options.model, options.dtype, options.device)
        model = models.build(options.model, options.dtype, options.device)
        quantization.quantize_(model, configurations[options.peer]())
        self.call = torch.compile(model, dynamic=False, mode=options.mode)


class OpenVino:
    def __init__(self, options):
        import openvino
        kind = options.peer.partition("-")[2]
        example = models.example(options.model, options.dtype)
        converted = openvino.convert_model(torch.jit.load(options.folder / "plain.pt"), example_input=example)
        hints = {"INFERENCE_NUM_THREADS": torch.get_num_threads(), "PERFORMANCE_HINT": "LATENCY"}
        if kind == "int8":
            import nncf
            converted = nncf.compress_weights(converted, mode=nncf.CompressWeightsMode.INT8_ASYM)
        else:
            hints["INFERENCE_PRECISION_HINT"] = kind
        file = options.folder / f"{options.peer}.xml"
        openvino.save_model(converted, file, compress_to_fp16=False)
        self.file = weigh(file, file.with_suffix(".bin"))
        self.request = openvino.Core().compile_model(converted, "CPU", hints).create_infer_request()

    def call(self, inputs):
        return torch.from_numpy(self.request.infer([inputs.numpy()])[0])


class OnnxRuntime:
    def __init__(self, options):
        import onnxruntime
        model = models.build(options.model, options.dtype)
        file = options.folder / f"{options.peer}.onnx"
        inputs = models.example(options.model, options.dtype)
        changing = {models.changing_dimension(options.model): "size"}
        with torch.no_grad():
            torch.onnx.export(model, (inputs,), file, input_names=["x"], output_names=["y"], dynamo=False,
                              opset_version=17, dynamic_axes={"x": changing, "y": changing})
        if options.peer.endswith("int8"):
            from onnxruntime.quantization import QuantType, quantize_dynamic
            exact, file = file, file.with_suffix(".int8.onnx")
            quantize_dynamic(exact, file, weight_type=QuantType.QInt8)
        self.file = weigh(file)
        session = onnxruntime.SessionOptions()
        session.intra_op_num_threads = torch.get_num_threads()
        self.session = onnxruntime.InferenceSession(file, session, providers=["CPUExecutionProvider"])

    def call(self, inputs):
        return torch.from_numpy(self.session.run(None, {"x": inputs.numpy()})[0])


PEERS = {"torch.compile": Compiled, "dynamic-quantization": DynamicQuantization, "torchao-int8": TorchAo,
         "torchao-fp8": TorchAo, "torchao-int8-weights": TorchAo, "torchao-int4-weights": TorchAo,
         "openvino-f32": OpenVino, "openvino-bf16": OpenVino, "openvino-int8": OpenVino,
         "onnxruntime": OnnxRuntime, "onnxruntime-int8": OnnxRuntime}


def answer(what: str, size: int, calls: int, peer, options) -> float:
    if what == "resident":
        return resident()
    if what == "file":
        return getattr(peer, "file", 0)
    inputs = models.inputs(options.model, size, options.dtype, options.device)
    if what != "differ":
        return seconds_per_call(lambda: peer.call(inputs), calls, what == "wait", options.device != "cpu")
    known = options.folder / "exact.pt"
    expected = (torch.jit.load(known) if known.exists() else peer.model)(inputs).double().to(options.device)
    return ((peer.call(inputs).double() - expected).norm() / expected.norm()).item()


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("model")
    parser.add_argument("dtype")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--mode", default="default")
    options = parser.parse_args()
    sys.stdout, answers = sys.stderr, sys.stdout  # some packages talk
    peer = PEERS[options.peer](options)
    for line in sys.stdin:
        what, _, size, calls = line.split()
        print(answer(what, int(size), int(calls), peer, options), file=answers, flush=True)


if __name__ == "__main__":
    main()
