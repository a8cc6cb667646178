#include "tuning/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <string_view>

#include "base/file.h"
#include "base/io_error.h"
#include "base/text.h"
#include "base/write_all.h"
#include "tuning/json_reading.h"
#include "twinkle/error.h"

namespace twinkle::tuning {
namespace {

constexpr std::uint64_t largest_record = 16u << 20;
constexpr std::size_t longest_line = 64u << 10;
constexpr std::size_t longest_name = 500;
constexpr base::JsonLimits line_limits{.bytes = longest_line, .depth = 8};
constexpr std::int64_t version = 1;
constexpr std::size_t deepest = 8;  // as --inputs takes them

// "int64[1,128]" from the front, if it begins so.
bool take_tensor(std::string_view& text) {
    const std::size_t open = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_");
    if (open == 0 || open == std::string_view::npos || text[open] != '[') {
        return false;
    }
    const std::size_t close = text.find_first_not_of("0123456789,", open + 1);
    if (close == std::string_view::npos || text[close] != ']') {
        return false;
    }
    text.remove_prefix(close + 1);
    return true;
}

// Accepts those of --inputs, without ranges: nothing else may be in it, a path least of all.
bool is_description(std::string_view text) {
    std::string ends;  // of the tuples and lists that are open, the innermost last
    while (true) {
        while (text.starts_with('(') || text.starts_with('[')) {
            if (ends.size() == deepest || ends.ends_with(']')) {  // a list holds tensors alone
                return false;
            }
            ends += text.front() == '(' ? ')' : ']';
            text.remove_prefix(1);
        }
        if (!take_tensor(text)) {
            return false;
        }
        while (!ends.empty() && text.starts_with(ends.back())) {
            ends.pop_back();
            text.remove_prefix(1);
        }
        if (!text.starts_with(';')) {
            return text.empty() && ends.empty();
        }
        text.remove_prefix(1);
    }
}

void read_line(std::string_view line, std::set<RecordedRun>& runs,
               std::map<std::string, Invocation>& invocations) {
    constexpr std::string_view origin = "record";
    const base::Node root = base::parse_json_document(line, origin, line_limits);
    base::TableReader reader(root, origin, "a line");
    if (required_count(reader, "record") != version) {
        reader.fail(root, "it is of another version");
    }
    if (const base::Node* invocation = reader.find("invocation")) {
        Invocation one = read_invocation(*invocation, origin);
        reader.finish();
        invocations.emplace(one.key(), std::move(one));
        return;
    }
    RecordedRun run{base::printable(reader.required_string("model")),
                    reader.string("inputs").value_or(""),
                    base::printable(reader.string("unfit").value_or(""))};
    reader.finish();
    if ((run.unfit.empty() ? !is_description(run.inputs) : !run.inputs.empty()) ||
        run.model.size() > longest_name || run.unfit.size() > longest_name) {
        reader.fail(root, "its inputs are no description of tensors");
    }
    runs.insert(std::move(run));
}

[[noreturn]] void cannot_write(const std::filesystem::path& file, const std::string& why) {
    throw Error(ErrorCode::failed, {.what = "calls cannot be recorded",
                                    .where = base::display_path(file),
                                    .why = why,
                                    .hint = "name a file that this process may write"});
}

}  // namespace

std::set<std::string> Record::models() const {
    std::set<std::string> names;
    for (const RecordedRun& run : runs) {
        names.insert(run.model);
    }
    return names;
}

Record read_record(const std::filesystem::path& file) {
    const std::string text = base::read_file(file, "record", largest_record);
    std::set<RecordedRun> runs;
    std::map<std::string, Invocation> invocations;
    Record record;
    for (const std::string& line : base::split(text, '\n')) {
        if (line.empty()) {
            continue;
        }
        try {
            read_line(line, runs, invocations);
        } catch (const Error&) {
            ++record.unreadable;
        }
    }
    if (runs.empty() && invocations.empty() && record.unreadable > 0) {
        throw Error(ErrorCode::malformed, {.what = "it is no record of a server",
                                           .where = base::display_path(file),
                                           .why = "not one of its lines can be read",
                                           .hint = "TWINKLE_RECORD=FILE makes one"});
    }
    record.runs.assign(runs.begin(), runs.end());
    for (auto& [key, invocation] : invocations) {
        record.invocations.push_back(std::move(invocation));
    }
    return record;
}

std::string record_line(const RecordedRun& run) {
    base::Json json = {{"record", version}, {"model", run.model}};
    json[run.unfit.empty() ? "inputs" : "unfit"] = run.unfit.empty() ? run.inputs : run.unfit;
    return base::json_line(json);
}

std::string record_line(const Invocation& invocation) {
    return base::json_line({{"record", version}, {"invocation", invocation_json(invocation)}});
}

bool Shard::has(const std::string& hash) const {
    constexpr std::size_t digits = 15;  // fit a number
    return of <= 1 || std::stoull(hash.substr(0, digits), nullptr, 16) % of == number - 1;
}

RecordFile::RecordFile(std::filesystem::path file)
    : file_(std::move(file)),
      fd_(::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644)) {
    struct stat info{};
    if (!fd_ || ::fstat(fd_.get(), &info) != 0) {
        cannot_write(file_, base::io_reason(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        cannot_write(file_, "it is no regular file");
    }
}

std::string RecordFile::append(const std::string& line) const {
    struct stat info{};
    if (::fstat(fd_.get(), &info) != 0) {
        return base::io_reason(errno);
    }
    if (line.size() > longest_line) {
        return "";
    }
    if (static_cast<std::uint64_t>(info.st_size) + line.size() > largest_record / 2) {
        return "the record is full";
    }
    // The line break before it ends what another process could not write to its end.
    const int error = base::write_all(fd_.get(), "\n" + line + "\n");
    return error == 0 ? "" : base::io_reason(error);
}

}  // namespace twinkle::tuning
