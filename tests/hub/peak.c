/* Runs a program and writes what it used: peak OUT PROGRAM [ARGUMENT…]
 *
 * OUT gets "<peak memory in KiB> <microseconds of processor time> <seconds, as a fraction>". A program of its own,
 * since Linux counts the memory of whoever starts a process as that of the process (ru_maxrss), and Python's is large. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static long microseconds(struct timeval time) { return time.tv_sec * 1000000L + time.tv_usec; }

int main(int count, char** arguments) {
    if (count < 3) return 125;
    const double started = now();
    const pid_t child = fork();
    if (child < 0) return 125;
    if (child == 0) {
        execvp(arguments[2], arguments + 2);
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    if (wait4(child, &status, 0, &usage) != child) return 125;
    const double seconds = now() - started;
    FILE* out = fopen(arguments[1], "w");
    if (out == NULL) return 125;
    fprintf(out, "%ld %ld %.6f\n", usage.ru_maxrss, microseconds(usage.ru_utime) + microseconds(usage.ru_stime), seconds);
    if (fclose(out) != 0) return 125;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
