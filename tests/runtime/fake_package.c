/* A library as AOTInductor writes them: its functions, for tests of what calls them. It takes two tensors x and y of
 * float32, contiguous and aligned, and returns 2 * x, or what the first value of y asks for. */
#include <stddef.h>
#include <stdint.h>

typedef void* Tensor;
int32_t aoti_torch_clone(Tensor self, Tensor* result);
int32_t aoti_torch_get_data_ptr(Tensor tensor, void** data);
int32_t aoti_torch_get_numel(Tensor tensor, int64_t* count);
int32_t aoti_torch_get_dim(Tensor tensor, int64_t* dimensions);
int32_t aoti_torch_get_sizes(Tensor tensor, int64_t** sizes);
int32_t aoti_torch_get_strides(Tensor tensor, int64_t** strides);
int32_t aoti_torch_delete_tensor_object(Tensor tensor);

enum { returns_double = 0, returns_its_input = 1, fails = 2 };

static int created = 0;
static const char* error = "";

int fake_package_created(void) {
    return created;
}

int AOTInductorModelContainerCreateWithDevice(void** container, size_t models, const char* device, const char* cubins) {
    (void)models, (void)device, (void)cubins;
    *container = &created;
    ++created;
    return 0;
}

int AOTInductorModelContainerGetNumInputs(void* container, size_t* count) {
    (void)container;
    *count = 2;
    return 0;
}

int AOTInductorModelContainerGetNumOutputs(void* container, size_t* count) {
    (void)container;
    *count = 1;
    return 0;
}

int AOTInductorGetLastError(const char** text) {
    *text = error;
    return 0;
}

static int fail(const char* why) {
    error = why;
    return 1;
}

static int is_plain(Tensor tensor) {
    int64_t dimensions, *sizes, *strides, expected = 1;
    void* data;
    aoti_torch_get_dim(tensor, &dimensions);
    aoti_torch_get_sizes(tensor, &sizes);
    aoti_torch_get_strides(tensor, &strides);
    aoti_torch_get_data_ptr(tensor, &data);
    for (int64_t i = dimensions - 1; i >= 0; --i) {
        if (sizes[i] != 1 && strides[i] != expected) return 0;
        expected *= sizes[i];
    }
    return (uintptr_t)data % 16 == 0;
}

int AOTInductorModelContainerRun(void* container, Tensor* inputs, size_t input_count, Tensor* outputs,
                                 size_t output_count, void* stream, void* proxy) {
    (void)container, (void)stream, (void)proxy;
    if (input_count != 2 || output_count != 1) return fail("other counts than it told");
    if (!is_plain(inputs[0]) || !is_plain(inputs[1])) return fail("an input is not contiguous and aligned");
    void* wish;
    aoti_torch_get_data_ptr(inputs[1], &wish);
    const int wanted = (int)*(float*)wish;
    aoti_torch_delete_tensor_object(inputs[1]);
    if (wanted == fails) {
        aoti_torch_delete_tensor_object(inputs[0]);
        return fail("as it was asked to");
    }
    if (wanted == returns_its_input) {
        outputs[0] = inputs[0];
        return 0;
    }
    aoti_torch_clone(inputs[0], &outputs[0]);
    aoti_torch_delete_tensor_object(inputs[0]);
    int64_t count;
    void* data;
    aoti_torch_get_numel(outputs[0], &count);
    aoti_torch_get_data_ptr(outputs[0], &data);
    for (int64_t i = 0; i < count; ++i) ((float*)data)[i] *= 2;
    return 0;
}
