// The pickle of an object of torch.classes: what it may hold, and what is refused.

#include "runtime/exported/plain_pickle.h"
#include "archive/json_reader.h"

#include <cstdint>
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

std::string refusal(const std::string& pickle) {
    try {
        read_plain_object(pickle);
    } catch (const InvalidJson& error) {
        return error.what();
    }
    return "";
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
