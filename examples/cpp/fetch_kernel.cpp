// Fetches a kernel from the Hub and says where its build for this machine is.
//
//     fetch_kernel kernels-community/activation 1

#include <twinkle/hub.h>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s ORG/NAME [VERSION [TARGET]]\n", argv[0]);
        return 2;
    }
    try {
        twinkle::hub::Client client({.user_agent = "fetch-kernel-example/1.0"});
        twinkle::hub::KernelRequest request;
        if (argc > 2) {
            request.version = std::stoi(argv[2]);
        }
        if (argc > 3) {
            request.target = argv[3];
        }
        for (const auto& kernel : client.get(argv[1], request)) {
            std::printf("%s %s %s\n", kernel.repo_id.c_str(), kernel.variant.c_str(),
                        kernel.folder.c_str());
        }
    } catch (const twinkle::Error& error) {
        std::fprintf(stderr, "error: %s\n", error.what());
        return error.exit_code();
    }
    return 0;
}
