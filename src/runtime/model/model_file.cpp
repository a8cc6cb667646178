#include "runtime/model/model_file.h"
#include "archive/zip_directory.h"
#include "runtime/model/no_kernel_loading.h"
#include "runtime/model/other_file.h"
#include "runtime/model/program_function.h"
#include "runtime/model/unknown_operator.h"
#include "runtime/model/valid_archive.h"
#include "runtime/model/valid_tensors.h"

#include "base/file.h"
#include "base/io_error.h"
#include "base/text.h"
#include "twinkle/error.h"

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/export.h>
#include <torch/version.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <stdexcept>

namespace twinkle::runtime {

using namespace archive;

namespace {

constexpr std::size_t max_code_bytes = 256u << 20;
constexpr std::size_t max_records = 1u << 20;

[[noreturn]] void malformed(const std::filesystem::path& file, const std::string& why,
                            const std::string& hint) {
    throw Error(ErrorCode::malformed, {.what = "this is not a TorchScript model",
                                       .where = base::display_path(file),
                                       .why = why,
                                       .hint = hint});
}

std::string first_bytes(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::string head(16, '\0');
    if (in) {
        in.read(head.data(), static_cast<std::streamsize>(head.size()));
    }
    if (!in.is_open() || in.bad()) {
        throw Error(ErrorCode::failed, {.what = "the model cannot be read",
                                        .where = base::display_path(file),
                                        .why = base::io_reason(errno),
                                        .hint = ""});
    }
    head.resize(static_cast<std::size_t>(in.gcount()));
    return head;
}

const std::string how_to_save =
    "save a model with torch.jit.script or torch.jit.trace, then .save()";

bool has_record(const std::vector<std::string>& records, std::string_view suffix) {
    return std::any_of(records.begin(), records.end(),
                       [&](const std::string& name) { return name.ends_with(suffix); });
}

[[noreturn]] void invalid(const std::filesystem::path& file, const std::string& why) {
    throw Error(ErrorCode::malformed, {.what = "the model cannot be loaded",
                                       .where = base::display_path(file),
                                       .why = why,
                                       .hint = "copy or save it again"});
}

// LibTorch's reader unpacks records in its constructor.
std::unique_ptr<caffe2::serialize::PyTorchStreamReader> open_archive(
    const std::filesystem::path& file) {
    if (const auto entries = zip_directory(file)) {
        if (const auto problem = invalid_sizes(*entries, std::filesystem::file_size(file))) {
            invalid(file, *problem);
        }
    }
    try {
        return std::make_unique<caffe2::serialize::PyTorchStreamReader>(file.string());
    } catch (const std::exception& error) {
        if (std::string_view(error.what()).find("supported version") != std::string_view::npos) {
            malformed(file,
                      "it was saved by a much newer or older PyTorch than LibTorch " TORCH_VERSION,
                      "load and save it with a PyTorch of this version");
        }
        const std::string why = describe_zip(file);
        malformed(
            file, why,
            why.find("damaged") != std::string::npos ? "copy or download it again" : how_to_save);
    }
}

// Nothing is unpacked to disk, but no honest archive names its records like this.
std::vector<std::string> records_in(const std::filesystem::path& file,
                                    caffe2::serialize::PyTorchStreamReader& archive) {
    try {
        return archive.getAllRecords();
    } catch (const std::exception&) {
        malformed(file, "its zip archive has a record outside of the model's own folder",
                  how_to_save);
    }
}

std::vector<CodeFile> records_of_code(caffe2::serialize::PyTorchStreamReader& archive,
                                      std::string_view suffix) {
    std::vector<CodeFile> files;
    std::size_t total = 0;
    for (const std::string& name : archive.getAllRecords()) {
        if (!name.starts_with("code/") || !name.ends_with(suffix)) {
            continue;
        }
        total += archive.getRecordSize(name);
        if (total > max_code_bytes) {
            throw std::length_error("code");
        }
        const auto [data, size] = archive.getRecord(name);
        files.push_back({name, {static_cast<const char*>(data.get()), size}});
    }
    return files;
}

// Looks for "/lib/modeling_llama.py(71): forward", a frame of the Python that was traced.
bool has_stack_frame(std::string_view text) {
    constexpr std::string_view mark = "): ";
    for (auto at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1)) {
        auto digits = at;
        while (digits > 0 && std::isdigit(static_cast<unsigned char>(text[digits - 1]))) {
            --digits;
        }
        if (digits < at && digits > 0 && text[digits - 1] == '(') {
            return true;
        }
    }
    return false;
}

std::string pickle_in(caffe2::serialize::PyTorchStreamReader& archive) {
    try {
        const auto [data, size] = archive.getRecord("data.pkl");
        return {static_cast<const char*>(data.get()), size};
    } catch (const std::exception&) {
        return {};
    }
}

// LibTorch's own text, reduced to its message.
std::string first_line(const std::string& text) {
    std::string line = text.substr(0, text.find("\nException raised"));
    for (const std::string& part : base::split(line, '\n')) {
        if (part.find_first_not_of(' ') != std::string::npos) {
            line = part;
            break;
        }
    }
    return base::printable(line.substr(0, 300));
}

struct Misfit {
    std::string_view sign;  // in what LibTorch says
    const char* why;
    bool of_code = false;  // then its words say more: which operator, which line
};

// What LibTorch's messages mean. Code that does not compile comes first: its messages quote the
// code.
Misfit misfit_in(const std::string& text) {
    static constexpr Misfit signs[] = {
        {"Arguments for call", "its code calls an operator as this LibTorch does not have it",
         true},
        {"Unknown type name", "its code names a class that is not there", true},
        {"nonexistent attribute", "its code names an attribute that is not there", true},
        {"undefined value", "its code names something that is not there", true},
        {"has no attribute", "its code names something that is not there", true},
        {"Serialized   File", "its code does not compile", true},
        {"PytorchStreamReader", "a record of its archive is damaged or missing"},
        {"file not found", "a record of its archive is damaged or missing"},
        {"CUDA", "it holds tensors for a GPU that is not there"},
        {"ClassType", "it holds an object of a class that its code does not have"},
        {"__setstate__", "an object of it was not restored: its state and its code do not fit"},
        {"storage", "a tensor of it does not fit its data"},
    };
    for (const Misfit& one : signs) {
        if (text.find(one.sign) != std::string::npos) {
            return one;
        }
    }
    return {"", "its values are not of the types that its code says"};
}

// "torch.classes.ns.Class" in LibTorch's words on a type that it does not know; empty: of another
// kind.
std::string unknown_custom_class(const std::string& text) {
    constexpr std::string_view unknown = "Unknown type name '__torch__.";
    const auto at = text.find(unknown);
    if (at == std::string::npos) {
        return "";
    }
    const auto begin = at + unknown.size();
    const std::string name = text.substr(begin, text.find('\'', begin) - begin);
    return name.starts_with("torch.classes.") ? name : "";
}

[[noreturn]] void explain(const std::filesystem::path& file, const std::string& text) {
    constexpr std::string_view unknown = "Unknown builtin op: ";
    if (const auto at = text.find(unknown); at != std::string::npos) {
        const auto begin = at + unknown.size();
        const std::string op = text.substr(begin, text.find_first_of(".\n ", begin) - begin);
        if (op.starts_with(program_namespace)) {
            refuse_program_function(op, base::display_path(file));
        }
        refuse_unknown_operator(op, base::display_path(file));
    }
    if (const std::string name = unknown_custom_class(text); !name.empty()) {
        throw Error(ErrorCode::not_found,
                    {.what = "the model holds an object of the class " + base::printable(name),
                     .where = base::display_path(file),
                     .why = "LibTorch does not have it, and no kernel that is loaded registers it",
                     .hint = "`twinkle run` takes such a model, with the folder of the kernel in "
                             "--kernels or TWINKLE_KERNELS; no other command does"});
    }
    const Misfit misfit = misfit_in(text);
    throw Error(
        ErrorCode::malformed,
        {.what = "the model cannot be loaded",
         .where = base::display_path(file),
         .why = misfit.of_code ? std::string(misfit.why) + ": " + first_line(text) : misfit.why,
         .hint = misfit.of_code
                     ? "it was saved by another PyTorch, or changed: load and save it with "
                       "PyTorch " TORCH_VERSION
                     : "it is damaged or was changed: copy it again, or save it again with "
                       "torch.jit.save"});
}

}  // namespace

void require_torchscript(const std::filesystem::path& file) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) {
        throw Error(ErrorCode::not_found,
                    {.what = "there is no such model",
                     .where = base::display_path(file),
                     .why = std::filesystem::exists(file, ignored) ? "it is not a regular file"
                                                                   : "the file does not exist",
                     .hint = ""});
    }
    const std::string head = first_bytes(file);
    if (!head.starts_with("PK\x03\x04")) {
        malformed(file, describe_file(head, std::filesystem::file_size(file, ignored)),
                  how_to_save);
    }
    const auto archive = open_archive(file);
    const auto records = records_in(file, *archive);
    if (records.size() > max_records) {
        malformed(file, "its archive has too many records", "");
    }
    if (archive->hasRecord("model.json")) {  // LibTorch would go another way to find the code
        malformed(file, "it has the format of PyTorch before 1.3",
                  "load and save it with a newer PyTorch");
    }
    if (has_record(records, "archive_format")) {
        malformed(file, "it was compiled by AOTInductor: machine code, in which nothing is found",
                  "save the exported program with torch.export.save");
    }
    if (!has_record(records, "constants.pkl")) {
        malformed(file,
                  has_record(records, "data.pkl") ? describe_pickle(pickle_in(*archive))
                                                  : "its archive holds no TorchScript code",
                  how_to_save);
    }
}

namespace {

// Refuses files that would crash or exhaust LibTorch.
Validity require_valid(const std::filesystem::path& file) {
    try {
        Validity found = examine_archive(*open_archive(file), std::filesystem::file_size(file));
        if (found.problem) {
            invalid(file, *found.problem);
        }
        return found;
    } catch (const c10::Error&) {
        malformed(file, "its zip archive is damaged or cut short", "copy or download it again");
    }
}

}  // namespace

namespace {

void require_harmless(const std::filesystem::path& file, const Validity& found) {
    if (found.reaches_out) {
        throw Error(ErrorCode::refused,
                    {.what = "reading the model would run code that can do more than compute",
                     .where = base::display_path(file),
                     .why = *found.reaches_out,
                     .hint = "it was not run; --allow-io allows it, if you trust the model"});
    }
}

// Origins serve only messages, and to recognize a trace.
torch::jit::Module read_model(const std::filesystem::path& file, torch::Device device,
                              bool readable_origin) {
    torch::jit::ExtraFilesMap none;
    auto model = torch::jit::load(file.string(), device, none, readable_origin);
    if (readable_origin && !origins_can_be_read(model)) {
        model = torch::jit::load(file.string(), device, none, /*load_debug_files=*/false);
    }
    return model;
}

}  // namespace

torch::jit::Module open_model(const std::filesystem::path& file, const Opening& opening) {
    require_torchscript(file);
    const NoKernelLoading as_asked;
    const Validity found = require_valid(file);
    if (!opening.allow_io) {
        require_harmless(file, found);
    }
    const auto read = [&] { return read_model(file, opening.device, found.readable_origin); };
    if (found.runs_code && opening.try_first) {
        opening.try_first([&] { read(); });
    }
    try {
        torch::jit::Module model = read();
        if (const auto problem = invalid_tensor(model)) {
            invalid(file, *problem);
        }
        return model;
    } catch (const Error&) {
        throw;
    } catch (const c10::OutOfMemoryError& error) {
        throw Error(ErrorCode::failed, {.what = "there is not enough memory for the model",
                                        .where = base::display_path(file),
                                        .why = first_line(error.what()),
                                        .hint = ""});
    } catch (const std::exception& error) {
        explain(file, error.what());
    }
}

namespace {

std::vector<CodeFile> records_of(const std::filesystem::path& file, std::string_view suffix) {
    require_torchscript(file);
    try {
        return records_of_code(*open_archive(file), suffix);
    } catch (const c10::Error&) {
        malformed(file, "its zip archive is damaged or cut short", "copy or download it again");
    } catch (const std::length_error&) {
        malformed(file, "its code is larger than any sane one", "");
    }
}

}  // namespace

std::vector<CodeFile> code_of(const std::filesystem::path& file) {
    return records_of(file, ".py");
}

std::vector<CodeFile> code_of(
    const std::shared_ptr<caffe2::serialize::ReadAdapterInterface>& archive) {
    try {
        caffe2::serialize::PyTorchStreamReader reader(archive);
        return records_of_code(reader, ".py");
    } catch (const std::exception&) {
        return {};
    }
}

CodeOrigin origin_of(const std::filesystem::path& file) {
    CodeOrigin origin;
    for (const CodeFile& ranges : records_of(file, ".debug_pkl")) {
        origin.traced = origin.traced || has_stack_frame(ranges.text);
        origin.scripted = origin.scripted || ranges.text.find("def ") != std::string::npos;
    }
    return origin;
}

void save_model(const torch::jit::Module& model, const std::filesystem::path& file) {
    base::AtomicFile target(file);
    const auto fail = [&](const std::string& why) {
        throw Error(ErrorCode::failed,
                    {.what = "the model cannot be written",
                     .where = base::display_path(file),
                     .why = why,
                     .hint = "nothing was left behind; free space or choose another folder"});
    };
    errno = 0;
    std::ofstream out(target.temporary(), std::ios::binary | std::ios::trunc);
    int failure = out ? 0 : errno;
    try {
        // LibTorch's writer ends the process if a write fails in its destructor, so it never learns
        // of failures.
        torch::jit::ExportModule(model, [&](const void* data, std::size_t size) {
            const auto* bytes = static_cast<const char*>(data);
            if (failure == 0 && !out.write(bytes, static_cast<std::streamsize>(size))) {
                failure = errno;
            }
            return size;
        });
    } catch (const std::exception& error) {
        fail(first_line(error.what()));
    }
    out.close();
    if (failure != 0 || !out) {
        fail(base::io_reason(failure != 0 ? failure : errno));
    }
    target.commit();
}

}  // namespace twinkle::runtime
