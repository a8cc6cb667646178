#include "cli/tune_devices.h"

#include <algorithm>
#include <memory>

#include "base/number.h"
#include "base/process.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/tune_record.h"
#include "target/machine.h"
#include "twinkle/error.h"

namespace twinkle::cli {
namespace {

std::size_t gpus_here() {
    const auto& machine = target::this_machine();
    const auto driver = machine.may_have_cuda() ? machine.cuda_driver() : std::nullopt;
    return driver ? driver->gpus.size() : 0;
}

// "this machine has 2 GPUs: 0, 1"
std::string gpus_text(std::size_t count) {
    std::vector<std::string> numbers;
    for (std::size_t gpu = 0; gpu < count; ++gpu) {
        numbers.push_back(std::to_string(gpu));
    }
    return count == 0 ? "this machine has no GPU"
                      : "this machine has " + base::counted(count, "GPU") + ": " +
                            base::join(numbers, ", ");
}

// The same run, for one GPU and its share. Writing the model is for the run that knows all.
std::vector<std::string> command_line(const Arguments& arguments, std::uint64_t gpu,
                                      const tuning::Shard& shard) {
    std::vector<std::string> line = {"/proc/self/exe", "--json", "tune", *arguments.text("ACTION")};
    for (const char* option : {"from", "recorded", "inputs", "map", "budget", "tune-sizes", "only",
                               "exclude", "mode", "model"}) {
        for (const std::string& value : arguments.list(option)) {
            line.push_back(std::string("--") + option + "=" + value);
        }
    }
    for (const char* flag : {"allow-io", "graphs"}) {
        if (arguments.flag(flag)) {
            line.push_back(std::string("--") + flag);
        }
    }
    line.emplace_back("--device=cuda");
    line.push_back("--devices=" + std::to_string(gpu));
    line.push_back("--shard=" + std::to_string(shard.number) + "/" + std::to_string(shard.of));
    return line;
}

}  // namespace

Option devices_option() {
    return {.names = "--devices",
            .value = "GPUS",
            .help =
                "Measure on several GPUs of this machine at once: all, or their numbers (0,2); "
                "where there is one device, on that"};
}

std::vector<std::uint64_t> chosen_gpus(const Arguments& arguments) {
    const auto text = arguments.text("devices");
    if (!text) {
        return {};
    }
    const std::size_t count = gpus_here();
    std::vector<std::uint64_t> gpus;
    if (*text == "all") {
        for (std::uint64_t gpu = 0; gpu < count; ++gpu) {
            gpus.push_back(gpu);
        }
        return gpus;
    }
    for (const std::string& word : base::split(*text, ',')) {
        const auto gpu = base::parse_number<std::uint64_t>(word);
        if (!gpu || *gpu >= count || std::ranges::find(gpus, *gpu) != gpus.end()) {
            throw Error(ErrorCode::malformed,
                        {.what = "--devices cannot be '" + *text + "'",
                         .where = "",
                         .why = gpus_text(count),
                         .hint = count == 0 ? "leave out --devices"
                                            : "--devices all, or some of their numbers"});
        }
        gpus.push_back(*gpu);
    }
    return gpus;
}

void tune_on_each(const std::vector<std::uint64_t>& gpus, const Arguments& arguments,
                  Console& console) {
    const tuning::Shard outer = checked_shard(arguments);
    std::vector<std::unique_ptr<base::Process>> runs;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        base::ProcessSpec spec;
        spec.arguments =
            command_line(arguments, gpus[i], {outer.number + outer.of * i, outer.of * gpus.size()});
        spec.out = base::ProcessSpec::Output::discard;
        spec.err = base::ProcessSpec::Output::inherit;
        spec.die_with_parent = true;
        runs.push_back(std::make_unique<base::Process>(spec));
        console.detail("measuring on GPU " + std::to_string(gpus[i]));
    }
    std::vector<std::string> failed;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const auto status = runs[i]->communicate("", [](base::Channel, std::string_view) {});
        if (!status.ok()) {
            failed.push_back("GPU " + std::to_string(gpus[i]) + ": " + status.describe());
        }
    }
    if (!failed.empty()) {
        throw Error(ErrorCode::failed,
                    {.what = "not all GPUs could be measured on",
                     .where = "",
                     .why = base::join(failed, "; "),
                     .hint = "what was measured is remembered; run it again to go on"});
    }
}

}  // namespace twinkle::cli
