#include "target/target.h"

#include <algorithm>

#include "base/text.h"
#include "twinkle/error.h"

namespace twinkle::target {
namespace {

// The given values, with the context for refusing one.
class Values {
public:
    explicit Values(const TargetSpec& spec) : spec_(spec) {}

    // None: the key is not given. "none" is a value.
    std::optional<std::string> text(const std::string& key) const {
        const auto found = spec_.values.find(key);
        return found == spec_.values.end() ? std::nullopt : std::optional(found->second);
    }
    std::optional<Version> version(const std::string& key, const std::string& value) const {
        if (value == "none") {
            return std::nullopt;
        }
        const auto parsed = parse_version(value);
        if (!parsed) {
            fail(key, value, "write a version, as in " + key + "=2.13, or none");
        }
        return parsed;
    }
    [[noreturn]] void fail(const std::string& key, const std::string& value,
                           std::string hint) const {
        throw Error(ErrorCode::malformed, {.what = "not a value for \"" + key +
                                                   "\" of a target: " + base::printable(value),
                                           .where = spec_.where,
                                           .why = "",
                                           .hint = std::move(hint)});
    }

private:
    const TargetSpec& spec_;
};

std::optional<bool> read_abi(const Values& values, const std::string& value) {
    if (value == "1" || value == "true") {
        return true;
    }
    if (value == "0" || value == "false") {
        return false;
    }
    if (value != "none") {
        values.fail("cxx11", value, "write 1 or 0");
    }
    return std::nullopt;
}

Backend read_backend(const Values& values, const std::string& value) {
    if (value == "none") {
        return {};
    }
    const auto backend = parse_backend(value);
    if (!backend) {
        values.fail("backend", value, "write it as in a variant's name: cpu, cu130, rocm71, …");
    }
    return *backend;
}

// Without a LibTorch, the newest CUDA that the driver serves.
Backend backend_of(const Machine& machine) {
    if (machine.may_have_cuda()) {
        if (const auto driver = machine.cuda_driver()) {
            return {BackendKind::cuda, driver->version};
        }
    }
    return {};
}

std::optional<std::string> arch_of(const Machine& machine, BackendKind kind) {
    std::vector<Gpu> gpus;
    if (kind == BackendKind::cuda && machine.may_have_cuda()) {
        if (auto driver = machine.cuda_driver()) {
            gpus = std::move(driver->gpus);
        }
    } else if (kind == BackendKind::rocm) {
        gpus = machine.rocm_gpus();
    }
    return gpus.empty() ? std::nullopt : std::optional(gpus.front().arch);
}

std::string read_arch(const Values& values, const std::string& value, BackendKind kind) {
    const bool fits = kind == BackendKind::cuda   ? parse_version(value).has_value()
                      : kind == BackendKind::rocm ? value.starts_with("gfx") && value.size() > 5
                                                  : true;
    if (!fits) {
        values.fail("arch", value,
                    kind == BackendKind::cuda ? "write it as arch=9.0" : "write it as arch=gfx942");
    }
    return value.substr(0, value.find(':'));  // flags of a gfx name decide nothing
}

void check_word(const Values& values, const std::string& key, const std::string& value,
                const std::vector<std::string>& words) {
    if (std::find(words.begin(), words.end(), value) == words.end()) {
        values.fail(key, value, "write one of: " + base::join(words, ", "));
    }
}

}  // namespace

std::vector<std::string> Target::devices() const {
    std::vector<std::string> found{"cpu"};
    if (backend.kind != BackendKind::cpu) {
        found.push_back(backend.device());
    }
    return found;
}

std::optional<Backend> Target::backend_for(std::string_view device) const {
    if (device == backend.device()) {
        return backend;
    }
    return device == "cpu" ? std::optional(Backend{}) : std::nullopt;
}

std::optional<int> Target::capability() const {
    if (!arch) {
        return std::nullopt;
    }
    if (const auto version = parse_version(*arch)) {
        return version->major * 10 + version->minor;
    }
    if (!arch->starts_with("gfx") || arch->size() < 6) {
        return std::nullopt;
    }
    // gfx942 is 9.4, gfx1100 is 11.0: the last two characters are minor version and stepping.
    const std::string_view digits = std::string_view(*arch).substr(3);
    const char minor = digits[digits.size() - 2];
    const auto major = parse_version(std::string(digits.substr(0, digits.size() - 2)) + ".0");
    if (!major || minor < '0' || minor > '9') {
        return std::nullopt;
    }
    return major->major * 10 + (minor - '0');
}

std::map<std::string, std::string> Target::to_map() const {
    const auto version = [](const std::optional<Version>& value) {
        return value ? value->text() : std::string("none");
    };
    return {{"torch", version(torch)},
            {"cxx11", cxx11 ? (*cxx11 ? "1" : "0") : "none"},
            {"backend", backend.text()},
            {"arch", arch.value_or("none")},
            {"cpu", cpu},
            {"os", os},
            {"tvm-ffi", version(tvm_ffi)},
            {"macos", version(macos)}};
}

std::string Target::text() const {
    std::string text;
    const auto values = to_map();
    for (const std::string& key : target_keys()) {
        if (values.at(key) != "none" || key == "torch") {
            text.append(text.empty() ? "" : ",").append(key).append("=").append(values.at(key));
        }
    }
    return text;
}

Target complete_target(const TargetSpec& spec, const Machine& machine,
                       const std::optional<Runtime>& runtime) {
    const Values values(spec);
    Target target;
    const auto torch = values.text("torch");
    target.torch = torch     ? values.version("torch", *torch)
                   : runtime ? std::optional(runtime->torch)
                             : std::nullopt;
    const auto abi = values.text("cxx11");
    // All of LibTorch's own builds have used the newer ABI since 2.7.
    target.cxx11 = abi       ? read_abi(values, *abi)
                   : runtime ? std::optional(runtime->cxx11)
                             : std::optional(true);
    const auto backend = values.text("backend");
    target.backend = backend   ? read_backend(values, *backend)
                     : runtime ? runtime->backend
                               : backend_of(machine);
    const auto arch = values.text("arch");
    if (!arch) {
        target.arch = arch_of(machine, target.backend.kind);
    } else if (*arch != "none" && target.backend.kind == BackendKind::cpu) {
        values.fail("arch", *arch, "it is a GPU's: add its backend, as in backend=cu130");
    } else if (*arch != "none") {
        target.arch = read_arch(values, *arch, target.backend.kind);
    }
    target.cpu = values.text("cpu").value_or(machine.arch());
    target.os = values.text("os").value_or(machine.os());
    if (values.text("cpu")) {
        check_word(values, "cpu", target.cpu, {"x86_64", "aarch64"});
    }
    if (values.text("os")) {
        check_word(values, "os", target.os, {"linux", "darwin", "windows"});
    }
    target.tvm_ffi = values.version("tvm-ffi", values.text("tvm-ffi").value_or("none"));
    const std::string macos = values.text("macos").value_or("none");
    const bool major_only = macos.find_first_not_of("0123456789") == std::string::npos;
    target.macos = values.version("macos", major_only && !macos.empty() ? macos + ".0" : macos);
    return target;
}

}  // namespace twinkle::target
