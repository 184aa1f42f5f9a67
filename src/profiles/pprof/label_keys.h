/* SPDX-License-Identifier: Apache-2.0 */
/* Groups the labels of a sample by key. A file may hold the same key as several strings. Takes time
 * linear in the number of labels. One owner. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/profiles/pprof/entry_table.h"
#include "src/profiles/pprof/pprof.h"

struct label_keys {
    struct budget *budget;
    struct entry_table texts; /* keys, each once */
    struct scratch known;     /* uint32_t by place of a string: its text's index, plus one */
};

enum { LABEL_GROUP_END = UINT8_MAX };

/* By place in the sample. */
struct label_groups {
    bool is_first[PPROF_LABELS_MAX]; /* of those with its key */
    uint8_t next[PPROF_LABELS_MAX];  /* with the same key, or LABEL_GROUP_END */
};

void label_keys_init(struct label_keys *keys, struct budget *budget);
void label_keys_fini(struct label_keys *keys);
/* False: no memory. All calls are for the same profile. */
bool label_keys_group(struct label_keys *keys, const struct pprof *pprof,
                      const struct pprof_sample *sample, struct label_groups *ret_groups);
