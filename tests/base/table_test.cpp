#include "base/table.h"

#include "base/text.h"
#include "catch.h"

using namespace twinkle::base;

namespace {

Table sites() {
    Table table({{"site", Table::Align::left, Table::Fit::tail},
                 {"error", Table::Align::right},
                 {"never used"},
                 {"because", Table::Align::left, Table::Fit::wrap}});
    table.add({{"model.layers.0.mlp"}, {"1e-7"}, {""}, {"it fits"}});
    table.add({{"model.norm"}, {""}, {""}, {"the kernel has no build for this device"}});
    return table;
}

}  // namespace

TEST_CASE("columns are aligned, empty ones left out, no line ends in a space") {
    CHECK(sites().render(0, false) ==
          "site                error  because\n"
          "model.layers.0.mlp   1e-7  it fits\n"
          "model.norm                 the kernel has no build for this device\n");
}

TEST_CASE("columns give way to the width, the widest first") {
    CHECK(sites().render(40, false) ==
          "site             error  because\n"
          "…l.layers.0.mlp   1e-7  it fits\n"
          "model.norm              the kernel has\n"
          "                        no build for\n"
          "                        this device\n");
    for (const auto& line : split(sites().render(30, false), '\n')) {
        CHECK(display_width(line) <= 30);
    }
}

TEST_CASE("words stay whole while another column can give way") {
    Table table(
        {{"a", Table::Align::left, Table::Fit::wrap}, {"b", Table::Align::left, Table::Fit::wrap}});
    table.add({{"torch-stable-abi210"}, {"one two three four five six"}});
    CHECK(table.render(32, false) ==
          "a                    b\n"
          "torch-stable-abi210  one two\n"
          "                     three four\n"
          "                     five six\n");
    CHECK(table.render(20, false).find("torch-stable-abi210") == std::string::npos);
}

TEST_CASE("colours do not change the layout, and cells cannot bring their own") {
    Table table({{"a"}, {"b"}});
    table.add({{"x", Style::green}, {"\x1b[31mred\n"}});
    CHECK(table.render(0, false) == "a  b\nx  \\x1B[31mred\\x0A\n");
    CHECK(table.render(0, true) ==
          "\x1b[1ma\x1b[0m  \x1b[1mb\x1b[0m\n\x1b[32mx\x1b[0m  \\x1B[31mred\\x0A\n");
}

TEST_CASE("a table says how narrow it can be") {
    Table table({{"site", Table::Align::left, Table::Fit::tail, 12},
                 {"of", Table::Align::left, Table::Fit::head},
                 {"status"}});
    table.add({{"model.layers.0.self_attn"}, {"short"}, {"replaced"}});
    CHECK(table.least_width() == 12 + 2 + 5 + 2 + 8);
    CHECK(display_width(split(table.render(table.least_width(), false), '\n').front()) <= 29);
}
