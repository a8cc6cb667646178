// A short run of the kernel readers' fuzz targets, from inputs made here.
#include <random>

#include "base/file.h"
#include "catch.h"
#include "kernel_targets.h"

using namespace twinkle::fuzz;

namespace {

void run(const std::string& seed, void (*function)(std::string_view), int changes) {
    std::mt19937 random(4711);
    function(seed);
    for (int i = 0; i < changes; ++i) {
        std::string changed = seed;
        for (auto count = 1 + random() % 4; count > 0 && !changed.empty(); --count) {
            const std::size_t at = random() % changed.size();
            switch (random() % 3) {
                case 0: changed[at] = static_cast<char>(random()); break;
                case 1: changed.resize(at); break;
                default: changed.insert(at, changed.substr(at, 1 + random() % 16));
            }
        }
        function(changed);
    }
}

std::string repeated(std::string_view text, int times) {
    std::string result;
    for (int i = 0; i < times; ++i) {
        result += text;
    }
    return result;
}

}  // namespace

TEST_CASE("changed parts of kernels do not end the program") {
    run(twinkle::base::read_file("/bin/true", "program"), fuzz_elf, 200);
    run(R"({"id": "_n", "name": "norm", "version": 1, "license": "MIT", "python-depends": [],
            "backend": {"type": "cuda", "archs": ["9.0a"]}})",
        fuzz_metadata, 500);
    run(R"({"operator": "n(Tensor x, Tensor w, float e) -> Tensor", "attributes": ["w", "e"],
            "constants": {"e": 1e-06}, "inputs": [{"dtype": "float32", "sizes": ["r", 64]},
            {"dtype": "float32", "sizes": [64]}], "sizes": {"r": [1, 9]}})",
        fuzz_package, 3000);
    run("import torch\nclass A(torch.nn.Module):\n    def forward(self, x):\n"
        "        return [y for y in x.shape] if x is None else f'{x}'\n",
        fuzz_python, 500);
    run("# a 'comment' [[\n[general]\nname = \"norm\"\na.'b.c'.\"d\" = [1.5, {x.y = '''\\n.'''}]\n"
        "[[kernel.a]]\nb = \"\"\"\n.\\\"[[\"\"\"\n[torch]\nc = 2026-01-01T00:00:00.5\n",
        fuzz_toml, 2000);
    run("[" + repeated("a.", 20'000) + "a]\nb = " + repeated("[{c.d = ", 20'000), fuzz_toml, 50);
    run(std::string("\0\x50\xed\x55\xba\x01\x00\x10\x00", 9) + std::string(80, '\x40'), fuzz_fatbin,
        500);
    SUCCEED();
}
