/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of fixed lines under a lock: warnings are rare, and repeated ones are sampled. Any
 * thread. */
#include "src/base/log_recent.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[LOG_RECENT_LINES][LOG_RECENT_LINE_BYTES_MAX];
static size_t noted; /* ever */

void log_recent_note(const char *line, size_t size)
{
    if (size >= LOG_RECENT_LINE_BYTES_MAX)
        size = LOG_RECENT_LINE_BYTES_MAX - 1;
    pthread_mutex_lock(&lock);
    char *row = lines[noted++ % LOG_RECENT_LINES];
    for (size_t i = 0; i < size; i++)
        row[i] = line[i] == '\t' ? ' ' : line[i];
    row[size] = '\0';
    pthread_mutex_unlock(&lock);
}

void log_recent_visit(void (*print)(const char *line, void *arg), void *arg)
{
    pthread_mutex_lock(&lock);
    size_t count = noted < LOG_RECENT_LINES ? noted : LOG_RECENT_LINES;
    for (size_t i = 1; i <= count; i++)
        print(lines[(noted - i) % LOG_RECENT_LINES], arg);
    pthread_mutex_unlock(&lock);
}
