#include "tuning/record_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/temp_folder.h"
#include "catch.h"
#include "error_code.h"
#include "tuning/samples.h"

using namespace twinkle;
using namespace twinkle::tuning;
using tests::code_of;

TEST_CASE("what is appended to a record is read, each once") {
    const test::TempFolder folder;
    const RecordFile file(folder / "calls.jsonl");
    const RecordedRun run{"Llama", "int64[1,128];([float32[1,128,64];float32[1]])", ""};
    for (int i = 0; i < 2; ++i) {
        CHECK(file.append(record_line(run)).empty());
        CHECK(file.append(record_line(test::an_invocation())).empty());
        CHECK(file.append(record_line(RecordedRun{"Bert", "", "input 2 is a list"})).empty());
    }
    const Record record = read_record(folder / "calls.jsonl");
    REQUIRE(record.runs.size() == 2);
    CHECK(record.runs[0].unfit == "input 2 is a list");
    CHECK(record.runs[1] == run);
    CHECK(record.models() == std::set<std::string>{"Bert", "Llama"});
    REQUIRE(record.invocations.size() == 1);
    CHECK(record.invocations[0] == test::an_invocation());
    CHECK(record.unreadable == 0);
}

TEST_CASE("a line that was not written to its end harms no other") {
    const test::TempFolder folder;
    const std::string line = record_line(RecordedRun{"Llama", "int64[1,128]", ""});
    folder.write("calls.jsonl", line + "\n" + line.substr(0, 20));
    CHECK(RecordFile(folder / "calls.jsonl")
              .append(record_line(RecordedRun{"Llama", "int64[1,64]", ""}))
              .empty());
    const Record record = read_record(folder / "calls.jsonl");
    CHECK(record.runs.size() == 2);
    CHECK(record.unreadable == 1);
}

TEST_CASE("a record from outside is read with care") {
    const test::TempFolder folder;
    const std::string good = record_line(RecordedRun{"Llama", "int64[1,128]", ""});
    for (const std::string bad :
         {R"({"record":2,"model":"A","inputs":"int64[1]"})", R"({"record":1,"model":"A"})",
          R"({"record":1,"model":"A","inputs":"/etc/passwd"})",
          R"({"record":1,"model":"A","inputs":"int64[1]:0..5"})",
          R"({"record":1,"model":"A","inputs":"int64[1]","more":1})",
          R"({"record":1,"model":"A","inputs":"(int64[1];"})",
          R"({"record":1,"model":1,"inputs":"int64[1]"})", R"({"record":1,"invocation":{}})",
          R"([1])", "{", "\x01\x02"}) {
        folder.write("calls.jsonl", good + "\n" + bad + "\n");
        const Record record = read_record(folder / "calls.jsonl");
        CHECK(record.runs.size() == 1);
        CHECK(record.unreadable == 1);
        folder.write("calls.jsonl", bad + "\n");
        CHECK(code_of([&] { read_record(folder / "calls.jsonl"); }) == ErrorCode::malformed);
    }
    folder.write("calls.jsonl", std::string(17u << 20, '\n'));
    CHECK(code_of([&] { read_record(folder / "calls.jsonl"); }) == ErrorCode::malformed);
    CHECK(code_of([&] { read_record(folder / "none.jsonl"); }) == ErrorCode::not_found);
    folder.write("calls.jsonl", "");
    CHECK(read_record(folder / "calls.jsonl").runs.empty());
}

TEST_CASE("inputs in a record are closed where they are opened, and nested as inputs may be") {
    const test::TempFolder folder;
    const auto read = [&](const std::string& inputs) {
        folder.write("calls.jsonl", record_line(RecordedRun{"Llama", "bool[7]", ""}) + "\n" +
                                        record_line(RecordedRun{"Llama", inputs, ""}));
        return read_record(folder / "calls.jsonl");
    };
    for (const std::string inputs :
         {"int64[]", "((((((((int64[1]))))))))", "((((((([int64[1]])))))))",
          "(int64[1];([float32[2,3];bool[1]];(uint8[4])));bfloat16[0]"}) {
        INFO(inputs);
        const Record record = read(inputs);
        CHECK(record.unreadable == 0);
        CHECK(record.runs.size() == 2);
    }
    for (const std::string inputs :
         {"(int64[1]", "int64[1])", "([int64[1])]", "[(int64[1])]", "int64[1]int64[1]",
          "int64[[1]]", "int64[1];", ";int64[1]", "()", "[]", "[1]", "int64", "int64[1",
          "(((((((((int64[1])))))))))", "(((((((([int64[1]]))))))))"}) {
        INFO(inputs);
        const Record record = read(inputs);
        CHECK(record.unreadable == 1);
        CHECK(record.runs.size() == 1);
    }
}

TEST_CASE("a record that is full takes no more") {
    const test::TempFolder folder;
    folder.write("calls.jsonl", std::string(9u << 20, '\n'));
    CHECK_FALSE(RecordFile(folder / "calls.jsonl").append("{}").empty());
    CHECK(code_of([&] { RecordFile(folder / "no/calls.jsonl"); }) == ErrorCode::failed);
    CHECK(code_of([&] { const RecordFile tried(folder.path()); }) == ErrorCode::failed);
}

TEST_CASE("several processes share a record") {
    const test::TempFolder folder;
    constexpr int processes = 8, calls = 50;
    std::vector<pid_t> children;
    for (int i = 0; i < processes; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            const RecordFile file(folder / "calls.jsonl");
            for (int call = 0; call < calls; ++call) {
                const std::string inputs =
                    "int64[" + std::to_string(i) + "," + std::to_string(call) + "]";
                file.append(record_line(RecordedRun{"Llama", inputs, ""}));
            }
            ::_exit(0);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        ::waitpid(child, nullptr, 0);
    }
    const Record record = read_record(folder / "calls.jsonl");
    CHECK(record.runs.size() == processes * calls);
    CHECK(record.unreadable == 0);
}

TEST_CASE("shards of a record hold everything once") {
    for (const std::size_t of : {1, 2, 3, 8}) {
        std::vector<std::size_t> found(of);
        for (std::int64_t rows = 1; rows <= 400; ++rows) {
            std::size_t shards = 0;
            for (std::size_t number = 1; number <= of; ++number) {
                const bool here = Shard{number, of}.has(test::an_invocation(rows).hash());
                shards += here ? 1 : 0;
                found[number - 1] += here ? 1 : 0;
            }
            CHECK(shards == 1);
        }
        for (const std::size_t count : found) {
            CHECK(count > 400 / of / 2);
        }
    }
    // A shard of a shard: what several devices of one machine do.
    const std::string hash = test::an_invocation().hash();
    for (std::size_t number = 1; number <= 3; ++number) {
        CHECK((Shard{number, 6}.has(hash) || Shard{number + 3, 6}.has(hash)) ==
              Shard{number, 3}.has(hash));
    }
}
