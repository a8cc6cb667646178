#include "runtime/kernels/op_library.h"

#include "base/sha256.h"
#include "runtime/kernels/own_place.h"
#include "runtime/kernels/package_operators.h"
#include "twinkle/error.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <mutex>

namespace twinkle::runtime {

namespace {

[[noreturn]] void refuse(const MappedKernel& kernel, const std::string& what,
                         const std::string& why, const std::string& hint) {
    throw Error(ErrorCode::refused,
                {.what = what, .where = kernel.path.string(), .why = why, .hint = hint});
}

void require_operators(const MappedKernel& kernel) {
    for (const MappedOperator& op : kernel.operators) {
        const auto dot = op.name.find('.');  // "add.out": an overload
        const auto name = kernel.op_namespace + "::" + op.name.substr(0, dot);
        const auto overload = dot == std::string::npos ? "" : op.name.substr(dot + 1);
        if (!c10::Dispatcher::singleton().findSchema({name, overload})) {
            refuse(kernel,
                   "the kernel " + kernel.name + " does not register " + kernel.op_namespace +
                       "::" + op.name,
                   "its library was loaded and registered other operators",
                   "the build is broken, or its metadata.json belongs to another one");
        }
    }
}

}  // namespace

std::filesystem::path python_stub() {
    return own_folder() / "libtwinkle_python_stub.so";
}

void provide_python_symbol() {
    static std::once_flag once;
    std::call_once(once, [] {
        if (::dlsym(RTLD_DEFAULT, "PyModule_Create2") != nullptr) {
            return;
        }
        ::dlopen(python_stub().c_str(), RTLD_NOW | RTLD_GLOBAL);
    });
}

// `Tensor!` has an empty set after the call; the one before it is what the author meant for both.
void complete_alias_sets(const std::string& op_namespace) {
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        if (name.getNamespace() != op_namespace) {
            continue;
        }
        const auto op = dispatcher.findSchema(name);
        if (!op) {
            continue;
        }
        for (const c10::Argument& argument : op->schema().arguments()) {
            auto* alias = const_cast<c10::AliasInfo*>(argument.alias_info());
            if (alias != nullptr && alias->isWrite() && alias->afterSets().empty()) {
                for (const c10::Symbol& set : alias->beforeSets()) {
                    alias->addAfterSet(set);
                }
            }
        }
    }
}

bool namespace_is_taken(const std::string& op_namespace) {
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        if (name.getNamespace() == op_namespace && dispatcher.findSchema(name)) {
            return true;
        }
    }
    // The interpreter has operators that the dispatcher does not know: prim, and those of twinkle
    // itself.
    const auto operators = torch::jit::getAllOperators();
    return std::any_of(operators.begin(), operators.end(), [&](const auto& op) {
        return op_namespace == op->schema().name().substr(0, op->schema().name().find("::"));
    });
}

namespace {

// The file of a library of this process, by its name; empty where none has it.
std::filesystem::path loaded_file(const std::string& name) {
    struct Search {
        std::string name;
        std::filesystem::path found;
    } search{name, {}};
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            auto& wanted = *static_cast<Search*>(data);
            const std::filesystem::path file(info->dlpi_name);
            if (file.filename() == wanted.name) {
                wanted.found = file;
            }
            return 0;
        },
        &search);
    return search.found;
}

// Whether somebody else has loaded this very build before, as Python's kernels package does.
bool is_open_already(const MappedKernel& kernel) {
    bool any = false;
    for (const MappedFile& file : kernel.files) {
        if (!file.path.ends_with(".so")) {
            continue;
        }
        const auto loaded = loaded_file(std::filesystem::path(file.path).filename().string());
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(loaded, ignored) ||
            base::hash_file(loaded).sha256 != file.sha256) {
            return false;
        }
        any = true;
    }
    return any;
}

// What a kernel needs by name is beside libtorch_cpu.so, also where the program has loaded that one
// alone; for good, as everything here. False: there is no such file, or it was opened before.
bool open_beside_libtorch(const std::string& name) {
    const auto file = loaded_file("libtorch_cpu.so").parent_path() / name;
    std::error_code ignored;
    return name.find('/') == std::string::npos && loaded_file(name).empty() &&
           std::filesystem::is_regular_file(file, ignored) &&
           ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr;
}

// Null, and why it cannot be opened.
std::pair<void*, std::string> open_library(const std::string& path) {
    for (;;) {
        if (void* opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); opened != nullptr) {
            return {opened, ""};
        }
        const char* why = ::dlerror();
        const std::string text = why != nullptr ? why : "unknown";
        // "libtorch.so: cannot open shared object file: …"
        if (!open_beside_libtorch(text.substr(0, text.find(": cannot open")))) {
            return {nullptr, text};
        }
    }
}

void* open_for_good(const MappedKernel& kernel, SealedLibrary library) {
    const std::string path = "/proc/self/fd/" + std::to_string(library.descriptor.get());
    auto [opened, why] = open_library(path);
    if (opened == nullptr) {
        if (why.starts_with(path)) {
            why.replace(0, path.size(), library.path);
        }
        refuse(kernel, "the library of the kernel " + kernel.name + " cannot be loaded", why,
               "`twinkle versions` shows which builds fit this machine");
    }
    // The loader knows a library by its name, so its descriptor's number must never be used again.
    static auto& kept = *new std::vector<SealedLibrary>();
    kept.push_back(std::move(library));
    return opened;
}

std::vector<OpenedPackage> open_packages(const MappedKernel& kernel,
                                         std::vector<SealedPackage> packages) {
    std::vector<OpenedPackage> opened;
    for (SealedPackage& package : packages) {
        const std::string path = package.library.path;
        void* library = open_for_good(kernel, std::move(package.library));
        try {
            opened.push_back({package.facts.op, package.facts.model.made_for.device,
                              std::make_shared<PackageCode>(library, path)});
        } catch (const std::runtime_error& error) {
            refuse(kernel, "the package " + path + " cannot be used", error.what(),
                   "compile it again");
        }
    }
    return opened;
}

}  // namespace

void open_op_libraries(const MappedKernel& kernel, SealedCode code) {
    if (code.empty()) {
        return;
    }
    if (namespace_is_taken(kernel.op_namespace)) {
        if (is_open_already(kernel)) {
            complete_alias_sets(kernel.op_namespace);
            return require_operators(kernel);
        }
        refuse(kernel, "the operator namespace " + kernel.op_namespace + " is taken already",
               "another library of this process defines it, and two would end the process",
               "load one of the two kernels only");
    }
    if (!code.libraries.empty()) {
        provide_python_symbol();
    }
    for (SealedLibrary& library : code.libraries) {
        open_for_good(kernel, std::move(library));
    }
    register_packages(kernel.op_namespace, open_packages(kernel, std::move(code.packages)));
    complete_alias_sets(kernel.op_namespace);
    require_operators(kernel);
}

}  // namespace twinkle::runtime
