/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of codecs by name. What is loaded stays so until the process ends. Any thread. */
#include "src/codec/codec_library.h"

#include <assert.h>
#include <dlfcn.h>
#include <string.h>

bool codec_library_load(const char *name, const struct codec_symbol *symbols, void *functions)
{
    assert(symbols != NULL);
    assert(functions != NULL);
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return false;
    for (; symbols->name != NULL; symbols++) {
        void *symbol = dlsym(handle, symbols->name);
        if (symbol == NULL)
            return false;
        memcpy((char *)functions + symbols->offset, &symbol, sizeof(symbol));
    }
    return true;
}
