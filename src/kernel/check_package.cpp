#include "kernel/check_package.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "python/parser.h"
#include "python/walk.h"

namespace twinkle::kernel {
namespace {

using namespace python;

// The top-level modules of Python's own library.
constexpr std::string_view library_modules =
    "__future__ _thread abc aifc antigravity argparse array ast asynchat asyncio asyncore "
    "atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb "
    "chunk cmath cmd code codecs codeop collections colorsys compileall concurrent "
    "configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses "
    "datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum "
    "errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc "
    "genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html "
    "http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json "
    "keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes "
    "mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath "
    "nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle "
    "pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile "
    "pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re "
    "readline reprlib resource rlcompleter runpy sched secrets select selectors shelve "
    "shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 "
    "sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct "
    "subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile "
    "termios textwrap this threading time timeit tkinter token tokenize tomllib trace "
    "traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib "
    "uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml "
    "xmlrpc zipapp zipfile zipimport zlib zoneinfo ";

struct Dependency {
    std::string_view name;     // in python-depends
    std::string_view module;   // that it provides; empty: none
    std::string_view backend;  // the only one that it is for; empty: all
};
constexpr std::array known_dependencies{
    Dependency{"einops", "einops", ""},   Dependency{"helion", "helion", ""},
    Dependency{"tvm-ffi", "tvm_ffi", ""}, Dependency{"nvidia-cutlass-dsl", "cutlass", "cuda"},
    Dependency{"nki", "nki", "neuron"},   Dependency{"onednn", "", "xpu"}};

// Part of torch, installed with it, or of the library that loads kernels.
constexpr std::array<std::string_view, 3> always_there{"torch", "triton", "kernels"};

const Dependency* find_dependency(std::string_view name) {
    const auto found = std::find_if(known_dependencies.begin(), known_dependencies.end(),
                                    [&](const Dependency& one) { return one.name == name; });
    return found == known_dependencies.end() ? nullptr : &*found;
}

class ImportChecker {
public:
    ImportChecker(const PackageRules& rules, Findings& findings)
        : rules_(rules), findings_(findings) {}

    void check(const std::string& file, const std::string& text) {
        file_ = rules_.folder + file;
        const auto tree = parse_module(text, file);
        if (!tree) {
            findings_.push_back({"package/syntax", Severity::error, tree.error().message, file_,
                                 static_cast<int>(tree.error().line)});
            return;
        }
        block((*tree)->body, false);
    }

private:
    // `optional`: it may fail, and the package goes on.
    void block(const Block& body, bool optional) {
        for (const StmtPtr& statement : body) {
            visit(*statement, optional);
        }
    }

    void visit(const Node& node, bool optional) {
        if (const auto* import = as<Import>(node)) {
            for (const Alias& alias : import->names) {
                use(node, alias.name, optional);
            }
        } else if (const auto* from = as<ImportFrom>(node)) {
            if (from->level == 0) {
                use(node, from->module, optional);
            }
        } else if (const auto* attempt = as<Try>(node)) {
            block(attempt->body, optional || !attempt->handlers.empty());
            for (const ExceptHandler& handler : attempt->handlers) {
                block(handler.body, optional);
            }
            block(attempt->orelse, optional);
            block(attempt->finalbody, optional);
        } else if (const auto* branch = as<If>(node)) {
            block(branch->body, true);
            block(branch->orelse, true);
        } else {
            for_each_child(node, [&](const Node& child) { visit(child, optional); });
        }
    }

    void use(const Node& node, const std::string& name, bool optional) {
        const std::string root = name.substr(0, name.find('.'));
        const int line = static_cast<int>(node.span.line);
        if (!rules_.name.empty() && root == rules_.name) {
            findings_.push_back({"package/relative-import", Severity::error,
                                 "imports " + name + " by its absolute name", file_, line});
            return;
        }
        const auto declares = [&](const std::string& declared) {
            const Dependency* known = find_dependency(declared);
            return known ? known->module == root : declared == root;
        };
        if (in_python_library(root) ||
            std::find(always_there.begin(), always_there.end(), root) != always_there.end() ||
            std::any_of(rules_.python_depends.begin(), rules_.python_depends.end(), declares)) {
            return;
        }
        findings_.push_back({"dependency/undeclared",
                             optional ? Severity::warning : Severity::error,
                             "imports " + name + ", which python-depends does not declare" +
                                 (optional ? "; it goes on without it" : ""),
                             file_, line});
    }

    const PackageRules& rules_;
    Findings& findings_;
    std::string file_;
};

}  // namespace

bool in_python_library(std::string_view module) {
    static const auto& modules = *[] {
        const auto words = base::split(library_modules, ' ');
        return new std::set<std::string, std::less<>>(words.begin(), words.end());
    }();
    return !module.empty() && modules.contains(module);
}

void check_package(const PackageSources& sources, const PackageRules& rules, Findings& findings) {
    ImportChecker checker(rules, findings);
    for (const auto& [file, text] : sources) {
        checker.check(file, text);
    }
}

void check_dependencies(std::span<const std::string> declared,
                        std::optional<target::BackendKind> backend, const std::string& file,
                        Findings& findings) {
    for (const std::string& name : declared) {
        const Dependency* known = find_dependency(name);
        if (known == nullptr) {
            findings.push_back({"dependency/unknown", Severity::error,
                                "python-depends names " + base::printable(name), file});
        } else if (backend && !known->backend.empty() &&
                   known->backend != target::backend_type_name(*backend)) {
            findings.push_back({"dependency/unknown", Severity::error,
                                "python-depends names " + name + ", which is for " +
                                    std::string(known->backend) + " only",
                                file});
        }
    }
}

void check_layers(const PackageSources& sources, const PythonNeeds& needs,
                  const std::string& folder, Findings& findings) {
    for (const LayerSource& layer : read_layers(sources).layers) {
        for (const Problem& problem : layer.problems) {
            findings.push_back({"layer/rules", Severity::error,
                                "the layer " + layer.name + ": " + problem.text,
                                folder + problem.file, problem.line});
        }
        const Verdict verdict = judge(layer.usage, needs);
        if (verdict.usable == Usability::needs_python) {
            const Reason& reason = verdict.reasons.front();
            const bool in_source = reason.line > 0;
            findings.push_back({"layer/python", Severity::note,
                                "the layer " + layer.name + " needs Python: " +
                                    (in_source ? reason.text : reason.message()),
                                folder + (in_source ? reason.file : layer.file),
                                in_source ? reason.line : layer.line});
        }
    }
}

}  // namespace twinkle::kernel
