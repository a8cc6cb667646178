// A server that knows torch::jit::load and nothing of twinkle, for gpu_server_bench.py:
//
//   plain_server MODEL [DEVICE]
//
// Reads questions from stdin and answers each with one number:
//   time - TOKENS CALLS        seconds a call, back to back, by the device's clock
//   wait - TOKENS CALLS        seconds a call, waiting for the result of each
//   save FILE TOKENS 1         writes the result as float32; its number of elements
//   train - 0 1                puts the model into training (1) or evaluation (0)
//   scale - PERCENT 1          multiplies the first weight in place, as a program that loads others
//   free - 0 1                 bytes of memory that the device has free
#include <torch/script.h>

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>

namespace {

using Clock = std::chrono::steady_clock;

at::Device device = at::kCPU;

// The tokens of models.py.
at::Tensor tokens(int64_t count) {
    return (at::arange(count, at::kLong) * 7919).remainder(999).add(1).unsqueeze(0).to(device);
}

c10::Stream stream() {
    return c10::impl::VirtualGuardImpl(device.type()).getStream({device.type(), 0});
}

void wait() {
    if (device.is_cuda()) stream().synchronize();
}

at::Tensor call(torch::jit::Module& model, const at::Tensor& inputs) {
    return model.forward({inputs}).toTensor();
}

double by_the_devices_clock(torch::jit::Module& model, const at::Tensor& inputs, int calls) {
    c10::Event begin(device.type(), c10::EventFlag::BACKEND_DEFAULT);
    c10::Event end(device.type(), c10::EventFlag::BACKEND_DEFAULT);
    begin.record(stream());
    for (int one = 0; one < calls; ++one) call(model, inputs);
    end.record(stream());
    end.synchronize();
    return begin.elapsedTime(end) / 1e3 / calls;
}

double seconds_per_call(torch::jit::Module& model, const at::Tensor& inputs, int calls) {
    wait();
    const auto start = Clock::now();
    for (int one = 0; one < calls; ++one) {
        call(model, inputs);
        wait();
    }
    return std::chrono::duration<double>(Clock::now() - start).count() / calls;
}

double save(torch::jit::Module& model, const at::Tensor& inputs, const std::string& file) {
    const at::Tensor result = call(model, inputs).to(at::kFloat).cpu().contiguous();
    std::ofstream(file, std::ios::binary)
        .write(static_cast<const char*>(result.data_ptr()),
               static_cast<std::streamsize>(result.nbytes()));
    return static_cast<double>(result.numel());
}

// CUDA's own, as this program includes no header of CUDA.
double free_memory() {
    auto* ask = reinterpret_cast<int (*)(size_t*, size_t*)>(dlsym(RTLD_DEFAULT, "cudaMemGetInfo"));
    size_t free = 0, total = 0;
    if (ask == nullptr || ask(&free, &total) != 0) return -1;
    return static_cast<double>(free);
}

double answer(torch::jit::Module& model, const std::string& what, const std::string& name,
              int64_t count, int calls) {
    if (what == "free") return free_memory();
    if (what == "train") {
        model.train(count != 0);
        return 0;
    }
    if (what == "scale") {
        (*model.parameters().begin()).mul_(static_cast<double>(count) / 100);
        return 0;
    }
    const at::Tensor inputs = tokens(count);
    return what == "save"     ? save(model, inputs, name)
           : what == "wait"   ? seconds_per_call(model, inputs, calls)
           : device.is_cuda() ? by_the_devices_clock(model, inputs, calls)
                              : seconds_per_call(model, inputs, calls);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 2) throw std::invalid_argument("plain_server MODEL [DEVICE]");
        if (argc > 2) device = at::Device(argv[2]);
        torch::jit::Module model = torch::jit::load(argv[1], device);
        model.eval();
        const torch::NoGradGuard no_grad;
        std::string what, name;
        int64_t count;
        int calls;
        while (std::cin >> what >> name >> count >> calls) {
            std::printf("%.9g\n", answer(model, what, name, count, calls));
            std::fflush(stdout);
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "plain_server: %s\n", error.what());
        return 1;
    }
}
