#include "binary/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/file.h"
#include "base/temp_folder.h"
#include "binary/demangle.h"
#include "binary/limited_api.h"
#include "catch.h"

using namespace twinkle;
using namespace twinkle::binary;

namespace {

// The C++ library that this program runs with.
std::string cxx_library() {
    Dl_info info{};
    const void* symbol = ::dlsym(RTLD_DEFAULT, "__cxa_demangle");
    REQUIRE(symbol != nullptr);
    REQUIRE(::dladdr(symbol, &info) != 0);
    return info.dli_fname;
}

const Symbol* find(const Library& library, std::string_view name) {
    const auto& symbols = library.symbols.symbols;
    const auto found = std::find_if(symbols.begin(), symbols.end(),
                                    [&](const Symbol& symbol) { return symbol.name == name; });
    return found == symbols.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("what a real library exports and needs") {
    const auto library = read_library(cxx_library());
    REQUIRE(library);
    CHECK(library->readable);
    CHECK(library->shared);
    CHECK(library->soname.starts_with("libstdc++.so"));
    CHECK(library->symbols.complete);
    CHECK(std::count(library->needed.begin(), library->needed.end(), "libc.so.6") == 1);
    CHECK(library->newest_versions.contains("GLIBC"));
    CHECK(library->has_initializers);
    CHECK(library->python_symbols.empty());
    const Symbol* demangler = find(*library, "__cxa_demangle");
    REQUIRE(demangler != nullptr);
    CHECK(demangler->defined);
    CHECK(demangler->default_version);
    CHECK(demangler->function);
    CHECK(demangler->version == "CXXABI_1.3");
    const Symbol* copy = find(*library, "memcpy");
    REQUIRE(copy != nullptr);
    CHECK_FALSE(copy->defined);
    CHECK(copy->version.starts_with("GLIBC_2."));
}

TEST_CASE("without section headers the symbols are found all the same") {
    const auto path = cxx_library();
    const auto whole = read_library(path);
    std::string bytes = base::read_file(path, "library");
    // Zeroes place, size and number of section headers, which the loader never reads.
    std::memset(bytes.data() + 40, 0, 8);
    std::memset(bytes.data() + 60, 0, 4);
    const auto stripped = read_library(MemorySource(bytes));
    REQUIRE(stripped);
    CHECK(stripped->sections.empty());
    REQUIRE(stripped->symbols.symbols.size() == whole->symbols.symbols.size());
    CHECK(stripped->newest_versions == whole->newest_versions);
    CHECK(stripped->needed == whole->needed);
}

TEST_CASE("a link to a library is the library") {
    test::TempFolder folder;
    std::filesystem::create_symlink(cxx_library(), folder / "link.so");
    const auto library = read_library(folder / "link.so");
    REQUIRE(library);
    CHECK(find(*library, "__cxa_demangle") != nullptr);
}

TEST_CASE("what is no library of this kind") {
    CHECK_FALSE(read_library(MemorySource("")));
    CHECK_FALSE(
        read_library(MemorySource("\x7f"
                                  "ELF")));
    CHECK_FALSE(read_library(MemorySource(std::string(200, 'x'))));
    std::string header(
        "\x7f"
        "ELF\x01\x01\x01");
    header.resize(64);
    const auto small = read_library(MemorySource(header));
    REQUIRE(small);
    CHECK(small->bits == 32);
    CHECK_FALSE(small->readable);
}

TEST_CASE("cut and changed libraries are read to an end") {
    const std::string whole = base::read_file("/bin/true", "program");
    std::uint64_t table = 0;  // the section headers
    std::memcpy(&table, whole.data() + 40, sizeof table);
    std::mt19937 random(7);
    for (int i = 0; i < 600; ++i) {
        std::string changed = whole;
        if (i % 3 == 0) {
            changed.resize(random() % changed.size());
        }
        // Headers, dynamic data, section headers: where a change does most damage.
        const std::size_t places[] = {64, 4096, changed.size()};
        const std::size_t from = i % 3 == 2 ? static_cast<std::size_t>(table) : 0;
        for (int k = 0; k < 8 && !changed.empty(); ++k) {
            const std::size_t at = from + random() % places[i % 3];
            changed[at % changed.size()] = static_cast<char>(random());
        }
        read_library(MemorySource(changed));
    }
    SUCCEED();
}

TEST_CASE("versions of symbols, by their numbers") {
    CHECK(parse_symbol_version("GLIBCXX_3.4.24")->kind == "GLIBCXX");
    CHECK(parse_symbol_version("GLIBC_ABI_DT_RELR")->number == "2.36");
    CHECK_FALSE(parse_symbol_version("GLIBC_PRIVATE"));
    CHECK_FALSE(parse_symbol_version("libcudart.so.12"));
    CHECK_FALSE(parse_symbol_version("_"));
    CHECK(is_newer("2.28", "2.9"));
    CHECK(is_newer("2.2.5", "2.2"));
    CHECK_FALSE(is_newer("2.28", "2.28"));
}

TEST_CASE("names as people read them, and names made to exhaust the reader") {
    CHECK(demangle("_ZN2at6Tensor3dimEv") == "at::Tensor::dim()");
    CHECK(demangle("PyModule_Create2") == "PyModule_Create2");
    CHECK(demangle("_Zbroken") == "_Zbroken");
    std::string bomb = "_Z1fI1AE";
    for (int i = 0; i < 40; ++i) {
        bomb += "SP1AIS" + std::to_string(i % 10) + "_S" + std::to_string(i % 10) + "_E";
    }
    CHECK(demangle(bomb) == bomb);
    CHECK(outer_namespace("_ZN3c104impl3fooEv") == "c10");
    CHECK(outer_namespace("_ZNK2at6Tensor3dimEv") == "at");
    CHECK(outer_namespace("_ZTVN5torch7LibraryE") == "torch");
    CHECK(outer_namespace("_ZN999999999999999999999c10E").empty());
    CHECK(outer_namespace("_Z3foov").empty());
    CHECK(outer_namespace("memcpy").empty());
}

TEST_CASE("the limited API of Python 3.9") {
    CHECK(in_limited_api("PyModule_Create2"));
    CHECK(in_limited_api("PyObject_GetAttrString"));
    CHECK_FALSE(in_limited_api("PyType_GetModuleByDef"));  // came later
    CHECK_FALSE(in_limited_api("PyUnicode_AsUTF8"));
    CHECK_FALSE(in_limited_api("_PyThreadState_UncheckedGet"));
    CHECK_FALSE(in_limited_api(""));
}
