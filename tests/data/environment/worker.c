/* A process whose environment is known: it does what its arguments say, tells what getenv
 * finds of the names in REPORT, and lives until its stdin ends. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;

/* Changes NAME without pause; a torn reading would show a mixture. */
static void churn(const char *name)
{
    static char values[2][4000];
    struct pollfd in = {0, POLLIN, 0};
    memset(values[0], 'a', sizeof values[0] - 1);
    memset(values[1], 'b', sizeof values[1] - 1);
    puts("ready");
    fflush(stdout);
    for (unsigned turn = 0; poll(&in, 1, 0) == 0; turn++)
        for (unsigned each = 0; each < 1000; each++)
            setenv(name, values[(turn + each) & 1], 1);
    exit(0);
}

/* Becomes itself again and again, with ONE and OTHER always the same. */
static void reexec(char **argv)
{
    static char one[32], other[32];
    char *given[] = {one, other, NULL};
    struct pollfd in = {0, POLLIN, 0};
    unsigned turn = getenv("ONE") ? atoi(getenv("ONE")) + 1 : 0;
    if (turn == 0) {
        puts("ready");
        fflush(stdout);
    }
    if (poll(&in, 1, 0) != 0)
        exit(0);
    snprintf(one, sizeof one, "ONE=%u", turn);
    snprintf(other, sizeof other, "OTHER=%u", turn);
    execve("/proc/self/exe", argv, given);
    abort();
}

static void report(char *names)
{
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
        const char *value = getenv(name);
        if (value)
            printf("%s=%s\n", name, value);
        else
            printf("%s\n", name);
    }
}

int main(int argc, char **argv)
{
    static char *wild[] = {"A=1", (char *)0x10, NULL};
    char byte, *names = getenv("REPORT");

    names = strdup(names ? names : "");
    for (int at = 1; at < argc; at++) {
        if (!strcmp(argv[at], "set")) {
            setenv(argv[at + 1], argv[at + 2], 1);
            at += 2;
        } else if (!strcmp(argv[at], "put"))
            putenv(argv[++at]);
        else if (!strcmp(argv[at], "unset"))
            unsetenv(argv[++at]);
        else if (!strcmp(argv[at], "clear"))
            clearenv();
        else if (!strcmp(argv[at], "churn"))
            churn(argv[++at]);
        else if (!strcmp(argv[at], "reexec"))
            reexec(argv);
        else if (!strcmp(argv[at], "undumpable"))
            prctl(PR_SET_DUMPABLE, 0);
        else if (!strcmp(argv[at], "wild-entry"))
            environ = wild;
        else if (!strcmp(argv[at], "wild-array"))
            environ = (char **)0x4141414141;
    }
    if (environ != wild && environ != (char **)0x4141414141)
        report(names);
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
    return 0;
}
