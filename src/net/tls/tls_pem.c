/* SPDX-License-Identifier: Apache-2.0 */
/* Reads PEM with OpenSSL. Text between the blocks, and blocks of other types, are ignored, as
 * usual. Any thread. */
#include "src/net/tls/tls_pem.h"

#include "src/base/error.h"
#include "src/base/limits.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* What to do with the index-th certificate of a PEM string. */
struct pem_use {
    const struct tls_library *library;
    SSL_CTX *context;
    bool is_server;
    bool (*take)(const struct pem_use *use, X509 *certificate, size_t index);
    size_t max;
};

static const char *reason_of(const struct tls_library *library)
{
    const char *reason = library->ERR_reason_error_string(library->ERR_peek_last_error());
    return reason == NULL ? "unknown error" : reason;
}

static BIO *open_text(const struct tls_library *library, const char *text)
{
    size_t size = strlen(text);
    assert(size <= INT_MAX);
    library->ERR_clear_error();
    return library->BIO_new_mem_buf(text, (int)size);
}

static bool read_certificates(const struct pem_use *use, BIO *bio, struct error *error)
{
    const struct tls_library *library = use->library;
    assert(use->max > 0);
    for (size_t index = 0;; index++) {
        X509 *certificate = library->PEM_read_bio_X509(bio, NULL, NULL, NULL);
        if (certificate == NULL) {
            bool is_end = ERR_GET_REASON(library->ERR_peek_last_error()) == PEM_R_NO_START_LINE;
            if (!is_end)
                return error_set(error, "its certificate %zu cannot be read: %s", index + 1,
                                 reason_of(library));
            return index > 0 || error_set(error, "it contains no certificate "
                                                 "(-----BEGIN CERTIFICATE-----)");
        }
        bool is_taken = index < use->max && use->take(use, certificate, index);
        library->X509_free(certificate);
        if (index >= use->max)
            return error_set(error, "it contains more than %zu certificates", use->max);
        if (!is_taken)
            return error_set(error, "its certificate %zu cannot be used: %s", index + 1,
                             reason_of(library));
    }
}

static bool take_certificates(const struct pem_use *use, const char *text, struct error *error)
{
    BIO *bio = open_text(use->library, text);
    if (bio == NULL)
        return error_set(error, "out of memory");
    bool is_fine = read_certificates(use, bio, error);
    use->library->BIO_free(bio);
    use->library->ERR_clear_error();
    return is_fine;
}

static bool take_own(const struct pem_use *use, X509 *certificate, size_t index)
{
    const struct tls_library *library = use->library;
    if (index == 0)
        return library->SSL_CTX_use_certificate(use->context, certificate) == 1;
    return library->SSL_CTX_ctrl(use->context, SSL_CTRL_CHAIN_CERT, 1, certificate) == 1;
}

bool tls_pem_use_certificate(const struct tls_library *library, SSL_CTX *context, const char *text,
                             struct error *error)
{
    const struct pem_use use = {
        .library = library, .context = context, .take = take_own, .max = TLS_CHAIN_MAX};
    return take_certificates(&use, text, error);
}

static bool take_trusted(const struct pem_use *use, X509 *certificate, size_t index)
{
    const struct tls_library *library = use->library;
    assert(index < use->max);
    X509_STORE *store = library->SSL_CTX_get_cert_store(use->context);
    if (library->X509_STORE_add_cert(store, certificate) != 1)
        return false;
    return !use->is_server || library->SSL_CTX_add_client_CA(use->context, certificate) == 1;
}

bool tls_pem_trust(const struct tls_library *library, SSL_CTX *context, const char *text,
                   bool is_server, struct error *error)
{
    const struct pem_use use = {.library = library,
                                .context = context,
                                .is_server = is_server,
                                .take = take_trusted,
                                .max = TLS_AUTHORITIES_MAX};
    return take_certificates(&use, text, error);
}

/* Without it OpenSSL asks on the terminal. */
static int on_passphrase(char *room, int size, int is_writing, void *arg)
{
    assert(!is_writing);
    (void)room;
    (void)size;
    (void)is_writing;
    (void)arg;
    return -1;
}

bool tls_pem_use_key(const struct tls_library *library, SSL_CTX *context, const char *text,
                     struct error *error)
{
    BIO *bio = open_text(library, text);
    if (bio == NULL)
        return error_set(error, "out of memory");
    EVP_PKEY *key = library->PEM_read_bio_PrivateKey(bio, NULL, on_passphrase, NULL);
    library->BIO_free(bio);
    bool is_fine = false;
    if (key == NULL && strstr(text, "ENCRYPTED") != NULL)
        error_set(error, "its key is encrypted; a key without a passphrase is expected");
    else if (key == NULL && strstr(text, "PRIVATE KEY-----") != NULL)
        error_set(error, "its key cannot be read: %s", reason_of(library));
    else if (key == NULL && strstr(text, "-----BEGIN CERTIFICATE-----") != NULL)
        error_set(error, "it contains a certificate rather than a key");
    else if (key == NULL)
        error_set(error, "it contains no key (-----BEGIN PRIVATE KEY-----)");
    else if (library->SSL_CTX_use_PrivateKey(context, key) != 1 ||
             library->SSL_CTX_check_private_key(context) != 1)
        error_set(error, "its key does not belong to the certificate: %s", reason_of(library));
    else
        is_fine = true;
    library->EVP_PKEY_free(key);
    library->ERR_clear_error();
    return is_fine;
}
