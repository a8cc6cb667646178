#pragma once
// The start of every command that uses the Hub: its context, its output on the terminal, and a
// Ctrl-C that leaves a resumable state.

#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/download_progress.h"
#include "cli/interrupt.h"
#include "operations/context.h"
#include "project/signatures.h"

namespace twinkle::cli {

class ConsoleListener : public operations::Listener {
public:
    explicit ConsoleListener(Console& console)
        : console_(console), downloads_(console.progress()) {}

    void warn(std::string_view text) override { console_.warn(text); }
    void note(std::string_view text) override { console_.note(text); }
    void detail(std::string_view text) override { console_.detail(text); }
    void trace(std::string_view text) override { console_.trace(text); }
    void busy(std::string_view what, std::uint64_t done, std::uint64_t total) override;
    hub::DownloadObserver& downloads() override { return downloads_; }

private:
    Console& console_;
    DownloadProgress downloads_;
};

// Owns these objects, in the order of their lifetimes.
class HubSession {
public:
    explicit HubSession(Console& console, std::optional<std::string> lockfile = std::nullopt);

    operations::Context& context() { return context_; }

private:
    InterruptFlag interrupt_;
    ConsoleListener listener_;
    operations::Context context_;
};

// Options of several commands, worded once.
Option target_option(bool repeatable);
Option lockfile_option();
Option trust_option();
Option signature_option();
Option trusted_root_option();
project::SignatureOptions signature_options(const Arguments& arguments);

// For tables: "v1 (3f2c9a01b2c3)"; for a commit just the commit.
std::string state_text(const std::string& ref, const std::string& commit);
// "org/name@1"; a full commit after the "@" is cut to twelve digits.
std::string kernel_text(const std::string& kernel);

}  // namespace twinkle::cli
