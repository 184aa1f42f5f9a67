/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up OpenSSL's functions by name. The libraries are never unloaded: they do not survive that.
 * Any thread; the first one loads them. */
#include "src/net/tls/tls_library.h"

#include "src/base/dynlib.h"
#include "src/base/error.h"

#define ROW(function) DYNLIB_ROW(struct tls_library, function),

static struct tls_library library;
static struct dynlib crypto = {.name = "libcrypto.so.3",
                               .symbols =
                                   (const struct dynlib_symbol[]){TLS_LIBRARY_CRYPTO(ROW){NULL, 0}},
                               .functions = &library};
static struct dynlib ssl = {.name = "libssl.so.3",
                            .symbols =
                                (const struct dynlib_symbol[]){TLS_LIBRARY_SSL(ROW){NULL, 0}},
                            .functions = &library};

const struct tls_library *tls_library_load(struct error *error)
{
    const struct dynlib *missing = !dynlib_load(&crypto) ? &crypto
                                   : !dynlib_load(&ssl)  ? &ssl
                                                         : NULL;
    if (missing == NULL)
        return &library;
    error_set(error, "tls needs OpenSSL, which cannot be loaded (%s); install the package libssl3",
              missing->failure);
    return NULL;
}
