// A driver without a GPU behind it: FAKE_CUDA says what it finds, as "NAME,MAJOR.MINOR,BYTES;…". A name "broken" is a
// device that tells nothing of itself; FAKE_CUDA_FAILS is the function that fails.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Gpu {
    char name[64];
    int major, minor;
    unsigned long long bytes;
};

static struct Gpu gpus[16];
static int count = -1;

static int fails(const char* function) {
    const char* which = getenv("FAKE_CUDA_FAILS");
    return which != NULL && strcmp(which, function) == 0;
}

int cuInit(unsigned flags) {
    const char* text = getenv("FAKE_CUDA");
    if (flags != 0 || fails("cuInit")) {
        return 100;
    }
    count = 0;
    while (text != NULL && *text != '\0' && count < 16) {
        struct Gpu* gpu = &gpus[count++];
        sscanf(text, "%63[^,],%d.%d,%llu", gpu->name, &gpu->major, &gpu->minor, &gpu->bytes);
        text = strchr(text, ';');
        text = text == NULL ? text : text + 1;
    }
    return 0;
}

int cuDriverGetVersion(int* version) {
    *version = 13010;
    return fails("cuDriverGetVersion") ? 1 : 0;
}

int cuDeviceGetCount(int* number) {
    *number = count;
    return count < 0 ? 3 : 0;  // it was not started
}

int cuDeviceGet(int* device, int index) {
    *device = 1000 + index;  // a handle, not the index
    return index < count ? 0 : 101;
}

int cuDeviceGetName(char* name, int length, int device) {
    snprintf(name, (size_t)length, "%s", gpus[device - 1000].name);
    return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
    const struct Gpu* gpu = &gpus[device - 1000];
    *value = attribute == 75 ? gpu->major : attribute == 76 ? gpu->minor : -1;
    return strcmp(gpu->name, "broken") == 0 ? 1 : 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    *bytes = (size_t)gpus[device - 1000].bytes;
    return 0;
}
