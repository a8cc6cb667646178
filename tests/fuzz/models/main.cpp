// Runs mutated models through inspect, kernelize and kernelize --verify, as the worker does, each
// in a process of its own with limits:
//
//   fuzz_models MODELS COUNT [SEED]           prints the outcomes; exit 1 on a finding
//   fuzz_models MODELS COUNT SEED --write DIR writes them instead
//
// A finding is a crash, an exception that is no Error, more than a second of processor time before
// anything is verified, or a model that was accepted and computes something else than before.

#include "models/mutator.h"

#include "base/file.h"
#include "base/sha256.h"
#include "runtime/model/inputs.h"
#include "runtime/model/model_file.h"
#include "twinkle/twinkle.h"
#include "worker/commands.h"

#include <ATen/Parallel.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

namespace {

namespace fs = std::filesystem;
using namespace twinkle;

const char* const layers = R"(import torch
from torch import nn


class RMSNorm(nn.Module):
    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        input_dtype = hidden_states.dtype
        x = hidden_states.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * x.to(input_dtype)


class SwiGLUMLP(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))
)";

// How a child ended: beside signals, the exit codes below.
enum Outcome { accepted = 0, kept = 10, refused = 11, odd_exception = 12, wrong = 13 };

Mapping mapping_to(const fs::path& folder) {
    Mapping mapping;
    MappedKernel kernel;
    kernel.name = "package";
    kernel.device = "any";
    kernel.path = folder;
    for (const auto& [name, text] :
         std::map<std::string, std::string>{{"__init__.py", ""}, {"layers.py", layers}}) {
        base::write_file_atomically(folder / name, text);
        kernel.files.push_back({name, text.size(), base::sha256_hex(text)});
    }
    mapping.kernels.push_back(kernel);
    for (const auto& [layer, classes] : std::map<std::string, std::vector<std::string>>{
             {"RMSNorm", {"*Norm"}}, {"SwiGLUMLP", {"*MLP"}}}) {
        MappedLayer bound;
        bound.kernel_name = layer;
        bound.classes = classes;
        bound.candidates.push_back({"package", layer, "any", std::nullopt, "fallback", true, true});
        mapping.layers.push_back(bound);
    }
    return mapping;
}

// A child's message to its parent, in shared memory: the sites that will be verified.
struct Told {
    char chosen[200];
};

struct Place {
    fs::path folder;
    base::Json map;
    int channel = -1;      // a file: the stage that a child died in
    Told* told = nullptr;  // in shared memory

    fs::path model() const { return folder / "model.pt"; }
    fs::path output() const { return folder / "fast.pt"; }
};

at::Tensor run(const fs::path& file, const std::string& inputs) {
    torch::jit::Module model = runtime::open_model(file);
    const torch::NoGradGuard no_grad;
    return model.forward(runtime::read_inputs(inputs).positional).toTensor().to(at::kDouble);
}

// Compares on the very inputs that were verified. --verify allows 1.5 times the original's own
// error, which can be arbitrary in a mutated model; a difference of a thousandth beyond that is no
// rounding.
bool same(const Place& place, const std::string& inputs, double allowed) {
    const at::Tensor before = run(place.model(), inputs);
    const at::Tensor after = run(place.output(), inputs);
    if (before.sizes() != after.sizes()) {
        return false;
    }
    if (!before.isfinite().all().item<bool>()) {
        return allowed > 0.3 || !after.isfinite().all().item<bool>();
    }
    return (after - before).norm().item<double>() <=
           (1e-3 + 2 * allowed) * before.norm().item<double>() + 1e-12;
}

template <typename Work>
int outcome_of(Work&& work) {
    try {
        return work();
    } catch (const Error& error) {
        return error.what() == nullptr ? odd_exception : refused;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "  not an Error: %.300s\n", error.what());
        return odd_exception;
    }
}

protocol::Request request_for(const Place& place) {
    protocol::Request request;
    request.model = place.model();
    request.map = place.map.dump();
    request.fallback = {"true"};
    return request;
}

// One site of several, so that shared classes are set apart, or all of them.
void choose(const base::Json& report, unsigned number, Told& told) {
    const auto& sites = report.at("sites");
    const std::string site = sites.at(number % sites.size()).at("site").get<std::string>();
    std::snprintf(told.chosen, sizeof told.chosen, "%s", number % 4 == 0 ? "*" : site.c_str());
}

int look(const Place& place, unsigned number, Told& told) {
    const worker::Channel channel(place.channel);
    const int inspected = outcome_of([&] {
        worker::inspect_command(request_for(place), channel);
        return accepted;
    });
    if (inspected == odd_exception) {
        return inspected;
    }
    return outcome_of([&] {
        const auto report = worker::kernelize_command(request_for(place), channel);
        if (report.at("replaced").get<int>() == 0) {
            return kept;
        }
        choose(report, number, told);
        return accepted;
    });
}

int verify(const Place& place, const std::string& inputs, const std::string& only) {
    const worker::Channel channel(place.channel);
    return outcome_of([&] {
        protocol::Request request = request_for(place);
        request.inputs = inputs;
        request.output = place.output();
        request.verify = true;
        request.only = {only};
        const auto report = worker::kernelize_command(request, channel);
        if (report.at("replaced").get<int>() == 0) {
            return kept;
        }
        // A site that the inputs did not reach is accepted as such.
        return same(place, inputs, report.at("whole").at("allowed_error").get<double>()) ? accepted
                                                                                         : wrong;
    });
}

struct Ended {
    int status = 0;
    double seconds = 0;
};

template <typename Work>
Ended in_child(rlim_t seconds, Work&& work) {
    const pid_t child = ::fork();
    if (child == 0) {
        const rlimit time{seconds, seconds};
        ::setrlimit(RLIMIT_CPU, &time);
        const rlimit memory{rlim_t(8) << 30, rlim_t(8) << 30};
        ::setrlimit(RLIMIT_AS, &memory);
        const rlimit no_core{0, 0};
        ::setrlimit(RLIMIT_CORE, &no_core);
        ::alarm(60);
        ::_exit(work());
    }
    Ended ended;
    rusage used{};
    ::wait4(child, &ended.status, 0, &used);
    ended.seconds = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                    static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    return ended;
}

// The last stage that the worker announced.
std::string last_stage(int channel) {
    std::string text(1 << 16, '\0');
    const ssize_t size = ::pread(channel, text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    const auto at = text.rfind("\"stage\"");
    return at == std::string::npos ? "reading the archive" : text.substr(at, 60);
}

struct Tally {
    std::map<std::string, std::size_t> counts;
    std::size_t findings = 0;
    double slowest = 0;
};

bool judge(const Ended& ended, const std::string& what, const Place& place, Tally& tally) {
    std::string word;
    bool finding = true;
    if (WIFSIGNALED(ended.status)) {
        word = WTERMSIG(ended.status) == SIGXCPU || WTERMSIG(ended.status) == SIGALRM ||
                       WTERMSIG(ended.status) == SIGKILL
                   ? "hung"
                   : "crashed";
    } else {
        const int code = WEXITSTATUS(ended.status);
        finding = code == odd_exception || code == wrong;
        word = code == accepted        ? "kernelized"
               : code == kept          ? "nothing replaced"
               : code == refused       ? "refused"
               : code == odd_exception ? "no Error"
               : code == wrong         ? "WRONG RESULT ACCEPTED"
                                       : "exit " + std::to_string(code);
        finding = finding || word.starts_with("exit");
    }
    ++tally.counts[word];
    if (finding) {
        ++tally.findings;
        std::printf("%s: %s in %s\n", what.c_str(), word.c_str(),
                    last_stage(place.channel).c_str());
    }
    return finding;
}

std::vector<twinkle::fuzz::SeedModel> read_seeds(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        // The small ones; decoders take token ids.
        if (entry.file_size() < 480'000 && name.find("float16") == std::string::npos &&
            name != "stray_record.pt" && name != "takes_a_tuple.pt") {
            files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    std::vector<twinkle::fuzz::SeedModel> seeds;
    for (const fs::path& file : files) {
        seeds.push_back(twinkle::fuzz::read_seed(file.string()));
    }
    return seeds;
}

bool takes_tokens(const std::string& name) {
    return name.find("llama") != std::string::npos || name == "qwen2" || name == "mistral" ||
           name == "frozen";
}

void fuzz_one(const twinkle::fuzz::SeedModel& seed, unsigned number, const Place& place,
              Tally& tally) {
    std::mt19937 random(number);
    std::string how;
    base::write_file_atomically(place.model(), twinkle::fuzz::mutate_model(seed, random, how));
    const std::string what = std::to_string(number) + " " + seed.name + " (" + how + ")";
    ::ftruncate(place.channel, 0);
    ::lseek(place.channel, 0, SEEK_SET);
    place.told->chosen[0] = '\0';
    const Ended looked = in_child(10, [&] { return look(place, number / 7, *place.told); });
    tally.slowest = std::max(tally.slowest, looked.seconds);
    bool finding = judge(looked, what, place, tally);
    if (looked.seconds > 1 && !finding) {
        ++tally.findings;
        finding = true;
        std::printf("%s: %.1f s\n", what.c_str(), looked.seconds);
    }
    if (looked.status == 0) {
        const std::string inputs =
            takes_tokens(seed.name) ? "int64[3,7]:0..128" : "float32[3,7,64]";
        finding = judge(in_child(30, [&] { return verify(place, inputs, place.told->chosen); }),
                        what + " --verify", place, tally) ||
                  finding;
    }
    if (finding) {
        fs::copy_file(place.model(), place.folder / ("finding-" + std::to_string(number) + ".pt"),
                      fs::copy_options::overwrite_existing);
    }
    std::error_code ignored;
    fs::remove(place.output(), ignored);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fputs("fuzz_models MODELS COUNT [SEED] [--write DIR]\n", stderr);
        return 2;
    }
    at::set_num_threads(1);
    ::setenv("TWINKLE_SANDBOX_SECONDS", "3", 0);
    const auto seeds = read_seeds(argv[1]);
    const auto count = static_cast<unsigned>(std::stoul(argv[2]));
    const unsigned first = argc > 3 ? static_cast<unsigned>(std::stoul(argv[3])) * 1'000'000 : 0;
    if (argc > 5) {
        for (unsigned i = 0; i < count; ++i) {
            std::mt19937 random(first + i);
            std::string how;
            base::write_file_atomically(
                fs::path(argv[5]) / (std::to_string(i) + ".pt"),
                twinkle::fuzz::mutate_model(seeds[i % seeds.size()], random, how));
        }
        return 0;
    }
    std::string pattern = (fs::temp_directory_path() / "twinkle-fuzz-XXXXXX").string();
    Place place;
    place.folder = ::mkdtemp(pattern.data());
    place.map = base::parse_json(mapping_to(place.folder).to_json(), "mapping");
    place.channel = ::memfd_create("events", MFD_CLOEXEC);
    place.told = static_cast<Told*>(
        ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    Tally tally;
    for (unsigned i = 0; i < count; ++i) {
        fuzz_one(seeds[i % seeds.size()], first + i, place, tally);
        if ((i + 1) % 500 == 0) {
            std::fprintf(stderr, "%u models, findings %zu\n", i + 1, tally.findings);
        }
        std::fflush(stdout);
    }
    std::printf("%u models of %zu seeds:", count, seeds.size());
    for (const auto& [word, times] : tally.counts) {
        std::printf(" %s %zu,", word.c_str(), times);
    }
    std::printf(" slowest %.2f s, findings %zu%s%s\n", tally.slowest, tally.findings,
                tally.findings > 0 ? " in " : "", tally.findings > 0 ? place.folder.c_str() : "");
    if (tally.findings == 0) {
        for (const auto& entry : fs::directory_iterator(place.folder)) {
            ::unlink(entry.path().c_str());
        }
        ::rmdir(place.folder.c_str());
    }
    return tally.findings == 0 ? 0 : 1;
}
