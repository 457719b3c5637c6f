/* Title libraries of several manners, to be loaded into any process: each takes the memory of
 * argv and of as much of the environment as follows it without a gap, and writes over it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static char *arguments(char **end)
{
    unsigned long first = 0, last = 0;
    char line[4096] = "", *at;
    FILE *file = fopen("/proc/self/stat", "r");
    if (!file || !fgets(line, sizeof line, file))
        abort();
    fclose(file);
    at = strrchr(line, ')') + 2;
    for (int field = 3; field < 48; field++)
        at = strchr(at, ' ') + 1;
    sscanf(at, "%lu %lu", &first, &last);
    *end = (char *)last;
    return (char *)first;
}

/* manner: 'z' zeros behind the title (setproctitle), 's' blanks, 'b' nothing behind it, 'f' the
 * title again and again up to the last byte. */
void overwrite(char manner, const char *title)
{
    char *end, *start = arguments(&end), **moved;
    size_t count = 0, room, length = strlen(title);

    while (environ[count])
        count++;
    for (size_t at = 0; at < count && environ[at] == end; at++)
        end += strlen(end) + 1;
    moved = calloc(count + 1, sizeof *moved);
    for (size_t at = 0; at < count; at++)
        moved[at] = strdup(environ[at]);
    environ = moved;
    room = end - start;
    if (length > room - 1)
        length = room - 1;
    if (manner == 'z')
        memset(start, 0, room);
    if (manner == 's') {
        memset(start, ' ', room - 1);
        start[room - 1] = 0;
    }
    if (manner == 'f')
        for (size_t at = 0; at < room; at++)
            start[at] = title[at % length];
    else {
        memcpy(start, title, length);
        if (manner != 's')
            start[length] = 0;
    }
}
