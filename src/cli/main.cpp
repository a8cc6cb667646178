// The command line: finds the command, runs it, and prints all errors in one format.

#include <csignal>
#include <exception>
#include <filesystem>
#include <new>
#include <system_error>

#include "child/confinement.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/parser.h"

namespace twinkle::cli {
namespace {

// Converts any exception to an Error. Called from a catch block.
Error current_error() {
    try {
        throw;
    } catch (const Error& error) {
        return error;
    } catch (const std::bad_alloc&) {
        return {
            ErrorCode::failed,
            {.what = "not enough memory", .where = {}, .why = {}, .hint = "close other programs"}};
    } catch (const std::filesystem::filesystem_error& error) {
        return {ErrorCode::failed,
                {.what = "a file operation failed",
                 .where = error.path1().string(),
                 .why = error.code().message(),
                 .hint = {}}};
    } catch (const std::exception& error) {
        return {ErrorCode::failed,
                {.what = "twinkle made a mistake",
                 .where = {},
                 .why = error.what(),
                 .hint = "please report it, with the command line and the output of twinkle env"}};
    } catch (...) {
        return {ErrorCode::failed,
                {.what = "twinkle made a mistake", .where = {}, .why = {}, .hint = {}}};
    }
}

int dispatch(const Parsed& parsed, const std::vector<Command>& all, Console& console) {
    if (parsed.action == Parsed::Action::version) {
        console.result("twinkle " TWINKLE_VERSION "\n");
        return 0;
    }
    if (parsed.action == Parsed::Action::help) {
        const auto columns = console.result_columns();
        console.result(parsed.command != nullptr
                           ? command_help(*parsed.command, columns, console.result_color())
                           : general_help(all, columns, console.result_color()));
        return 0;
    }
    if (parsed.command == nullptr) {
        throw Error(ErrorCode::malformed,
                    {.what = "no command is given",
                     .where = {},
                     .why = {},
                     .hint = "twinkle --help lists the commands and options"});
    }
    return parsed.command->run(parsed.arguments, console);
}

int run(int argc, char** argv) {
    const auto options = output_options(argc, argv);
    install_interrupt_handler(options.json);
    std::optional<Console> console;
    try {
        const auto all = commands();
        const auto parsed = parse(argc, argv, all);
        console.emplace(parsed.globals);
        return dispatch(parsed, all, *console);
    } catch (...) {
        const Error error = current_error();
        if (!console) {
            console.emplace(options);
        }
        console->error(error);
        return error.exit_code();
    }
}

}  // namespace
}  // namespace twinkle::cli

int main(int argc, char** argv) {
    // Signals: a write to a closed pipe, or beyond a file size limit, returns an error; the
    // caller's handling of children is not inherited.
    twinkle::child::hide_from_other_processes();  // it may hold a token
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);
    return twinkle::cli::run(argc, argv);
}
