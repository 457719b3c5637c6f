/* Spins without a system call and tells, a window of time after the other, the longest gap
 * between two looks at the clock in nanoseconds; ends with its parent. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv)
{
    long long window = atoll(argv[1]) * 1000000LL, windows = atoll(argv[2]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    puts("ready");
    fflush(stdout);
    for (; windows > 0; windows--) {
        long long start = now(), last = start, longest = 0;
        while (last - start < window) {
            long long next = now();
            if (next - last > longest)
                longest = next - last;
            last = next;
        }
        printf("%lld\n", longest);
        fflush(stdout);
    }
    (void)argc;
    return 0;
}
