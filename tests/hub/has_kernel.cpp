// Prints the answer of twinkle::hub::Client::has().
//
//     has_kernel ORG/NAME VERSION TARGET [TRUSTED…]

#include <twinkle/hub.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
    if (argc < 4) {
        return 2;
    }
    try {
        twinkle::hub::Client client({.warn = [](std::string_view text) {
            std::fprintf(stderr, "warning: %.*s\n", static_cast<int>(text.size()), text.data());
        }});
        twinkle::hub::KernelRequest request{.version = std::stoi(argv[2]), .target = argv[3]};
        request.trust.assign(argv + 4, argv + argc);
        std::puts(client.has(argv[1], request) ? "yes" : "no");
    } catch (const twinkle::Error& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return error.exit_code();
    }
    return 0;
}
