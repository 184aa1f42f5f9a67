/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of the join's index: what a span costs to add and to find, once the index is
 * full, and what it takes of memory, by number of spans. Argument: different strings (100). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/limits.h"
#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"

static uint64_t state = 1;

static uint64_t next_random(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ state >> 29;
}

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (double)pages * 4096;
}

static void add(struct span_index *index, uint64_t names)
{
    char name[64];
    struct string_record text;
    struct span_facts facts = {
        .trace = {next_random(), next_random()},
        .span = next_random() | 1,
        .parent = next_random(),
        .start_ns = state,
        .end_ns = state + 1000,
    };
    span_index_expect(index, 0, facts.span, 0);
    memset(name, 'n', sizeof(name));
    uint64_t which = next_random() % names;
    memcpy(name, &which, sizeof(which));
    string_record_begin(&text);
    string_record_add_number(&text, 1);
    string_record_add(&text, name, 30, JOIN_VALUE_BYTES_MAX);
    facts.strings = string_ring_put(span_index_ring(index, 0), &text, STRING_KEEP_HALF);
    span_index_add(index, 0, &facts);
}

static void measure(uint64_t entries, uint64_t names)
{
    struct span_index index;
    struct span_facts found;
    double before = resident_bytes();
    if (!span_index_init(&index, 1, entries, entries * 160 + MIB))
        abort();
    double begin = cpu_ns();
    for (uint64_t i = 0; i < entries; i++)
        add(&index, names);
    double filled = cpu_ns();
    for (uint64_t i = 0; i < entries; i++)
        add(&index, names);
    double replaced = cpu_ns();
    uint64_t hits = 0;
    for (uint64_t i = 0; i < entries; i++)
        hits += span_index_find(&index, NULL, next_random() | 1, &found) == SPAN_FOUND;
    double missed = cpu_ns();
    double count = (double)entries;
    printf("%8.0f spans: filling %5.1f ns, replacing %5.1f ns, missing %5.1f ns (%.0f found), "
           "%5.1f B/span\n",
           count, (filled - begin) / count, (replaced - filled) / count,
           (missed - replaced) / count, (double)hits, (resident_bytes() - before) / count);
    span_index_fini(&index);
}

int main(int count, char **arguments)
{
    static const uint64_t sizes[] = {10000, 50000, 100000, 200000, 500000, 1000000};
    uint64_t names = count > 1 ? strtoull(arguments[1], NULL, 10) : 100;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        measure(sizes[i], names > 0 ? names : 1);
    return 0;
}
