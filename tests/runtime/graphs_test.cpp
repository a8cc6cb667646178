// Captured runs, on a device that pretends to capture: what is captured when, what runs plainly and
// why, and that no result is lost. tests/gpu has the same on a GPU.

#include "runtime/fake_graphs.h"
#include "runtime/replay/graph_obstacles.h"
#include "runtime/replay/same_results.h"
#include "twinkle/error.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/jit/ir/irparser.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>

#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using tests::FakeBackend;
using tests::graph_model;

namespace {

const char* twice = "def forward(self, x):\n    return x * 2 + self.weight\n";

struct Graphs {
    explicit Graphs(torch::jit::Module model, GraphOptions options = {})
        : graphs(std::move(model), options, at::kCPU, backend.finder()) {}
    explicit Graphs(const std::string& methods, GraphOptions options = {})
        : Graphs(graph_model(methods), options) {}

    c10::IValue run(std::vector<c10::IValue> inputs) {
        const torch::NoGradGuard no_grad;
        return graphs.forward(std::move(inputs), {});
    }
    at::Tensor tensor(const at::Tensor& x) { return run({x}).toTensor(); }
    // Runs a model with one tensor three times; returns why the last run was plain.
    std::string reason(const at::Tensor& x = torch::ones({4})) {
        for (int i = 0; i < 3; ++i) {
            run({x});
        }
        for (const auto& [text, count] : graphs.statistics().reasons) {
            if (text != "the shape is new") {
                return text;
            }
        }
        return "";
    }

    FakeBackend backend;
    runtime::ModelGraphs graphs;
};

at::Tensor row(double value, std::int64_t rows = 1) {
    return torch::full({rows, 4}, value);
}

}  // namespace

TEST_CASE("the second use of a shape is captured, and later ones are replayed") {
    Graphs graphs(twice);
    for (int i = 0; i < 5; ++i) {
        CHECK(at::equal(graphs.tensor(row(i)), row(i) * 2 + 1));
        CHECK(at::equal(graphs.tensor(row(-i, 3)), row(-i, 3) * 2 + 1));
    }
    const GraphStatistics said = graphs.graphs.statistics();
    CHECK(said.captures == 2);
    CHECK(said.graphs == 2);
    CHECK(said.bytes == 2000);
    CHECK(said.replays == 8);
    CHECK(said.plain_runs == 2);
    CHECK(said.reasons == std::map<std::string, std::uint64_t>{{"the shape is new", 2}});
    CHECK(said.not_frozen.empty());
}

TEST_CASE("prepare captures at once, and says why it cannot") {
    Graphs graphs(twice);
    const torch::NoGradGuard no_grad;
    CHECK(graphs.graphs.prepare({row(1)}, {}) == std::nullopt);
    CHECK(graphs.graphs.prepare({row(1)}, {}) == std::nullopt);
    CHECK(at::equal(graphs.tensor(row(3)), row(3) * 2 + 1));
    CHECK(graphs.graphs.statistics().captures == 1);
    CHECK(graphs.graphs.statistics().replays == 1);
    const auto none = graphs.graphs.prepare({row(1).to_sparse()}, {});
    CHECK(none.value_or("").find("sparse") != std::string::npos);
}

TEST_CASE("results keep their structure, and are the caller's own") {
    Graphs graphs(R"(
def forward(self, x, y):
    # type: (Tensor, List[Tensor]) -> Tuple[Tensor, List[Tensor], Dict[str, Tensor], Optional[Tensor], int, str]
    return x + 1, [y[0], y[1] * 2], {"sum": x + y[0]}, None, x.size(0), "text"
)");
    std::vector<c10::IValue> kept;
    for (int i = 0; i < 4; ++i) {
        kept.push_back(graphs.run({row(i), std::vector<at::Tensor>{row(10), row(i)}}));
    }
    CHECK(graphs.graphs.statistics().replays == 3);
    for (int i = 0; i < 4; ++i) {
        const auto& parts = kept[i].toTupleRef().elements();
        CHECK(at::equal(parts[0].toTensor(), row(i + 1)));
        REQUIRE(parts[1].isTensorList());
        CHECK(at::equal(parts[1].toTensorVector()[0], row(10)));
        CHECK(at::equal(parts[1].toTensorVector()[1], row(2 * i)));
        CHECK(at::equal(parts[2].toGenericDict().at("sum").toTensor(), row(10 + i)));
        CHECK(parts[3].isNone());
        CHECK(parts[4].toInt() == 1);
        CHECK(parts[5].toStringRef() == "text");
    }
}

TEST_CASE("results that are not cloned are overwritten by the next replay") {
    Graphs graphs(twice, {.clone_outputs = false});
    graphs.tensor(row(0));
    const at::Tensor first = graphs.tensor(row(1));
    CHECK(at::equal(first, row(3)));
    CHECK(graphs.tensor(row(2)).is_same(first));
    CHECK(at::equal(first, row(5)));
}

TEST_CASE("named arguments and defaults are those of forward") {
    Graphs graphs(
        "def forward(self, x, by: float = 2.0, shift: bool = False):\n"
        "    y = x * by\n    if shift:\n        y = y + 1\n    return y\n");
    const torch::NoGradGuard no_grad;
    for (int i = 0; i < 3; ++i) {
        CHECK(at::equal(graphs.tensor(row(1)), row(2)));
        CHECK(at::equal(graphs.graphs.forward({row(1)}, {{"by", 2.0}}).toTensor(), row(2)));
        // A different number is a different graph.
        CHECK(at::equal(graphs.graphs.forward({row(1), 3.0}, {}).toTensor(), row(3)));
        CHECK(at::equal(graphs.graphs.forward({row(1)}, {{"shift", true}}).toTensor(), row(3)));
    }
    CHECK(graphs.graphs.statistics().graphs == 3);
    CHECK_THROWS(graphs.graphs.forward({row(1)}, {{"no", 1}}));
    CHECK_THROWS(graphs.graphs.forward({}, {}));
}

TEST_CASE("a key is what a captured run depends on") {
    const auto key = [](const std::vector<c10::IValue>& values) {
        return runtime::key_of(values, at::kCPU).text;
    };
    const at::Tensor x = torch::zeros({2, 4});
    CHECK(key({x}) == key({torch::ones({2, 4})}));
    CHECK(key({x}) != key({torch::zeros({4, 2})}));
    CHECK(key({x}) != key({torch::zeros({2, 4, 1})}));
    CHECK(key({x}) != key({x.to(at::kHalf)}));
    CHECK(key({torch::zeros({4, 2}).t()}) != key({x}));
    CHECK(key({torch::zeros({2, 8}).slice(1, 0, 4)}) != key({x}));
    // The stride of a single row means nothing.
    CHECK(key({x.slice(0, 0, 1)}) == key({torch::zeros({4, 1}).t()}));
    CHECK(key({x, 1}) != key({x, 2}));
    CHECK(key({x, 1}) != key({x, 1.0}));
    CHECK(key({x, 1}) != key({x, true}));
    CHECK(key({x, "a", "bc"}) != key({x, "ab", "c"}));
    CHECK(key({x, c10::IValue()}) != key({x}));
    CHECK(key({x, std::vector<std::int64_t>{1, 2}}) != key({x, 1, 2}));
    CHECK(key({std::vector<at::Tensor>{x, x}}) != key({x, x}));
    CHECK(key({c10::ivalue::Tuple::create({x, x})}) != key({std::vector<at::Tensor>{x, x}}));
    CHECK(runtime::key_of({c10::IValue(1)}, at::kCPU).obstacle == "no input is a tensor");
    CHECK(runtime::key_of({x}, at::kCUDA).obstacle == "an input is on cpu");
    CHECK(runtime::key_of({x, graph_model(twice)._ivalue()}, at::kCPU).obstacle.find("Object") !=
          std::string::npos);
}

TEST_CASE("a full cache gives up what was used longest ago, for what is used more") {
    Graphs graphs(twice, {.max_graphs = 2});
    const auto use = [&](std::int64_t rows, int times) {
        for (int i = 0; i < times; ++i) {
            CHECK(at::equal(graphs.tensor(row(i, rows)), row(2 * i + 1, rows)));
        }
        return graphs.graphs.statistics();
    };
    use(1, 2);
    CHECK(use(2, 2).graphs == 2);
    // Used as often as the first, so it waits.
    CHECK(use(3, 4).captures == 2);
    CHECK(use(3, 1).captures == 3);
    GraphStatistics said = use(3, 1);
    CHECK(said.graphs == 2);
    CHECK(said.bytes == 2000);
    CHECK(said.evictions == 1);
    // The second is still there, the first is not.
    const auto replays = said.replays;
    CHECK(use(2, 1).replays == replays + 1);
    said = use(1, 1);
    CHECK(said.replays == replays + 1);
    CHECK(said.reasons.count(
              "other shapes, used as often, have all the graphs or memory allowed") == 1);
}

TEST_CASE("bytes are bounded as graphs are") {
    Graphs graphs(twice, {.max_bytes = 2500});
    const auto use = [&](std::int64_t rows, int times) {
        for (int i = 0; i < times; ++i) {
            graphs.tensor(row(i, rows));
        }
        return graphs.graphs.statistics();
    };
    use(1, 2);
    CHECK(use(2, 2).bytes == 2000);
    CHECK(use(3, 2).bytes == 2000);
    CHECK(use(3, 8).evictions == 1);
    CHECK(use(3, 1).bytes == 2000);
    graphs.backend.device.bytes = 3000;
    const GraphStatistics said = use(4, 20);
    CHECK(said.reasons.count("its graph needs 3.00 kB of 2.50 kB allowed") == 1);
    CHECK(said.bytes == 2000);
    CHECK(graphs.backend.device.captures == 5);  // the large one once
}

TEST_CASE("without a limit a quarter of the free memory is taken") {
    Graphs graphs(twice);
    graphs.backend.device.free_memory = 8000;
    for (std::int64_t rows = 1; rows < 5; ++rows) {
        graphs.tensor(row(1, rows));
        graphs.tensor(row(1, rows));
    }
    CHECK(graphs.graphs.statistics().bytes == 2000);
}

TEST_CASE("many shapes that never come back leave nothing behind") {
    Graphs graphs(twice, {.max_graphs = 1});
    graphs.tensor(row(1));
    graphs.tensor(row(1));
    for (std::int64_t size = 2; size < 6000; ++size) {
        graphs.run({torch::zeros({1, size, 4})});
    }
    CHECK(graphs.graphs.statistics().graphs == 1);
    CHECK(at::equal(graphs.tensor(row(2)), row(5)));
    CHECK(graphs.graphs.statistics().captures == 1);
}

TEST_CASE("where memory is short, caches are given back and it is tried again, once") {
    Graphs graphs(twice);
    graphs.backend.device.fails = [](int) {
        throw std::runtime_error("RuntimeError: CUDA out of memory. Tried to allocate 1 GiB");
    };
    for (int i = 0; i < 6; ++i) {
        CHECK(at::equal(graphs.tensor(row(i)), row(2 * i + 1)));
    }
    CHECK(graphs.backend.device.captures == 2);
    CHECK(graphs.backend.device.released == 1);
    CHECK(graphs.graphs.statistics().reasons.at("memory is short for its graph") == 5);
    // There is memory again.
    graphs.backend.device.fails = nullptr;
    graphs.graphs.clear();
    graphs.tensor(row(1));
    CHECK(at::equal(graphs.tensor(row(1)), row(3)));
    CHECK(graphs.graphs.statistics().graphs == 1);
}

TEST_CASE("failures around a capture lose no result either") {
    Graphs graphs(twice);
    graphs.backend.device.release_fails = true;
    graphs.backend.device.fails = [](int) {
        throw std::runtime_error(
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate");
    };
    CHECK(graphs.reason() == "memory is short for its graph");
    CHECK(graphs.backend.device.captures == 1);
    CHECK(at::equal(graphs.tensor(row(2)), row(5)));
    Graphs failed(twice);
    failed.backend.device.has_failed = true;
    CHECK(failed.reason() ==
          "it cannot be captured: CUDA error: an illegal memory access was encountered");
}

TEST_CASE("the second attempt can succeed") {
    Graphs graphs(twice);
    graphs.backend.device.fails = [](int capture) {
        if (capture == 1) {
            throw c10::OutOfMemoryError({"allocate", __FILE__, __LINE__}, "out of memory");
        }
    };
    graphs.tensor(row(1));
    CHECK(at::equal(graphs.tensor(row(2)), row(5)));
    CHECK(graphs.graphs.statistics().replays == 1);
}

TEST_CASE("what a device cannot capture runs plainly, and is not tried again") {
    Graphs graphs(twice);
    graphs.backend.device.fails = [](int) {
        throw std::runtime_error(
            "The following operation failed in the TorchScript interpreter.\nTraceback:\n...\n"
            "RuntimeError: CUDA error: operation not permitted when stream is capturing\nmore");
    };
    for (int i = 0; i < 4; ++i) {
        CHECK(at::equal(graphs.tensor(row(i)), row(2 * i + 1)));
    }
    CHECK(graphs.backend.device.captures == 1);
    CHECK(graphs.graphs.statistics().reasons.at(
              "it cannot be captured: RuntimeError: CUDA error: operation not permitted when "
              "stream is capturing") == 3);
}

TEST_CASE("what cannot be captured keeps LibTorch's settings") {
    Graphs graphs(twice);
    graphs.backend.device.fails = [](int) { throw std::runtime_error("no"); };
    const auto profiled = [&](const at::Tensor& x) {
        graphs.run({x});
        return torch::jit::lastExecutedOptimizedGraph()->toString().find("prim::profile") !=
               std::string::npos;
    };
    CHECK_FALSE(profiled(row(1)));
    CHECK(profiled(row(1)));
    CHECK(at::equal(graphs.tensor(row(2)), row(5)));
    CHECK(at::equal(graphs.tensor(row(2, 3)), row(5, 3)));  // a shape that is new
    const at::Tensor result = graphs.graphs.forward({row(3)}, {}).toTensor();
    CHECK(at::equal(result, row(7)));
    CHECK_FALSE(result.requires_grad());  // it is frozen, refused or not
}

TEST_CASE("a model that cannot be captured is not tried at every shape") {
    Graphs graphs(twice);
    graphs.backend.device.fails = [](int) { throw std::runtime_error("no"); };
    for (std::int64_t rows = 1; rows < 10; ++rows) {
        for (int i = 0; i < 3; ++i) {
            CHECK(at::equal(graphs.tensor(row(i, rows)), row(2 * i + 1, rows)));
        }
    }
    CHECK(graphs.backend.device.captures == 3);
    CHECK(graphs.graphs.statistics().reasons.at("it could not be captured at 3 other shapes") ==
          12);
    graphs.backend.device.fails = nullptr;
    graphs.graphs.clear();
    CHECK(graphs.graphs.prepare({row(1)}, {}) == std::nullopt);
    CHECK(graphs.graphs.statistics().graphs == 1);
}

TEST_CASE("a capture that leaves kernels out is found by its first replay") {
    Graphs graphs(twice);
    graphs.backend.device.leaves_kernels_out = true;
    CHECK(graphs.reason() == "a replay gives other values than a run");
    CHECK(at::equal(graphs.tensor(torch::ones({4})), torch::full({4}, 3.0)));
}

TEST_CASE("a replay may differ as much as the order of sums does") {
    const at::Tensor x = torch::rand({1000}) + 1;
    CHECK(runtime::same_results(x, x));
    CHECK(runtime::same_results(x * (1 + 1e-5), x));
    CHECK_FALSE(runtime::same_results(x * 1.01, x));
    CHECK(runtime::same_results(x.to(at::kHalf) * 1.01, x.to(at::kHalf)));
    CHECK_FALSE(runtime::same_results(x.to(at::kHalf) * 0, x.to(at::kHalf)));
    const at::Tensor nan = x.clone().index_put_({3}, NAN);
    CHECK(runtime::same_results(nan, nan));
    CHECK_FALSE(runtime::same_results(nan, x));
    CHECK_FALSE(runtime::same_results(x, nan));
    CHECK(runtime::same_results(x / 0, x / 0));
    CHECK_FALSE(runtime::same_results(x / 0, x));
    const at::Tensor whole = torch::arange(10);
    CHECK(runtime::same_results(whole, whole));
    CHECK_FALSE(runtime::same_results(whole + 1, whole));
    CHECK_FALSE(runtime::same_results(whole, whole.to(at::kFloat)));
    CHECK_FALSE(runtime::same_results(whole, std::vector<at::Tensor>{whole, whole}));
    const at::Tensor turning = torch::complex(x, x);
    CHECK(runtime::same_results(turning, turning));
    CHECK_FALSE(runtime::same_results(turning * 2, turning));
}

TEST_CASE("models that write into their inputs do so, uncaptured") {
    Graphs graphs("def forward(self, x):\n    x.add_(1)\n    return x * 2\n");
    for (int i = 0; i < 4; ++i) {
        const at::Tensor x = torch::full({4}, double(i));
        CHECK(at::equal(graphs.tensor(x), torch::full({4}, 2.0 * (i + 1))));
        CHECK(at::equal(x, torch::full({4}, double(i + 1))));
    }
    CHECK(graphs.graphs.statistics().reasons.at("the model writes into its inputs") == 3);
    // A comparison of values would not see this write.
    Graphs relu("def forward(self, x):\n    return torch.relu_(x)\n");
    CHECK(relu.reason() == "the model writes into its inputs");
}

TEST_CASE("models that write into their own tensors are captured where that is asked for") {
    const char* counts = "def forward(self, x):\n    self.seen.add_(x)\n    return self.seen * 1\n";
    auto model = graph_model(counts);
    Graphs graphs(model);
    for (int i = 1; i < 4; ++i) {
        CHECK(at::equal(graphs.tensor(torch::ones({4})), torch::full({4}, double(i))));
    }
    CHECK(graphs.backend.device.captures == 0);
    CHECK(graphs.graphs.statistics().reasons.count(
              "the model writes into seen (see may_write_state)") == 1);

    const char* keeps = "def forward(self, x):\n    self.seen.copy_(x)\n    return self.seen * 2\n";
    Graphs allowed(graph_model(keeps), {.may_write_state = true});
    for (int i = 1; i < 4; ++i) {
        CHECK(at::equal(allowed.tensor(torch::full({4}, double(i))), torch::full({4}, 2.0 * i)));
    }
    CHECK(allowed.graphs.statistics().replays == 2);
}

TEST_CASE("what a replay would leave out is read from the model's code") {
    CHECK(Graphs(
              "def forward(self, x):\n    self.count = self.count + 1\n    return x * self.count\n")
              .reason() == "the model changes its attribute count");
    CHECK(Graphs("def forward(self, x):\n    return x + torch.rand_like(x) * 0\n").reason() ==
          "the model draws random numbers (aten::rand_like)");
    CHECK(Graphs("def forward(self, x):\n    print(x.dim())\n    return x\n").reason() ==
          "the model prints");
    torch::jit::Graph waits;
    torch::jit::parseIR(
        "graph(%f : Future(Tensor)):\n  %y : Tensor = aten::wait(%f)\n  return (%y)\n", &waits);
    CHECK(runtime::graph_obstacle(waits) == "the model runs code in other threads (aten::wait)");
    // Dropout that is switched off draws nothing.
    CHECK(Graphs("def forward(self, x):\n    return torch.dropout(x, 0.5, False)\n")
              .reason()
              .empty());
    CHECK(Graphs("def forward(self, x):\n    return torch.dropout(x, 0.5, True)\n").reason() ==
          "the model draws random numbers (aten::dropout)");
    CHECK(Graphs(graph_model(
                     "def forward(self, x):\n    return torch.dropout(x, 0.5, self.training)\n"),
                 {.freeze = false})
              .reason()
              .empty());
}

TEST_CASE("training, gradients and autocast run plainly") {
    Graphs training(graph_model(twice, true));
    CHECK(training.reason() == "the model is in training");
    CHECK(training.graphs.statistics().not_frozen.empty());

    Graphs graphs(twice);
    at::Tensor x = torch::ones({4}, at::requires_grad());
    for (int i = 0; i < 3; ++i) {
        const at::Tensor y = graphs.graphs.forward({x}, {}).toTensor();
        CHECK(y.requires_grad());
        // Nothing requires a gradient here.
        CHECK(at::equal(graphs.graphs.forward({torch::ones({4})}, {}).toTensor(), y));
    }
    CHECK(graphs.graphs.statistics().replays == 2);
    auto own = graph_model(twice);
    own.attr("weight").toTensor().requires_grad_(true);
    Graphs weights(own, {.freeze = false});
    CHECK(weights.graphs.forward({torch::ones({4})}, {}).toTensor().requires_grad());

    Graphs cast(twice);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    CHECK(cast.reason() == "autocast is on");
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
}

TEST_CASE("inference mode and its absence use the same graphs") {
    Graphs graphs(twice);
    for (int i = 0; i < 4; ++i) {
        {
            const c10::InferenceMode inference;
            CHECK(at::equal(graphs.graphs.forward({row(i)}, {}).toTensor(), row(2 * i + 1)));
        }
        at::Tensor y = graphs.tensor(row(i));
        CHECK(at::equal(y.add_(1), row(2 * i + 2)));
    }
    CHECK(graphs.graphs.statistics().captures == 1);
}

TEST_CASE("a stream that is being captured is left alone") {
    Graphs graphs(twice);
    graphs.backend.device.stream_is_capturing = true;
    CHECK(graphs.reason() == "the stream is being captured already");
}

TEST_CASE("errors of the model are the model's") {
    Graphs graphs("def forward(self, x):\n    assert x.size(0) == 1, \"one row\"\n    return x\n");
    for (int i = 0; i < 3; ++i) {
        CHECK_THROWS(graphs.tensor(row(1, 2)));
        CHECK(at::equal(graphs.tensor(row(i)), row(i)));
    }
    CHECK_THROWS_AS(Graphs("def other(self, x):\n    return x\n"), Error);
    CHECK_THROWS_AS(Graphs(twice, {.warm_up = 0}), Error);
}

TEST_CASE("a model is captured frozen, or as it is") {
    Graphs plain(graph_model(twice), {.freeze = false});
    for (int i = 0; i < 3; ++i) {
        CHECK(at::equal(plain.tensor(row(i)), row(2 * i + 1)));
    }
    CHECK(plain.graphs.statistics().replays == 2);
}

TEST_CASE("settings of the process stay as they are, and so does the model") {
    const bool optimizes = torch::jit::getGraphExecutorOptimize();
    const auto strategy = torch::jit::getFusionStrategy();
    auto model = graph_model(twice);
    const std::string before = model.get_method("forward").graph()->toString();
    Graphs graphs(model);
    graphs.reason();
    CHECK(torch::jit::getGraphExecutorOptimize() == optimizes);
    CHECK((torch::jit::getFusionStrategy() == strategy));
    CHECK(model.get_method("forward").graph()->toString() == before);
    CHECK(model.named_parameters().size() == 1);
}

TEST_CASE("many threads get their own results") {
    Graphs graphs("def forward(self, x):\n    return (x * 2 + self.weight).sum(-1)\n");
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (int i = 0; i < 200; ++i) {
                const std::int64_t rows = 1 + i % 3;
                const double value = thread * 1000 + i;
                const at::Tensor y = graphs.tensor(row(value, rows));
                wrong += !at::equal(y, torch::full({rows}, 8 * value + 4));
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
    const GraphStatistics said = graphs.graphs.statistics();
    CHECK(said.captures == 3);
    CHECK(said.replays + said.plain_runs == 800);
    CHECK(said.replays > 0);
    CHECK(graphs.backend.device.most_inside == 1);
}

TEST_CASE("on a CPU a graphed model runs the model") {
    GraphedModel model(graph_model(twice));
    const torch::NoGradGuard no_grad;
    for (int i = 0; i < 3; ++i) {
        CHECK(at::equal(model.forward({row(i)}).toTensor(), row(2 * i + 1)));
    }
    CHECK(model.prepare({row(1)}) == std::optional<std::string>("an input is on cpu"));
    GraphedModel moved = std::move(model);
    CHECK(moved.statistics().plain_runs == 3);
    CHECK(moved.statistics().reasons.at("an input is on cpu") == 3);
    moved.clear();
}

TEST_CASE("without a library for the device the reason is its absence") {
    runtime::ModelGraphs graphs(graph_model(twice), {}, at::kCPU,
                                [] { return runtime::FoundBackend{nullptr, "there is none"}; });
    const torch::NoGradGuard no_grad;
    CHECK(at::equal(graphs.forward({row(1)}, {}).toTensor(), row(3)));
    CHECK(graphs.statistics().reasons.at("there is none") == 1);
}
