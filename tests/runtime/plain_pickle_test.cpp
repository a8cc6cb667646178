// The pickle of an object of torch.classes: what it may hold, and what is refused.

#include "runtime/exported/plain_pickle.h"
#include "archive/json_reader.h"
#include "runtime/exported/object_state.h"

#include <ATen/core/jit_type.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

// After LibTorch.
#include "catch.h"

using namespace twinkle::runtime::exported;
using twinkle::archive::InvalidJson;

namespace {

using namespace std::string_literals;

const std::string CLASS = "c__torch__.torch.classes.ns\nThing\n";

// An object with this state, as instructions of the pickle protocol 2.
std::string object(const std::string& state) {
    return "\x80\x02"s + CLASS + ")\x81" + state + "b.";
}

Plain state(const std::string& instructions) {
    const PlainObject read = read_plain_object(object(instructions));
    CHECK(read.class_name == "__torch__.torch.classes.ns.Thing");
    return read.state;
}

std::string refusal_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const InvalidJson& error) {
        return error.what();
    }
    return "";
}

std::string refusal(const std::string& pickle) {
    return refusal_of([&] { read_plain_object(pickle); });
}

std::string repeated(const std::string& instructions, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) {
        all += instructions;
    }
    return all;
}

std::string text(const std::string& value) {
    std::string size(4, '\0');
    for (std::size_t i = 0; i < 4; ++i) {
        size[i] = static_cast<char>(value.size() >> (8 * i));
    }
    return "X" + size + value;
}

std::string storage_of(const std::string& record) {
    return "(" + text("storage") + "ctorch\nFloatStorage\n" + text(record) + text("cpu") +
           "K\x01tQ";
}

Plain plain(PlainValue value) {
    return std::make_shared<PlainValue>(std::move(value));
}

Plain plain_integer(std::int64_t value) {
    return plain({.kind = PlainKind::integer, .integer = value});
}

Plain plain_tuple(std::vector<Plain> items) {
    return plain({.kind = PlainKind::tuple, .items = std::move(items)});
}

// float32[sizes] in which every element is the first of the record.
Plain plain_tensor(const std::string& record, std::vector<Plain> sizes) {
    const std::vector<Plain> strides(sizes.size(), plain_integer(0));
    const Plain storage = plain({.kind = PlainKind::storage, .text = record, .dtype = at::kFloat});
    const std::vector<Plain> items = {storage,
                                      plain_integer(0),
                                      plain_tuple(std::move(sizes)),
                                      plain_tuple(strides),
                                      plain({.kind = PlainKind::boolean}),
                                      plain({.kind = PlainKind::none})};
    return plain({.kind = PlainKind::tensor, .dtype = at::kFloat, .items = items});
}

// Of a list of these, whose records all hold a one.
std::string refusal_of_state(const std::vector<Plain>& items, const c10::TypePtr& type,
                             std::vector<std::string>* records = nullptr) {
    const Plain list = plain({.kind = PlainKind::list, .items = items});
    return refusal_of([&] {
        state_of(list, c10::ListType::create(type), [&](const std::string& record) {
            if (records != nullptr) {
                records->push_back(record);
            }
            return std::string("\0\0\x80\x3f", 4);
        });
    });
}

}  // namespace

TEST_CASE("numbers of all widths are read", "[plain_pickle]") {
    const std::vector<std::pair<std::string, std::int64_t>> cases = {
        {"K\xff"s, 255},
        {"M\xff\xff"s, 65535},
        {"J\xff\xff\xff\xff"s, -1},
        {"J\x00\x00\x00\x80"s, -2147483648LL},
        {"\x8a\x00"s, 0},
        {"\x8a\x01\x80"s, -128},
        {"\x8a\x02\x80\x00"s, 128},
        {"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"s, INT64_MIN},
        {"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s, INT64_MAX},
    };
    for (const auto& [instructions, expected] : cases) {
        const Plain read = state(instructions);
        CHECK(read->kind == PlainKind::integer);
        CHECK(read->integer == expected);
    }
    CHECK(state("G\xbf\xf8\x00\x00\x00\x00\x00\x00"s)->number == -1.5);
    CHECK(state("\x88")->integer == 1);
    CHECK(state("\x89")->integer == 0);
    CHECK(state("N")->kind == PlainKind::none);
}

TEST_CASE("containers keep their order and what they share", "[plain_pickle]") {
    const Plain list = state(
        "]q\x00(K\x01K\x02K\x03"
        "e"s);
    REQUIRE(list->kind == PlainKind::list);
    REQUIRE(list->items.size() == 3);
    CHECK(list->items[2]->integer == 3);

    const Plain dict = state(
        "}(X\x01\x00\x00\x00"
        "aK\x01X\x01\x00\x00\x00"
        "bK\x02u"s);
    REQUIRE(dict->kind == PlainKind::dict);
    REQUIRE(dict->items.size() == 4);
    CHECK(dict->items[2]->text == "b");

    const Plain twice = state("]q\x05h\x05\x86"s);
    REQUIRE(twice->kind == PlainKind::tuple);
    CHECK(twice->items[0] == twice->items[1]);
}

TEST_CASE("a tensor is its arguments, and nothing is called", "[plain_pickle]") {
    const std::string storage =
        "(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00"
        "7X\x03\x00\x00\x00"
        "cpuK\x06tQ"s;
    const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n(" + storage +
                               "K\x00K\x02K\x03\x86K\x03K\x01\x86\x89)tR"s;
    const Plain read = state(tensor);
    REQUIRE(read->kind == PlainKind::tensor);
    CHECK(read->dtype == at::kFloat);
    CHECK(read->items[0]->text == "7");
    CHECK(read->items[0]->integer == 6);
}

TEST_CASE("what is no plain value is refused", "[plain_pickle]") {
    CHECK_THAT(refusal(object("cos\nsystem\n(X\x02\x00\x00\x00lstR"s)),
               ContainsSubstring("calls os.system"));
    CHECK_THAT(refusal(object(CLASS + ")\x81")), ContainsSubstring("an object in an object"));
    CHECK_THAT(refusal("\x80\x02K\x01."s), ContainsSubstring("something else than one object"));
    CHECK_THAT(refusal("\x80\x02"s + CLASS +
                       ")\x81K\x01K\x02"
                       "b."),
               ContainsSubstring("an object in an object"));
    CHECK_THAT(refusal(object("h\x07")), ContainsSubstring("a value that it does not have"));
    CHECK_THAT(refusal(object("\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01"s)),
               ContainsSubstring("more than 64 bits"));
    CHECK_THAT(refusal("\x80\x02"
                       "a"),
               ContainsSubstring("without operands"));
    CHECK_THAT(refusal(object("K\x01K\x02"
                              "a")),
               ContainsSubstring("no list or dict"));
    CHECK_THAT(refusal(object("\x94")), ContainsSubstring("no such object needs"));
    CHECK_THAT(refusal(object("(K\x01")), ContainsSubstring("without operands"));
    CHECK_THAT(refusal(""), ContainsSubstring("ends too early"));
}

TEST_CASE("a pickle that is cut off anywhere is refused", "[plain_pickle]") {
    const std::string whole = object(
        "](K\x01G\x3f\xf0\x00\x00\x00\x00\x00\x00X\x03\x00\x00\x00"
        "abc}e"s);
    REQUIRE(refusal(whole).empty());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        INFO("of " << whole.size() << " bytes: " << size);
        CHECK(!refusal(whole.substr(0, size)).empty());
    }
}

TEST_CASE("few bytes of a pickle ask for few values", "[plain_pickle]") {
    SECTION("arguments of a tensor that all calls share") {
        const auto tensors = [](int arguments) {
            return object("(ctorch._utils\n_rebuild_tensor_v2\nq\x01(" + storage_of("0") +
                          repeated("N", arguments) + "tq\x02R" + repeated("h\x01h\x02R", 100) +
                          "t");
        };
        CHECK(refusal(tensors(6)).empty());
        CHECK_THAT(refusal(tensors(1000)), ContainsSubstring("more arguments than it takes"));
    }
    SECTION("the name of a record that all storages share") {
        const auto storages = [](std::size_t name) {
            return object("((" + text("storage") + "ctorch\nFloatStorage\n" +
                          text(std::string(name, 'n')) + text("cpu") + "K\x01tq\x01Q" +
                          repeated("h\x01Q", 200) + "t");
        };
        CHECK(refusal(storages(10)).empty());
        CHECK_THAT(refusal(storages(1 << 20)), ContainsSubstring("more values than any sane one"));
    }
    SECTION("the name of a device") {
        const auto devices = [](std::size_t name) {
            return object("(ctorch\ndevice\nq\x01" + text(std::string(name, 'n')) + "\x85q\x02R" +
                          repeated("h\x01h\x02R", 200) + "t");
        };
        CHECK(refusal(devices(10)).empty());
        CHECK_THAT(refusal(devices(1 << 20)), ContainsSubstring("more values than any sane one"));
    }
}

TEST_CASE("a state is as large as its pickle", "[plain_pickle]") {
    SECTION("a text in many places") {
        const auto texts = [](std::size_t size) {
            const Plain one = plain({.kind = PlainKind::text, .text = std::string(size, 't')});
            return refusal_of_state(std::vector<Plain>(200, one), c10::StringType::get());
        };
        CHECK(texts(10).empty());
        CHECK_THAT(texts(1 << 20), ContainsSubstring("more values than any sane one"));
    }
    SECTION("a record under all of its spellings") {
        std::vector<std::string> read;
        const std::vector<Plain> one = {plain_integer(1)};
        CHECK(refusal_of_state({plain_tensor("ab", one), plain_tensor("Ab", one),
                                plain_tensor("aB", one), plain_tensor("ab\0c"s, one)},
                               c10::TensorType::get(), &read)
                  .empty());
        CHECK(read == std::vector<std::string>{"ab"});
    }
    SECTION("scales of tensors") {
        const auto quantized = [](std::int64_t channels) {
            const std::vector<Plain> sizes = {plain_integer(channels)};
            auto tensor = *plain_tensor("0", sizes);
            tensor.items[0] = plain({.kind = PlainKind::storage, .text = "0", .dtype = at::kQInt8});
            tensor.items[4] =
                plain_tuple({plain({.kind = PlainKind::name, .text = "torch.per_channel_affine"}),
                             plain_tensor("0", sizes), plain_tensor("0", sizes), plain_integer(0)});
            return refusal_of_state(std::vector<Plain>(12, plain(tensor)), c10::TensorType::get());
        };
        CHECK(quantized(10).empty());
        CHECK_THAT(quantized(1 << 20), ContainsSubstring("more values than any sane one"));
    }
    SECTION("dimensions") {
        CHECK_THAT(refusal_of_state({plain_tensor("0", std::vector<Plain>(65, plain_integer(1)))},
                                    c10::TensorType::get()),
                   ContainsSubstring("more dimensions"));
    }
}
