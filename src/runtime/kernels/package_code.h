#pragma once
// The code of a package that AOTInductor compiled, called through the C functions that every such
// library has: no file is unpacked, and no header of one version of LibTorch decides how it is
// called.

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace twinkle::runtime {

class PackageCode {
public:
    // `library` is what dlopen() has returned, and stays open; `name` is for messages. Throws
    // std::runtime_error where it is no library of AOTInductor.
    PackageCode(void* library, std::string name);
    ~PackageCode();

    // The results, which are new tensors. `inputs` are as they were compiled for, on `device`; what
    // is not checked before is not checked here. Thread-safe. Throws c10::Error.
    std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, std::size_t results,
                                c10::Device device);

private:
    struct Functions;
    struct Container;
    Container& container_on(c10::Device device, std::size_t inputs, std::size_t results);
    void require_success(int error, const char* what) const;

    std::string name_;
    std::unique_ptr<Functions> functions_;
    std::mutex mutex_;
    std::map<c10::DeviceIndex, std::unique_ptr<Container>> containers_;
};

}  // namespace twinkle::runtime
