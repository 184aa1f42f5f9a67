/* SPDX-License-Identifier: Apache-2.0 */
/* dlopen and dlsym, once for each library. Any thread. */
#include "src/base/dynlib.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { UNTRIED, LOADED, FAILED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool dynlib_load(struct dynlib *library)
{
    int state = atomic_load_explicit(&library->state, memory_order_acquire);
    if (state != UNTRIED)
        return state == LOADED;
    pthread_mutex_lock(&lock);
    state = atomic_load_explicit(&library->state, memory_order_relaxed);
    if (state == UNTRIED) {
        void *handle = dlopen(library->name, RTLD_NOW | RTLD_LOCAL);
        state = handle != NULL ? LOADED : FAILED;
        if (handle == NULL) {
            const char *reason = dlerror();
            snprintf(library->failure, sizeof(library->failure), "%s",
                     reason == NULL ? "unknown error" : reason);
        }
        const struct dynlib_symbol *row = library->symbols;
        for (; state == LOADED && row->name != NULL; row++) {
            void *symbol = dlsym(handle, row->name);
            if (symbol == NULL) {
                snprintf(library->failure, sizeof(library->failure), "%s has no %s", library->name,
                         row->name);
                state = FAILED;
                break;
            }
            memcpy((char *)library->functions + row->offset, &symbol, sizeof(symbol));
        }
        atomic_store_explicit(&library->state, state, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return state == LOADED;
}
