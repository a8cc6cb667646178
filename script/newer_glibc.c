// What code compiled with the headers of a newer glibc asks for and glibc 2.28 lacks. Hidden: nobody else sees it.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

// Says that there is one thread, so that libstdc++ may leave atomic operations out. They are never left out.
char __libc_single_threaded = 0;

// For std::random_device of libstdc++ 12.
uint32_t arc4random(void) {
    uint32_t value;
    if (getentropy(&value, sizeof value) != 0) {
        abort();
    }
    return value;
}

// Waits of libstdc++ 12 until a time of a clock: glibc 2.28 knows the time of day alone.
static struct timespec time_of_day(clockid_t clock, const struct timespec* until) {
    struct timespec there, here;
    clock_gettime(clock, &there);
    clock_gettime(CLOCK_REALTIME, &here);
    struct timespec result = {here.tv_sec + (until->tv_sec - there.tv_sec),
                              here.tv_nsec + (until->tv_nsec - there.tv_nsec)};
    while (result.tv_nsec < 0) {
        result.tv_nsec += 1000000000;
        --result.tv_sec;
    }
    while (result.tv_nsec >= 1000000000) {
        result.tv_nsec -= 1000000000;
        ++result.tv_sec;
    }
    return result;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
    const struct timespec then = time_of_day(clock, until);
    return pthread_cond_timedwait(condition, mutex, &then);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
    const struct timespec then = time_of_day(clock, until);
    return pthread_mutex_timedlock(mutex, &then);
}
