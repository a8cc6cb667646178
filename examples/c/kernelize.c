/* Kernelizes a model file by a mapping, and prints the report. Usage: kernelize MODEL MAPPING OUTPUT */
#include <stdio.h>
#include <twinkle/c.h>

int main(int argc, char** argv) {
    char* report = NULL;
    int failed;
    if (argc != 4) {
        fprintf(stderr, "usage: kernelize MODEL MAPPING OUTPUT\n");
        return 2;
    }
    failed = twinkle_kernelize_file(argv[1], argv[2], argv[3], "{\"mode\": \"inference\"}", &report);
    if (failed) {
        fprintf(stderr, "%s\n", twinkle_last_error());
        return failed;
    }
    printf("%s", report);
    twinkle_free(report);
    return 0;
}
