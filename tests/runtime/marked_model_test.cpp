// Models marked by kernelize --graphs, as programs call them that know nothing of it, on a device
// that pretends to capture. Its clock makes replays fast or slow.

#include "runtime/replay/marked_model.h"
#include "runtime/fake_graphs.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/model/graphs_mark.h"
#include "runtime/replay/replay_decisions.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <sstream>
#include <thread>

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using tests::FakeBackend;
using tests::graph_model;

namespace {

std::atomic<double> now{0};

// A run takes a second: the time between two looks at the clock. A replay takes what the device
// says.
double clock_now() {
    now = now + 1;
    return now;
}

const char* working =
    "def forward(self, x, add: bool = False):\n"
    "    y = x * 2 + self.weight\n"
    "    if add:\n        y = y + 1\n    return y\n";

struct Marked {
    explicit Marked(torch::jit::Module marked, double replay_seconds = 0.1,
                    runtime::ReplaySettings settings = {})
        : model(std::move(marked)) {
        backend.device.clock = &now;
        backend.device.replay_seconds = replay_seconds;
        object = c10::make_intrusive<runtime::MarkedModels>(
            runtime::ReplayDevice{at::kCPU, backend.finder(), clock_now}, settings);
        runtime::mark_for_graphs(model, c10::IValue(object));
    }
    explicit Marked(const std::string& methods, double replay_seconds = 0.1,
                    runtime::ReplaySettings settings = {})
        : Marked(graph_model(methods), replay_seconds, settings) {}

    at::Tensor operator()(const at::Tensor& x) {
        const torch::NoGradGuard no_grad;
        return model.forward({x}).toTensor();
    }
    GraphStatistics said() const { return object->statistics(); }

    FakeBackend backend;
    torch::jit::Module model;
    c10::intrusive_ptr<runtime::MarkedModels> object;
};

at::Tensor row(double value, std::int64_t rows = 1) {
    return torch::full({rows, 4}, value);
}

torch::jit::Module reloaded(const torch::jit::Module& model) {
    std::stringstream file;
    model.save(file);
    return torch::jit::load(file);
}

std::size_t replay_nodes(const torch::jit::Module& model) {
    std::size_t count = 0;
    for (const torch::jit::Method& method : model.get_methods()) {
        runtime::for_each_node(method.graph()->block(), [&](const torch::jit::Node* node) {
            count += node->kind().toQualString() == std::string(runtime::replay_operator);
        });
    }
    return count;
}

}  // namespace

TEST_CASE("a marked model is replayed from the second use of a shape where that is faster") {
    Marked marked(working);
    for (int i = 0; i < 5; ++i) {
        CHECK(at::equal(marked(row(i)), row(i) * 2 + 1));
        CHECK(at::equal(marked(row(-i, 3)), row(-i, 3) * 2 + 1));
    }
    CHECK(marked.said().captures == 2);
    CHECK(marked.said().replays == 8);
    CHECK(marked.said().plain_runs == 2);
}

namespace {

// x by one, and by another weight.
torch::jit::Module of_two_layers(const at::Tensor& other) {
    torch::jit::Module model = graph_model("def before(self, x):\n    return x\n");
    model.register_parameter("one", torch::eye(4), false);
    model.register_parameter("other", other, false);
    model.define(
        "def forward(self, x):\n"
        "    return torch.linear(x, self.one) + torch.linear(x, self.other)\n");
    return model;
}

runtime::ReplaySettings joining() {
    return runtime::parse_replay_settings("join=1", "");
}

}  // namespace

TEST_CASE("weights of layers that are computed as one are copied again when they change") {
    float memory[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    Marked marked(of_two_layers(torch::from_blob(memory, {4, 4})), 0.1, joining());
    const auto expect = [&](double value, std::uint64_t replays) {
        for (int i = 0; i < 3; ++i) {
            CHECK(at::equal(marked(row(1)), row(value)));
        }
        CHECK(marked.said().joined_layers == 1);
        CHECK(marked.said().replays == replays);
    };
    expect(2, 2);
    const torch::NoGradGuard no_grad;
    at::Tensor other = marked.model.attr("other").toTensor();
    other.mul_(5);
    expect(6, 4);
    // Another memory, and then the first again.
    other.set_data(torch::zeros({4, 4}));
    for (float& value : memory) {
        value *= 2;
    }
    other.set_data(torch::from_blob(memory, {4, 4}));
    expect(11, 6);
}

TEST_CASE("a marked model reads its weights where they are, unless the process says otherwise") {
    CHECK_FALSE(runtime::parse_replay_settings("", "").limits.join);
    Marked marked(of_two_layers(torch::eye(4)));
    marked(row(1));
    marked(row(1));
    CHECK(marked.said().joined_layers == 0);
    marked.model.attr("other").toTensor().variable_data().mul_(5);  // Python's .data: not counted
    CHECK(at::equal(marked(row(1)), row(6)));
    CHECK(marked.said().replays == 2);
}

TEST_CASE("copies of weights go with the replays that nobody wants") {
    Marked marked(of_two_layers(torch::eye(4)), 5.0, joining());
    for (int i = 0; i < 4; ++i) {
        marked(row(1));
    }
    CHECK(marked.said().replays == 0);
    CHECK(marked.said().joined_bytes == 0);
    CHECK(marked.backend.device.captures == 2);  // joined, and apart
}

TEST_CASE("what the code does not read may change") {
    Marked marked(working);
    for (int i = 0; i < 30; ++i) {
        CHECK(at::equal(marked(row(i)), row(i) * 2 + 1));
        marked.model.setattr("seen", torch::full({4}, i));
        marked.model.setattr("count", i);
    }
    CHECK(marked.said().captures == 1);
    CHECK(marked.said().replays == 29);
}

TEST_CASE("a marked model runs plainly where a replay is not faster, and holds no graph for it") {
    const double replay = GENERATE(0.98, 1.0, 5.0);
    Marked marked(working, replay);
    for (int i = 0; i < 6; ++i) {
        CHECK(at::equal(marked(row(i)), row(i) * 2 + 1));
    }
    CHECK(marked.said().captures == 0);
    CHECK(marked.said().replays == 0);
    CHECK(marked.said().graphs == 0);
    CHECK(marked.said().reasons.count("a replay is not faster than a plain run") == 1);
    CHECK(marked.backend.device.captures == 1);
    // Others are still tried, however many were slow.
    for (int rows = 2; rows < 7; ++rows) {
        marked(row(1, rows));
        marked(row(1, rows));
    }
    CHECK(marked.backend.device.captures == 6);
    marked.backend.device.replay_seconds = 0.1;
    marked(row(1, 9));
    marked(row(1, 9));
    CHECK(marked.said().replays == 1);
}

namespace {

// As decided before the model was saved.
struct Decided : Marked {
    explicit Decided(const runtime::ReplayDecisions& decisions, double replay_seconds)
        : Marked(graph_model(working), replay_seconds) {
        object = c10::make_intrusive<runtime::MarkedModels>(
            runtime::ReplayDevice{at::kCPU, backend.finder(), clock_now}, runtime::ReplaySettings(),
            decisions.text());
        runtime::mark_for_graphs(model, c10::IValue(object));
    }
};

}  // namespace

TEST_CASE("what was decided before a model was saved is not measured again") {
    runtime::ReplayDecisions decisions;
    decisions.add("Float[1, 4]", true);
    decisions.add("Float[3, 4]", false);
    Decided slow(decisions, 5);  // here a replay is slow, and one row is replayed nevertheless
    Decided fast(decisions, 0.1);
    for (int i = 0; i < 4; ++i) {
        CHECK(at::equal(slow(row(i)), row(i) * 2 + 1));
        CHECK(at::equal(fast(row(i, 3)), row(i, 3) * 2 + 1));
        CHECK(at::equal(slow(row(i, 2)), row(i, 2) * 2 + 1));
    }
    CHECK(slow.said().replays == 3);
    CHECK(slow.said().captures == 1);  // two rows are measured here, and are slower
    CHECK(fast.said().captures == 0);
    CHECK(fast.backend.device.captures == 0);
    CHECK(slow.object->decided() == decisions.text());
}

TEST_CASE("decisions are made beside plain runs, shape by shape") {
    FakeBackend backend;
    backend.device.clock = &now;
    const torch::jit::Module model = graph_model(working);
    const runtime::ReplayDevice device{at::kCPU, backend.finder(), clock_now};
    const torch::NoGradGuard no_grad;
    for (const double replay : {0.1, 5.0}) {
        backend.device.replay_seconds = replay;
        const auto decided =
            runtime::decide_replays(model, {{row(1), false}, {row(1, 3), false}}, device);
        REQUIRE(decided.size() == 2);
        CHECK(decided[0].shapes == "Float[1, 4]");
        CHECK(decided[1].shapes == "Float[3, 4]");
        for (const auto& one : decided) {
            CHECK(one.replayed == (replay < 1));
            CHECK(one.times.plain > 0);
            CHECK(one.why.empty() == one.replayed);
        }
    }
    const auto unfit = runtime::decide_replays(
        graph_model("def forward(self, x):\n    return x * int(x.sum())\n"), {{row(1)}}, device);
    CHECK_FALSE(unfit[0].replayed);
    CHECK_FALSE(unfit[0].why.empty());

    // Nothing is decided where nothing can be captured: the server may have what is missing here.
    const runtime::ReplayDevice without{
        at::kCPU, [] { return runtime::FoundBackend{nullptr, "there is none"}; }, clock_now};
    CHECK_THROWS_WITH(runtime::decide_replays(model, {{row(1)}}, without), "there is none");
}

TEST_CASE("decisions from outside are read with care") {
    const runtime::ReplayDecisions none;
    CHECK(runtime::ReplayDecisions::parse(none.text()).empty());
    for (const std::string wrong :
         {"", "[]", "1", "{\"float32[1]\":1}", "{\"a\":{\"b\":true}}", "{"}) {
        CHECK_THROWS_AS(runtime::ReplayDecisions::parse(wrong), Error);
    }
    std::string many = "{";
    for (int i = 0; i <= 1000; ++i) {
        many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":true";
    }
    CHECK_THROWS_AS(runtime::ReplayDecisions::parse(many + "}"), Error);
}

TEST_CASE("a replay that gives other values than a plain run is not used") {
    Marked marked(working);
    marked.backend.device.leaves_kernels_out = true;
    for (int i = 0; i < 4; ++i) {
        CHECK(at::equal(marked(row(i + 1)), row(i + 1) * 2 + 1));
    }
    CHECK(marked.said().replays == 0);
}

TEST_CASE("a marked model's arguments, defaults and results are those of the original") {
    Marked marked(working);
    const torch::NoGradGuard no_grad;
    for (int i = 0; i < 3; ++i) {
        CHECK(at::equal(marked.model.forward({row(i), true}).toTensor(), row(i) * 2 + 2));
        CHECK(
            at::equal(marked.model.forward({row(i)}, {{"add", false}}).toTensor(), row(i) * 2 + 1));
        CHECK(at::equal(marked.model.forward({row(i)}).toTensor(), row(i) * 2 + 1));
    }
    CHECK_THROWS(marked.model.forward({row(1), 3}));
    Marked nested(R"(
def forward(self, x, y):
    # type: (Tensor, List[Tensor]) -> Tuple[Tensor, Dict[str, Tensor], Optional[Tensor], int]
    return x * 2, {"sum": x + y[0]}, None, x.size(0)
)");
    for (int i = 0; i < 4; ++i) {
        const auto result = nested.model.forward({row(i), std::vector<at::Tensor>{row(5)}});
        const auto& parts = result.toTupleRef().elements();
        CHECK(at::equal(parts[0].toTensor(), row(2 * i)));
        CHECK(at::equal(parts[1].toGenericDict().at("sum").toTensor(), row(i + 5)));
        CHECK(parts[2].isNone());
        CHECK(parts[3].toInt() == 1);
    }
    CHECK(nested.said().replays == 3);
}

TEST_CASE("a marked model is saved, loaded, frozen and copied as any other") {
    Marked marked(working);
    const auto loaded = reloaded(marked.model);
    CHECK(replay_nodes(loaded) == 1);
    const torch::NoGradGuard no_grad;
    for (int i = 0; i < 3; ++i) {
        // Loaded, it is for CUDA, where nothing of this is.
        CHECK(at::equal(torch::jit::Module(loaded).forward({row(i)}).toTensor(), row(i) * 2 + 1));
    }
    torch::jit::Module frozen = torch::jit::freeze(marked.model);
    CHECK(frozen.parameters().size() == 0);
    torch::jit::Module copied = marked.model.clone();
    for (int i = 0; i < 4; ++i) {
        CHECK(at::equal(frozen.forward({row(i)}).toTensor(), row(i) * 2 + 1));
        CHECK(at::equal(copied.forward({row(i)}).toTensor(), row(i) * 2 + 1));
        CHECK(at::equal(marked(row(i)), row(i) * 2 + 1));
    }
    CHECK(marked.said().captures == 3);
    CHECK(marked.said().replays == 9);
}

TEST_CASE("the mark can be taken away, before and after loading and freezing") {
    Marked marked(working);
    for (const torch::jit::Module& made :
         {reloaded(marked.model), torch::jit::freeze(reloaded(marked.model))}) {
        torch::jit::Module model = made;
        CHECK(replay_nodes(model) > 0);
        CHECK(runtime::remove_graphs_mark(model));
        CHECK_FALSE(runtime::remove_graphs_mark(model));
        CHECK(replay_nodes(model) == 0);
        const torch::NoGradGuard no_grad;
        CHECK(at::equal(model.forward({row(3), true}).toTensor(), row(3) * 2 + 2));
    }
    // Marking twice is marking once.
    runtime::mark_for_graphs(marked.model, runtime::marked_models());
    runtime::mark_for_graphs(marked.model, runtime::marked_models());
    CHECK(replay_nodes(marked.model) == 1);
}

TEST_CASE("a model that its program changes is captured again, not replayed as it was") {
    Marked marked(working);
    for (int i = 0; i < 3; ++i) {
        marked(row(i));
    }
    CHECK(marked.said().replays == 2);
    const torch::NoGradGuard no_grad;
    SECTION("a weight written into") {
        marked.model.attr("weight").toTensor().fill_(7);
    }
    SECTION("a weight replaced") {
        marked.model.setattr("weight", torch::full({4}, 7.0));
    }
    SECTION("the data of a weight replaced, as by Module::to") {
        marked.model.attr("weight").toTensor().set_data(torch::full({4}, 7.0));
    }
    for (int i = 0; i < 3; ++i) {
        CHECK(at::equal(marked(row(i)), row(i) * 2 + 7));
    }
    CHECK(marked.said().replays == 4);
    CHECK(marked.said().graphs == 1);
}

TEST_CASE("a model that goes on changing is left alone") {
    Marked marked(working);
    const torch::NoGradGuard no_grad;
    for (int i = 0; i < 60; ++i) {
        marked.model.attr("weight").toTensor().fill_(i);
        for (int call = 0; call < 2; ++call) {
            CHECK(at::equal(marked(row(1)), row(2 + i)));
        }
    }
    CHECK(marked.backend.device.captures < 20);
    CHECK(marked.said().reasons.count("its weights or attributes go on changing") == 1);
}

TEST_CASE(
    "a marked model is never replayed in training, where gradients are recorded, or changed by "
    "itself") {
    Marked training(graph_model(working, /*training=*/true));
    Marked marked(working);
    Marked counting(
        "def forward(self, x):\n    self.seen.add_(1)\n    return x * 2 + "
        "self.seen\n");
    for (int i = 0; i < 5; ++i) {
        training(row(i));
        CHECK(at::equal(counting(row(1)), row(3 + i)));
        at::Tensor x = row(i).requires_grad_();
        marked.model.forward({x}).toTensor().sum().backward();
        CHECK(at::equal(x.grad(), row(2)));
    }
    CHECK(training.said().captures == 0);
    CHECK(marked.said().captures == 0);
    CHECK(counting.said().captures == 0);
    marked.model.train();
    marked(row(1));
    marked(row(1));
    CHECK(marked.said().captures == 0);
    marked.model.eval();
    marked(row(1));
    marked(row(1));
    CHECK(marked.said().replays == 1);
}

TEST_CASE("a marked model that fails fails as it did, and its obstacles are those of graphs") {
    Marked fails("def forward(self, x):\n    return (x * 2).view(3, 5)\n");
    for (int i = 0; i < 3; ++i) {
        CHECK_THROWS(fails(row(1)));
    }
    CHECK(fails.said().captures == 0);
    Marked random("def forward(self, x):\n    return torch.rand_like(x * 2)\n");
    random(row(1));
    CHECK_FALSE(at::equal(random(row(1)), random(row(1))));
    CHECK(random.said().captures == 0);
    Marked short_of_memory(working);
    short_of_memory.backend.device.bytes = 1 << 30;
    for (int i = 0; i < 4; ++i) {
        CHECK(at::equal(short_of_memory(row(i)), row(i) * 2 + 1));
    }
    CHECK(short_of_memory.said().graphs == 0);
}

TEST_CASE("graphs of marked models stay within the limits of the process") {
    runtime::ReplaySettings settings;
    settings.limits.max_graphs = 3;
    Marked marked(working, 0.1, settings);
    for (int turn = 0; turn < 3; ++turn) {
        for (int rows = 1; rows < 30; ++rows) {
            CHECK(at::equal(marked(row(turn, rows)), row(turn, rows) * 2 + 1));
        }
    }
    CHECK(marked.said().graphs <= 3);
    Marked off(working, 0.1, {.on = false, .statistics = false, .limits = {}});
    off(row(1));
    off(row(1));
    CHECK(off.backend.device.captures == 0);
}

TEST_CASE("many threads call one marked model") {
    Marked marked(working);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    // While one thread captures, others run plain, on a busy machine all of their calls.
    const auto goes_on = [&](int i) {
        return i < 60 || (i < 100'000 && marked.said().replays <= 100);
    };
    for (int one = 0; one < 6; ++one) {
        threads.emplace_back([&, one] {
            for (int i = 0; goes_on(i); ++i) {
                const int rows = 1 + (one + i) % 3;
                wrong += !at::equal(marked(row(i, rows)), row(i, rows) * 2 + 1);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
    CHECK(marked.said().replays > 100);
}

TEST_CASE("what replays a model keeps neither it nor its code alive") {
    const int calls = GENERATE(0, 1, 3);
    INFO(calls);
    std::weak_ptr<torch::jit::CompilationUnit> code;
    at::Tensor weight;
    {
        Marked marked(reloaded(graph_model(working)));
        for (int i = 0; i < calls; ++i) {
            marked(row(i));
        }
        CHECK(marked.said().graphs == (calls == 3));
        code = marked.model._ivalue()->compilation_unit();
        weight = marked.model.attr("weight").toTensor();
    }
    CHECK(code.expired());
    CHECK(weight.use_count() == 1);
}

TEST_CASE("copies of a marked model come and go") {
    Marked marked(working);
    for (int i = 0; i < 30; ++i) {
        torch::jit::Module copy = marked.model.deepcopy();
        copy.attr("weight").toTensor().fill_(i);
        for (int call = 0; call < 3; ++call) {
            const torch::NoGradGuard no_grad;
            CHECK(at::equal(copy.forward({row(1)}).toTensor(), row(2 + i)));
            CHECK(at::equal(marked(row(call)), row(2 * call + 1)));
        }
    }
    CHECK(marked.said().graphs <= 8);
}

TEST_CASE("what the environment says of graphs is read strictly") {
    CHECK(runtime::parse_replay_settings("", "").on);
    CHECK_FALSE(runtime::parse_replay_settings("", "0").statistics);
    CHECK_FALSE(runtime::parse_replay_settings("off", "1").on);
    CHECK(runtime::parse_replay_settings("off", "1").statistics);
    const auto limits = runtime::parse_replay_settings("max_graphs=4,max_bytes=5000", "").limits;
    CHECK(limits.max_graphs == 4);
    CHECK(limits.max_bytes == 5000);
    for (const char* bad : {"of", "max_graphs=", "max_graphs=x", "max_bytes=-1", "max_graphs=4 ",
                            "max_bytes=99999999999999999999999"}) {
        CHECK_THROWS_AS(runtime::parse_replay_settings(bad, ""), Error);
    }
}
