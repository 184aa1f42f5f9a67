/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables of names, and lists made with them. Constants and pure functions; any thread. */
#include "src/config/shared/tls_names.h"

#include "src/base/error.h"
#include "src/config/field.h"

#include <assert.h>
#include <string.h>

struct tls_name {
    const char *go;
    const char *openssl; /* "": of TLS 1.3, always on; NULL: known, and not to be had */
    bool is_insecure;
};

static const struct tls_name suites[] = {
    {"TLS_AES_128_GCM_SHA256", "", false},
    {"TLS_AES_256_GCM_SHA384", "", false},
    {"TLS_CHACHA20_POLY1305_SHA256", "", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384", false},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384", false},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305", false},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA", false},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256", true},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ECDHE-RSA-AES128-SHA256", true},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256", true},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384", true},
    {"TLS_RSA_WITH_AES_128_CBC_SHA256", "AES128-SHA256", true},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA", true},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA", true},
    {"TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA", NULL, true},
    {"TLS_RSA_WITH_3DES_EDE_CBC_SHA", NULL, true},
    {"TLS_ECDHE_ECDSA_WITH_RC4_128_SHA", NULL, true},
    {"TLS_ECDHE_RSA_WITH_RC4_128_SHA", NULL, true},
    {"TLS_RSA_WITH_RC4_128_SHA", NULL, true},
    {.go = NULL},
};

static const struct tls_name curves[] = {
    {"P256", "P-256", false},
    {"P384", "P-384", false},
    {"P521", "P-521", false},
    {"X25519", "X25519", false},
    {"X25519MLKEM768", "X25519MLKEM768", false},
    {.go = NULL},
};

static const struct tls_name *find(const struct tls_name *table, const char *name)
{
    assert(table != NULL);
    for (const struct tls_name *row = table; row->go != NULL; row++)
        if (strcmp(row->go, name) == 0)
            return row;
    return NULL;
}

/* Adds a name unless the list has it, so that a list never outgrows the table. */
static void append(char list[TLS_LIST_BYTES_MAX], const char *name)
{
    size_t size = strlen(name);
    size_t used = strlen(list);
    assert(size > 0);
    for (const char *at = list; *at != '\0'; at += strspn(at, ":")) {
        size_t length = strcspn(at, ":");
        if (length == size && memcmp(at, name, size) == 0)
            return;
        at += length;
    }
    assert(used + 1 + size < TLS_LIST_BYTES_MAX);
    if (used > 0)
        list[used++] = ':';
    memcpy(list + used, name, size + 1);
}

static bool check_suite(const struct tls_name *suite, const char *name, bool takes_insecure,
                        struct error *error)
{
    assert(name != NULL);
    if (suite == NULL)
        return error_set(error,
                         "invalid TLS cipher suite: \"%s\"; Go's names are expected, such as "
                         "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
                         name);
    if (suite->is_insecure && !takes_insecure)
        return error_set(error,
                         "invalid TLS cipher suite: \"%s\" is insecure; remove it, or set "
                         "include_insecure_cipher_suites: true",
                         name);
    if (suite->openssl == NULL)
        return error_set(error,
                         "invalid TLS cipher suite: OpenSSL has no \"%s\" any more; "
                         "remove it",
                         name);
    return true;
}

bool tls_suites_translate(const struct config_texts *names, bool takes_insecure,
                          char ret_list[TLS_LIST_BYTES_MAX], struct error *error)
{
    assert(names != NULL);
    assert(error != NULL);
    ret_list[0] = '\0';
    for (const struct tls_name *row = suites; names->count == 0 && row->go != NULL; row++)
        if (!row->is_insecure && row->openssl[0] != '\0')
            append(ret_list, row->openssl);
    for (size_t i = 0; i < names->count; i++) {
        const struct tls_name *suite = find(suites, names->texts[i]);
        if (!check_suite(suite, names->texts[i], takes_insecure, error))
            return error_at_index(error, i);
        if (suite->openssl[0] != '\0')
            append(ret_list, suite->openssl);
    }
    return true;
}

bool tls_curves_translate(const struct config_texts *names, char ret_list[TLS_LIST_BYTES_MAX],
                          struct error *error)
{
    assert(names != NULL);
    assert(error != NULL);
    ret_list[0] = '\0';
    for (size_t i = 0; i < names->count; i++) {
        const struct tls_name *curve = find(curves, names->texts[i]);
        if (curve == NULL)
            return error_set(error,
                             "invalid curve type: \"%s\"; P256, P384, P521, X25519 or "
                             "X25519MLKEM768 are expected",
                             names->texts[i]) ||
                   error_at_index(error, i);
        append(ret_list, curve->openssl);
    }
    return true;
}
