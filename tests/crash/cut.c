/* SPDX-License-Identifier: Apache-2.0 */
/* Choices of what reaches a disk before its power is cut. */
#include "tests/crash/cut.h"

#include <stdbool.h>

#include "tests/crash/recorder.h"

uint64_t cut_random = 88172645463325252;

uint64_t cut_choose(uint64_t below)
{
    cut_random ^= cut_random << 13;
    cut_random ^= cut_random >> 7;
    cut_random ^= cut_random << 17;
    return cut_random % below;
}

void cut_put(struct recorder *recorder, size_t first, size_t end, uint32_t unit)
{
    /* Nearly none, half, nearly all; of sectors, or of whole writes. */
    static const unsigned chances[] = {0, 8, 64, 128, 192, 248, 256};
    unsigned chance = chances[cut_choose(sizeof(chances) / sizeof(chances[0]))];
    bool is_whole = cut_choose(3) == 0;
    for (size_t i = first; i < end; i++) {
        struct recorder_entry entry = recorder_entry(recorder, i);
        if (entry.event != RECORDER_WRITE)
            continue;
        bool is_put = cut_choose(256) < chance;
        for (uint32_t at = 0, size; at < entry.size; at += size) {
            size = unit - (uint32_t)(entry.offset + at) % unit;
            size = size < entry.size - at ? size : entry.size - at;
            if (!is_whole)
                is_put = cut_choose(256) < chance;
            if (is_put)
                recorder_put(recorder, entry.offset + at, entry.bytes + at, size);
        }
    }
}

void cut_put_all(struct recorder *recorder, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++) {
        struct recorder_entry entry = recorder_entry(recorder, i);
        if (entry.event == RECORDER_WRITE)
            recorder_put(recorder, entry.offset, entry.bytes, entry.size);
    }
}

size_t cut_stable_before(struct recorder *recorder, size_t first, size_t end)
{
    while (end > first && recorder_entry(recorder, end - 1).event != RECORDER_FLUSH)
        end--;
    return end;
}
