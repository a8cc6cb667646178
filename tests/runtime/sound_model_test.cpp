// Saved models that are refused before LibTorch, which trusts them, reads them.

#include "archive/zip_directory.h"
#include "runtime/model/valid_code.h"
#include "runtime/model/valid_pickle.h"
#include "runtime/model/valid_tensors.h"
#include "runtime/scripted.h"

// After LibTorch.
#include "catch.h"

using namespace twinkle;
using namespace twinkle::runtime;
using namespace twinkle::archive;

namespace {

std::string times(const std::string& text, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
        all += text;
    }
    return all;
}

std::string pickle(const std::string& body) {
    return "\x80\x02" + body + ".";
}

std::string problem(const std::string& data) {
    return invalid_pickle(data).value_or("");
}

}  // namespace

TEST_CASE("code that is nested, chained or indented without end is refused") {
    CHECK_FALSE(invalid_code("def f(self, x):\n  return torch.add(x, [1.5, -2., ')'])  # (((\n"));
    CHECK(invalid_code("x = " + times("(", 2000)));
    CHECK(invalid_code("x = " + times("[", 1001) + times("]", 1001)));
    CHECK_FALSE(invalid_code("x = " + times("[", 999) + times("]", 999)));
    CHECK(invalid_code("x = " + times("-", 2000) + "1"));
    CHECK(invalid_code("x = " + times("not ", 2000) + "y"));
    CHECK(invalid_code("x = y" + times(".a", 2000)));
    CHECK(invalid_code("x = 1" + times(" + 1", 2000)));
    CHECK(invalid_code("x = f" + times("()", 2000)));
    CHECK(invalid_code("x = f(y" + times(" + g(1)", 2000) + ")"));
    CHECK(invalid_code(times(" ", 500) + "x = 1\n" + times(" ", 500) + "x = 1\n"));
    // Long is not deep.
    CHECK_FALSE(invalid_code("x = [" + times("-1.5, ", 100000) + "]"));
    CHECK_FALSE(invalid_code(times("x = a.b + 1\n", 100000)));
    CHECK_FALSE(invalid_code("x = \"" + times("(", 5000) + "\""));
}

TEST_CASE("pickles that would not stay within their bytes are refused") {
    CHECK(problem(pickle("K\x01")).empty());
    CHECK(problem(pickle("(K\x01K\x02t")).empty());
    CHECK(problem(pickle("]q\x01h\x01\x61")).find("holds itself") != std::string::npos);
    const std::string text_length("X\x05\0\0\0ab", 7);
    CHECK(problem(pickle(text_length)).find("length") != std::string::npos);
    CHECK(problem("").find("too early") != std::string::npos);
    CHECK(problem("\x80\x02K\x01").find("too early") != std::string::npos);
    CHECK(problem(pickle("r\xff\xff\xff\x7f")).find("no operands") != std::string::npos);
    CHECK(problem(pickle("Nr\xff\xff\xff\x7f")).find("numbers more values") != std::string::npos);
    CHECK(problem(pickle("h\x01")).find("does not have") != std::string::npos);
    for (const char* none : {"t", "R", "Na", "b", "e", "0", "\x86", "Q", "(R", "N(a"}) {
        CHECK(problem(pickle(none)).find("no operands") != std::string::npos);
    }
    CHECK(problem(pickle("(")).find("no operands") != std::string::npos);
    CHECK(problem(pickle("?")).find("instruction that no model has") != std::string::npos);
    CHECK(problem(pickle(times("(", 600) + times("t", 600))).find("nested") != std::string::npos);
    CHECK(problem(pickle("K\x01" + times("\x85", 600))).find("nested") != std::string::npos);
    // Deep only by way of memoized values.
    std::string chain = "]q" + std::string(1, '\0');
    for (int i = 1; i < 250; ++i) {
        chain += "]q" + std::string(1, static_cast<char>(i)) + "h" +
                 std::string(1, static_cast<char>(i - 1)) + "a0";
    }
    CHECK(problem(pickle(chain + "h\xf9")).empty());
    std::vector<PickledStorage> storages;
    CHECK(invalid_pickle(pickle("NK\x01\x85Q"), &storages) == "a storage of it is none");
}

TEST_CASE("the storages of a pickle are those that must be there") {
    const auto text = [](const std::string& value) {
        return std::string("X") + static_cast<char>(value.size()) + std::string(3, '\0') + value;
    };
    std::vector<PickledStorage> storages;
    CHECK_FALSE(invalid_pickle(pickle("(" + text("storage") + "ctorch\nHalfStorage\n" + text("7") +
                                      text("cpu") + "M" + std::string("\x00\x01", 2) + "tQ"),
                               &storages));
    REQUIRE(storages.size() == 1);
    CHECK(storages[0].key == "7");
    CHECK(storages[0].bytes == 512);
}

TEST_CASE("tensors that reach out of their memory are found, wherever they are") {
    const auto module = [] {
        auto made = tests::module_of("Host", "def forward(self, x):\n    return x + 1\n");
        made.register_attribute("list", c10::ListType::ofTensors(),
                                c10::List<at::Tensor>({torch::ones({2}).expand({3, 2})}));
        return made;
    };
    CHECK_FALSE(invalid_tensor(module()));
    const auto stretched = [](const std::vector<std::int64_t>& sizes,
                              const std::vector<std::int64_t>& strides) {
        at::Tensor tensor = torch::ones({4});
        tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
        return tensor;
    };
    CHECK_FALSE(invalid_tensor([&] {
        auto made = module();
        made.setattr("weight", stretched({2, 0}, {1000, 1}));  // empty
        return made;
    }()));
    for (const auto& tensor : {stretched({5}, {1}), stretched({2, 2}, {3, 1}),
                               stretched({2}, {std::int64_t(1) << 62})}) {
        auto one = module();
        one.setattr("weight", tensor);
        CHECK(invalid_tensor(one));
        auto other = module();
        other.setattr("list", c10::List<at::Tensor>({torch::ones({1}), tensor}));
        CHECK(invalid_tensor(other));
    }
}

TEST_CASE("archives that would unpack to more than they are large are refused") {
    const auto stored = [](const std::string& name, std::uint64_t size) {
        return ZipEntry{name, true, size, size};
    };
    const auto packed = [](const std::string& name, std::uint64_t size) {
        return ZipEntry{name, false, 10, size};
    };
    CHECK_FALSE(invalid_sizes({stored("m/data/0", 600), stored("m/data.pkl", 300)}, 1000));
    CHECK_FALSE(invalid_sizes({packed("m/code/a.py", 1000000), stored("m/data/0", 600)}, 1000));
    CHECK_FALSE(invalid_sizes({packed("m/data/0", 1000000)}, 1000));
    // Two records over the same bytes.
    CHECK(invalid_sizes({stored("m/data/0", 600), stored("m/data/1", 600)}, 1000));
    CHECK(invalid_sizes({ZipEntry{"m/data/0", true, 10, 3ull << 30}}, 1000));
    CHECK(invalid_sizes({packed("m/data/0", 3ull << 30)}, 1000));
    CHECK(invalid_sizes({packed("m/data/0", ~0ull), packed("m/data/1", ~0ull)}, 1000));
    CHECK(invalid_sizes({packed("m/code/a.py", 3ull << 30)}, 1000));
    CHECK(invalid_sizes({packed("m/version", 3ull << 30)}, 1000));
    CHECK(invalid_sizes({stored("m/" + times("a", 600), 1)}, 1000));
    CHECK(invalid_sizes({stored(std::string("m/a\0b", 5), 1)}, 1000));
}
