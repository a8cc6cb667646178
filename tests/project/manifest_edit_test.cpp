#include "project/manifest_edit.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/temp_folder.h"
#include "base/text.h"
#include "base/throws.h"
#include "base/toml.h"
#include "catch.h"
#include "project/lock_samples.h"
#include "project/manifest.h"

using namespace twinkle;
using namespace twinkle::project;
using test::error_of;
using test::release;
using test::revision;
using test::version;

namespace {

std::string added(std::string_view text, const std::string& name, const Pin& pin,
                  ManifestFormat format = ManifestFormat::twinkle) {
    return add_kernel(text, format, "twinkle.toml", {name, pin, ""});
}
std::string removed(std::string_view text, const std::string& name,
                    const std::optional<Pin>& pin = std::nullopt,
                    ManifestFormat format = ManifestFormat::twinkle) {
    return remove_kernel(text, format, "twinkle.toml", name, pin);
}

}  // namespace

TEST_CASE("a kernel is added behind the others, and everything else stays") {
    const std::string text =
        "# project\r\n[kernels]  # ours\r\n\"a/b\" = 1   # first\r\n\r\n# next\r\n"
        "[layers.X]\r\nclasses = [\"x\"]";
    CHECK(added(text, "c/d", version(2)) ==
          "# project\r\n[kernels]  # ours\r\n\"a/b\" = 1   # first\r\n\"c/d\" = 2\r\n\r\n# "
          "next\r\n[layers.X]\r\nclasses = [\"x\"]");
    CHECK(added(text, "a/b", version(2)).find("\"a/b\" = 2   # first\r\n") != std::string::npos);
}

TEST_CASE("every way to write a manifest can be added to") {
    using Case = std::pair<std::string, std::string>;
    for (const auto& [before, after] : std::vector<Case>{
             {"", "[kernels]\n\"a/b\" = 3\n"},
             {"\xef\xbb\xbf", "\xef\xbb\xbf[kernels]\n\"a/b\" = 3\n"},
             {"trust = []", "trust = []\n\n[kernels]\n\"a/b\" = 3\n"},
             {"[kernels]", "[kernels]\n\"a/b\" = 3"},
             {"[kernels]\n", "[kernels]\n\"a/b\" = 3\n"},
             {"[kernels] # x\n\n[layers]\n", "[kernels] # x\n\"a/b\" = 3\n\n[layers]\n"},
             {"  [kernels]\n  x = { path = 'p' }\n",
              "  [kernels]\n  x = { path = 'p' }\n  \"a/b\" = 3\n"},
             {"kernels = {}\n", "kernels = { \"a/b\" = 3 }\n"},
             {"kernels = { 'c/d' = 1 } # c\n", "kernels = { 'c/d' = 1, \"a/b\" = 3 } # c\n"},
             {"kernels.\"c/d\" = 1\ntrust = []\n",
              "kernels.\"c/d\" = 1\nkernels.\"a/b\" = 3\ntrust = []\n"},
             {"[kernels.\"c/d\"]\nversion = 1\n",
              "[kernels.\"c/d\"]\nversion = 1\n\n[kernels]\n\"a/b\" = 3\n"},
             {"[kernels]\n\"c/d\" = [\n  1, # one\n  2,\n]\n",
              "[kernels]\n\"c/d\" = [\n  1, # one\n  2,\n]\n\"a/b\" = 3\n"},
             // An existing entry changes in place.
             {"[kernels]\n'a/b'=1#c\n", "[kernels]\n'a/b'=3#c\n"},
             {"[kernels]\n\"a/b\" = { revision = \"x\" }\n", "[kernels]\n\"a/b\" = 3\n"},
             {"[kernels]\n\"a/b\" = '''>=1''' # c\n", "[kernels]\n\"a/b\" = 3 # c\n"},
             {"[kernels]\n\"a/b\" = [1, 2]\n", "[kernels]\n\"a/b\" = [1, 2, 3]\n"},
             {"[kernels]\n\"a/b\" = [\n 1,\n 2, # two\n]\n",
              "[kernels]\n\"a/b\" = [\n 1,\n 2, 3, # two\n]\n"},
             {"[kernels]\n\"a/b\" = [3, 1]\n", "[kernels]\n\"a/b\" = [3, 1]\n"},
             {"[kernels]\n\"a/b\".version = 1\n", "[kernels]\n\"a/b\".version = 3\n"},
             {"kernels.'a/b'.revision = \"x\"\n", "kernels.'a/b'.version = 3\n"},
             {"[kernels.\"a/b\"]\n# why\nrevision = \"x\" # c\n",
              "[kernels.\"a/b\"]\n# why\nversion = 3 # c\n"},
             {"kernels = { \"a/b\" = 1, x = { path = \"p\" } }\n",
              "kernels = { \"a/b\" = 3, x = { path = \"p\" } }\n"},
             {"[kernels]\n\"a\\u002fb\" = 1\n", "[kernels]\n\"a\\u002fb\" = 3\n"},
         }) {
        INFO(before);
        CHECK(added(before, "a/b", version(3)) == after);
    }
}

TEST_CASE("what is added is spelled as it is read") {
    const std::string text = "[kernels]\n";
    CHECK(added(text, "a/b", revision("main")) == "[kernels]\n\"a/b\" = { revision = \"main\" }\n");
    CHECK(added(text, "a/b", release(">=0.1,<0.3")) == "[kernels]\n\"a/b\" = \">=0.1,<0.3\"\n");
    CHECK(add_kernel(text, ManifestFormat::twinkle, "t", {"mine", {}, "k/\"x\""}) ==
          "[kernels]\nmine = { path = \"k/\\\"x\\\"\" }\n");
    const auto error =
        error_of([&] { added("[kernels]\n\"a/b\" = [1, 2]\n", "a/b", revision("main")); });
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::malformed);
}

TEST_CASE("every way to write a manifest can be removed from") {
    using Case = std::pair<std::string, std::string>;
    for (const auto& [before, after] : std::vector<Case>{
             {"[kernels]\n# one\n\"a/b\" = 1 # c\nx = { path = \"p\" }",
              "[kernels]\n# one\nx = { path = \"p\" }"},
             {"[kernels]\n\"a/b\" = [\n 1,\n 2,\n]\ny = { path = 'p' }\n",
              "[kernels]\ny = { path = 'p' }\n"},
             {"kernels = { \"a/b\" = 1 }\n", "kernels = {  }\n"},
             {"kernels = { \"a/b\" = 1, x.path = \"p\" }\n", "kernels = { x.path = \"p\" }\n"},
             {"kernels = { x.path = \"p\", \"a/b\" = 1 }\n", "kernels = { x.path = \"p\" }\n"},
             {"kernels.\"a/b\" = 1\r\ntrust = []\r\n", "trust = []\r\n"},
             {"[kernels.\"a/b\"]\nversion = 1\n\n[layers]\n", "\n[layers]\n"},
             {"[kernels]\n\"a/b\" = 1", "[kernels]\n"},
             {"\xef\xbb\xbfkernels.\"a/b\" = 1\n", "\xef\xbb\xbf"},
             {"\xef\xbb\xbf[kernels.\"a/b\"]\nversion = 1\n", "\xef\xbb\xbf"},
         }) {
        INFO(before);
        CHECK(removed(before, "a/b") == after);
    }
}

TEST_CASE("one version of several can be removed") {
    const std::string text = "[kernels]\n\"a/b\" = [1, 2, 3]\n";
    CHECK(removed(text, "a/b", version(1)) == "[kernels]\n\"a/b\" = [2, 3]\n");
    CHECK(removed(text, "a/b", version(2)) == "[kernels]\n\"a/b\" = [1, 3]\n");
    CHECK(removed(text, "a/b", version(3)) == "[kernels]\n\"a/b\" = [1, 2]\n");
    CHECK(removed("[kernels]\n\"a/b\" = [2]\n", "a/b", version(2)) == "[kernels]\n");
    CHECK(removed("[kernels]\n\"a/b\" = 2\n", "a/b", version(2)) == "[kernels]\n");
    CHECK(error_of([&] { removed(text, "a/b", version(4)); })->code() == ErrorCode::not_found);
    const auto unknown = error_of([&] { removed(text, "a/bb"); });
    REQUIRE(unknown);
    CHECK(unknown->code() == ErrorCode::not_found);
    CHECK(unknown->details().hint == "did you mean \"a/b\"?");
}

TEST_CASE("pyproject.toml: what the Python tool can read goes to its table") {
    const auto format = ManifestFormat::pyproject;
    const std::string text =
        "[project]\nname = \"x\"\n\n[tool.kernels.dependencies]\n\"a/b\" = 1\n\n[tool.ruff]\n";
    CHECK(added(text, "c/d", version(2), format) ==
          "[project]\nname = \"x\"\n\n[tool.kernels.dependencies]\n\"a/b\" = 1\n\"c/d\" = 2\n\n"
          "[tool.ruff]\n");
    CHECK(added(text, "c/d", revision("x"), format) ==
          text + "\n[tool.twinkle.kernels]\n\"c/d\" = { revision = \"x\" }\n");
    CHECK(added("[tool]\nkernels = { dependencies = {} }\n", "a/b", version(1), format) ==
          "[tool]\nkernels = { dependencies = { \"a/b\" = 1 } }\n");
    CHECK(added("[tool]\nkernels = { }\n", "a/b", version(1), format) ==
          "[tool]\nkernels = { dependencies.\"a/b\" = 1 }\n");
    CHECK(added("[tool.kernels]\ndependencies.\"x/y\" = 1\n", "a/b", version(1), format) ==
          "[tool.kernels]\ndependencies.\"x/y\" = 1\ndependencies.\"a/b\" = 1\n");
    CHECK(removed(text, "a/b", std::nullopt, format) ==
          "[project]\nname = \"x\"\n\n[tool.kernels.dependencies]\n\n[tool.ruff]\n");
}

TEST_CASE("what cannot be edited is left alone") {
    for (const char* text :
         {"[kernels]\n\"a/b\" = \n", "[kernels]\n3 = 1\n[kernels]\n", "[[kernels]]\nx = 1\n",
          "kernels = 3\n", "[kernels]\n\"a/b\" = []\n"}) {
        INFO(text);
        const auto error = error_of([&] { added(text, "a/b", version(1)); });
        REQUIRE(error);
        CHECK(error->code() == ErrorCode::malformed);
    }
}

namespace {

// A manifest in a random spelling, with its requests.
class RandomManifest {
public:
    explicit RandomManifest(unsigned seed) : random_(seed), eol_(pick(4) == 0 ? "\r\n" : "\n") {}

    std::string write() {
        names_ = {"a/b", "c/d", "org/k-1", "x", "a/bb"};
        std::shuffle(names_.begin(), names_.end(), random_);
        names_.resize(1 + pick(names_.size()));
        std::string text;
        const std::size_t style = pick(5);
        text += junk();
        if (style == 1) {
            text += "kernels = {" + spaces() + inline_entries() + spaces() + "}" + comment() + eol_;
        } else if (style == 2) {
            for (const std::string& name : names_) {
                text += "kernels" + spaces() + "." + spaces() + key(name) + " = " + value(name) +
                        comment() + eol_;
                text +=
                    pick(3) == 0 ? "trust" + std::to_string(pick(1u << 30)) + " = 'x'" + eol_ : "";
            }
        }
        text += other_section("before");
        if (style == 0 || style == 3) {
            text += spaces() + "[" + spaces() + "kernels" + spaces() + "]" + comment() + eol_;
            for (const std::string& name : names_) {
                text += junk();
                if (style == 3 && !is_list(name)) {
                    text += spaces() + key(name) + "." + field(name) + comment() + eol_;
                } else {
                    text += spaces() + key(name) + spaces() + "=" + spaces() + value(name) +
                            comment() + eol_;
                }
            }
        } else if (style == 4) {
            for (const std::string& name : names_) {
                lists_.erase(name);
                text += "[kernels." + key(name) + "]" + comment() + eol_ + junk() + field(name) +
                        comment() + eol_ + junk();
            }
        }
        text += other_section("after");
        if (pick(3) == 0 && text.ends_with(eol_)) {
            text.resize(text.size() - eol_.size());
        }
        return text;
    }

    std::string a_name() {
        return pick(2) == 0 ? names_[pick(names_.size())] : std::string("new/kernel");
    }
    std::size_t pick(std::size_t below) { return random_() % below; }
    bool has(const std::string& name) const {
        return std::find(names_.begin(), names_.end(), name) != names_.end();
    }

private:
    std::string spaces() { return std::string(pick(3), ' '); }
    std::string comment() { return pick(3) == 0 ? spaces() + "# [kernels] \"a/b\" = 7, '''" : ""; }
    std::string junk() {
        std::string text;
        for (std::size_t i = pick(3); i > 0; --i) {
            text += pick(2) == 0 ? eol_ : "# \"a/b\" = 9 { [ " + eol_;
        }
        return text;
    }
    std::string other_section(const std::string& name) {
        return pick(3) == 0 ? ""
                            : "[" + name + ".\"kernels\"]" + eol_ + "text = \"\"\"" + eol_ +
                                  "[kernels]" + eol_ + "\"a/b\" = 4 \\\"\"\"\"" + comment() + eol_ +
                                  "more = ['#', \"]\", { a = 1 }]" + eol_;
    }
    std::string key(const std::string& name) {
        const std::size_t way = pick(3);
        return way == 0 ? "'" + name + "'" : way == 1 && name == "x" ? name : "\"" + name + "\"";
    }
    bool is_list(const std::string& name) {
        if (pick(4) == 0 && name != "x") {
            lists_.insert(name);
        }
        return lists_.contains(name);
    }
    std::string value(const std::string& name) {
        if (name == "x") {
            return "{ path = \"p # }\" }";
        }
        if (is_list(name)) {
            const std::string gap = pick(2) == 0 ? eol_ + "  " : " ";
            return "[" + gap + "1," + gap + "\"==2.*\"" + (pick(2) == 0 ? "," : "") + gap + "]";
        }
        switch (pick(4)) {
            case 0: return "{" + spaces() + "version = 1 }";
            case 1: return "{ revision = '}#' }";
            case 2: return "\">=0.1\"";
            default: return "0x1";
        }
    }
    std::string inline_entries() {
        std::string text;
        for (const std::string& name : names_) {
            std::string one = value(name);
            std::replace(one.begin(), one.end(), '\n', ' ');
            std::replace(one.begin(), one.end(), '\r', ' ');
            text += (text.empty() ? "" : "," + spaces()) + key(name) + " = " + one;
        }
        return text;
    }
    std::string field(const std::string& name) {
        return name == "x" ? "path = \"p\"" : pick(2) == 0 ? "version = 1" : "revision = 'r'";
    }

    std::mt19937 random_;
    std::string eol_;
    std::vector<std::string> names_;
    std::set<std::string> lists_;
};

std::map<std::string, std::vector<std::string>> kernels_of(const std::string& text) {
    const test::TempFolder folder;
    std::map<std::string, std::vector<std::string>> result;
    // Checks only the table of kernels: the rest of these manifests is noise.
    const base::Node root = base::parse_toml_document(text, "t");
    if (const base::Node* table = root.find("kernels")) {
        for (const auto& [name, at, value] : table->members) {
            result[name].push_back(value.kind == base::Node::Kind::table ? "table" : "");
            for (const base::Node& item : value.items) {
                result[name].push_back(item.text + std::to_string(item.integer));
            }
            result[name].push_back(value.text + std::to_string(value.integer));
        }
    }
    return result;
}

std::size_t comments_of(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '#'));
}

}  // namespace

TEST_CASE("edits of generated manifests: the rest is the same byte for byte") {
    int edited = 0;
    for (unsigned seed = 0; seed < 3000; ++seed) {
        RandomManifest manifest(seed);
        const std::string text = manifest.write();
        INFO(seed << "\n" << text);
        auto before = kernels_of(text);
        const std::string name = manifest.a_name();
        std::optional<std::string> result;
        const KernelEntry entry =
            name == "x" ? KernelEntry{name, {}, "q"} : KernelEntry{name, version(77), ""};
        const auto error = error_of(
            [&] { result = add_kernel(text, ManifestFormat::twinkle, "twinkle.toml", entry); });
        INFO((error ? error->what() : result->c_str()));
        REQUIRE_FALSE(error);
        auto after = kernels_of(*result);
        CHECK(after.contains(name));
        CHECK(comments_of(*result) + (manifest.has(name) ? 1 : 0) >= comments_of(text));
        after.erase(name);
        before.erase(name);
        CHECK(after == before);
        if (!manifest.has(name)) {
            CHECK(removed(*result, name).size() <= text.size() + 4 + 20);
            CHECK(kernels_of(removed(*result, name)) == before);
        } else {
            CHECK(kernels_of(removed(text, name)) == before);
        }
        ++edited;
    }
    CHECK(edited == 3000);
}
