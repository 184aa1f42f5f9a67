/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up libcurl's functions by name. The library is never unloaded: TLS libraries do not survive
 * that. Any thread; the first one loads it. */
#include "src/net/client/curl_library.h"

#include "src/base/dynlib.h"
#include "src/base/error.h"
#include "src/base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SYMBOL(name)                                                                               \
    {                                                                                              \
        "curl_" #name, offsetof(struct curl_library, name)                                         \
    }

static const struct dynlib_symbol symbols[] = {
    SYMBOL(global_init_mem),
    SYMBOL(easy_init),
    SYMBOL(easy_cleanup),
    SYMBOL(easy_perform),
    SYMBOL(easy_reset),
    SYMBOL(easy_setopt),
    SYMBOL(easy_getinfo),
    SYMBOL(easy_strerror),
    SYMBOL(slist_append),
    SYMBOL(slist_free_all),
    SYMBOL(multi_init),
    SYMBOL(multi_cleanup),
    SYMBOL(multi_setopt),
    SYMBOL(multi_add_handle),
    SYMBOL(multi_remove_handle),
    SYMBOL(multi_socket_action),
    SYMBOL(multi_assign),
    SYMBOL(multi_info_read),
    {NULL, 0},
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct curl_library library;
static struct dynlib dynlib = {.name = "libcurl.so.4", .symbols = symbols, .functions = &library};
static bool is_loaded;
static char failure[DYNLIB_FAILURE_BYTES_MAX];

/* libcurl handles NULL, so it gets the allocator that may refuse. */
static void *on_calloc(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *memory = mem_try_alloc(count * size);
    if (memory != NULL)
        memset(memory, 0, count * size);
    return memory;
}

static void load(void)
{
    if (!dynlib_load(&dynlib)) {
        memcpy(failure, dynlib.failure, sizeof(failure));
        return;
    }
    CURLcode code = library.global_init_mem(CURL_GLOBAL_DEFAULT, mem_try_alloc, mem_free,
                                            mem_try_resize, mem_copy_text, on_calloc);
    is_loaded = code == CURLE_OK;
    if (!is_loaded)
        snprintf(failure, sizeof(failure), "curl_global_init_mem: %s", library.easy_strerror(code));
}

const struct curl_library *curl_library_load(struct error *error)
{
    int failed = pthread_once(&once, load);
    assert(failed == 0);
    if (is_loaded)
        return &library;
    error_set(error,
              "libcurl, which https, proxies and redirects need, cannot be loaded (%s); install "
              "the package libcurl4",
              failure);
    return NULL;
}
