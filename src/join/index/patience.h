/* SPDX-License-Identifier: Apache-2.0 */
/* Who has sent profiles without spans, and since when: so that those who are new are waited for,
 * and those who never send any are not. A fixed number of names, the one that was not asked about
 * for longest going first. Any thread; a lock, held for a look at one line. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct patience_entry {
    uint64_t key; /* 0: free */
    uint64_t first_ns;
    uint64_t last_ns;
};

struct patience {
    pthread_mutex_t lock;
    struct patience_entry *entries;
};

/* False: no memory. */
bool patience_init(struct patience *patience);
void patience_fini(struct patience *patience);
/* A profile of that name came, of which no spans are known. True for JOIN_WARM_UP_NS from the first
 * one on; after as long without any the name is new again. */
bool patience_lasts(struct patience *patience, uint64_t key, uint64_t now_ns);
