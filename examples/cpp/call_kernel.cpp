// Downloads a kernel from the Hub, lists what it offers, and calls a function of it on a tensor.
// Usage: call_kernel REPOSITORY VERSION FUNCTION
#include <twinkle/hub.h>
#include <twinkle/twinkle.h>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: call_kernel REPOSITORY VERSION FUNCTION\n";
        return 2;
    }
    try {
        // Without this line only what is in the cache can be had.
        twinkle::set_hub_client(twinkle::hub::Client{});
        const int version = std::atoi(argv[2]);
        if (!twinkle::has_kernel(argv[1], {.version = version})) {
            std::cerr << argv[1] << " has no build for this machine\n";
            return 3;
        }
        const twinkle::Kernel kernel =
            twinkle::get_kernel(argv[1], {.version = version, .user_agent = "call-kernel/1.0"});
        for (const twinkle::FunctionInfo& function : kernel.functions()) {
            std::cout << function.signature() << "\n";
        }
        const at::Tensor x = torch::arange(4, torch::kFloat32);
        const at::Tensor y = kernel.function(argv[3])(x);
        std::cout << kernel.name() << " " << kernel.build().commit << "\n" << y << "\n";
    } catch (const twinkle::Error& error) {
        std::cerr << error.what() << "\n";
        return error.exit_code();
    }
}
