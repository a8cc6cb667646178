#pragma once
// Which commit of which repository a request means now: from the Hub, or, offline, from what the
// cache remembers of it.

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operations/context.h"
#include "project/kernel_spec.h"
#include "project/refs.h"

namespace twinkle::operations {

// The folder that LOCAL_KERNELS names instead of this repository, with a warning.
std::optional<std::filesystem::path> local_copy(Context& context, const project::KernelSpec& spec);

struct KernelQuestion {
    std::string repo_id;
    project::Pin pin;   // empty: the newest version, "main" where there is none
    std::string where;  // for messages: file:line:column, or the word on the command line

    std::string text() const { return project::KernelSpec{repo_id, pin}.text(); }
};

struct KernelState {
    std::string repo_id;   // that was asked for
    std::string moved_to;  // by kernel-status.toml; empty: nowhere
    std::string ref;       // branch or tag; empty: the pin is a commit
    std::string commit;
    std::vector<project::KnownVersion> versions;  // all that there are, ascending

    const std::string& home() const { return moved_to.empty() ? repo_id : moved_to; }
    std::optional<int> version() const;  // of a branch v<int>
    project::Pin pin() const;            // that means just this state: its version, else its ref
};

// Answers in the order of the questions; asks the Hub for all of them at once. Throws
// Error(not_found) with what there is instead, Error(unreachable).
std::vector<KernelState> find_states(Context& context, std::span<const KernelQuestion> questions);
KernelState find_state(Context& context, const project::KernelSpec& spec);
// What the cache alone says, online too. None: it does not know it.
std::optional<KernelState> cached_state(const Context& context, const KernelQuestion& question);

}  // namespace twinkle::operations
