// Linked instead of LibTorch's library for CUDA, which need not be here: it gives the pack's CUDA build the
// name of the library to be loaded with it. It is never run.
int aoti_torch_get_current_cuda_stream(int device, void** stream) {
    (void)device;
    (void)stream;
    return 1;
}
