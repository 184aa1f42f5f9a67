/* SPDX-License-Identifier: Apache-2.0 */
/* Finds OpenSSL's functions by name. The libraries stay loaded until the process ends: they do not
 * survive being unloaded. Any thread; the first one does the work. */
#include "src/net/tls/tls_library.h"

#include "src/base/error.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ROW(function)                                                                              \
    {                                                                                              \
#function, offsetof(struct tls_library, function)                                          \
    }

struct symbol {
    const char *name; /* NULL ends the table */
    size_t offset;
};

#define ROW_AND_COMMA(function) ROW(function),
static const struct symbol ssl_symbols[] = {TLS_LIBRARY_SSL(ROW_AND_COMMA){NULL, 0}};
static const struct symbol crypto_symbols[] = {TLS_LIBRARY_CRYPTO(ROW_AND_COMMA){NULL, 0}};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tls_library library;
static bool is_loaded;
static char failure[256];

static bool symbols_find(const char *name, const struct symbol *symbols)
{
    assert(symbols != NULL);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *words = dlerror();
        snprintf(failure, sizeof(failure), "%s", words == NULL ? "unknown error" : words);
        return false;
    }
    for (; symbols->name != NULL; symbols++) {
        void *symbol = dlsym(handle, symbols->name);
        if (symbol == NULL) {
            snprintf(failure, sizeof(failure), "%s has no %s", name, symbols->name);
            return false;
        }
        memcpy((char *)&library + symbols->offset, &symbol, sizeof(symbol));
    }
    return true;
}

static void load(void)
{
    assert(!is_loaded);
    is_loaded =
        symbols_find("libcrypto.so.3", crypto_symbols) && symbols_find("libssl.so.3", ssl_symbols);
}

const struct tls_library *tls_library_load(struct error *error)
{
    int failed = pthread_once(&once, load);
    assert(failed == 0);
    (void)failed;
    if (is_loaded)
        return &library;
    error_set(error, "tls needs OpenSSL, which cannot be loaded (%s); install the package libssl3",
              failure);
    return NULL;
}
