/* A wall clock that is off by as many seconds as the file named in CLOCK_FILE says. Preloaded into the sidecar. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCK_FILE");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file >= 0) {
        void *at = mmap(0, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
        offset = at == MAP_FAILED ? 0 : at;
    }
}

/* Asked before anything here or in the allocator is set up. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    long done = syscall(SYS_clock_gettime, clock, now);
    if (done == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset;
    return (int)done;
}
