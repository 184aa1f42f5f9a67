/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL for the attack's side. */
#include "tests/attack/tls.h"

#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>

enum { VALID_S = 864000 };

static void check(bool is_fine, const char *what)
{
    if (!is_fine) {
        fprintf(stderr, "TLS: %s\n", what);
        exit(2);
    }
}

void tls_make_certificate(const char *path)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    check(key != NULL && certificate != NULL, "no key");
    X509_NAME *name = X509_get_subject_name(certificate);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -VALID_S);
    X509_gmtime_adj(X509_getm_notAfter(certificate), VALID_S);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1,
                               0);
    X509_set_issuer_name(certificate, name);
    check(X509_sign(certificate, key, EVP_sha256()) > 0, "no signature");
    FILE *file = fopen(path, "we");
    check(file != NULL && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 &&
              PEM_write_X509(file, certificate) == 1 && fclose(file) == 0,
          path);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static SSL_CTX *shared_context(void)
{
    static SSL_CTX *context;
    if (context == NULL) {
        context = SSL_CTX_new(TLS_client_method());
        check(context != NULL, "no context");
        SSL_CTX_set_mode(context,
                         SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    }
    return context;
}

struct ssl_st *tls_open(int fd, bool is_http2)
{
    static const unsigned char names[] = "\2h2\10http/1.1";
    SSL *tls = SSL_new(shared_context());
    check(tls != NULL && SSL_set_fd(tls, fd) == 1, "no connection");
    SSL_set_alpn_protos(tls, is_http2 ? names : names + 3, is_http2 ? 3 : 9);
    SSL_set_connect_state(tls);
    return tls;
}

/* What OpenSSL did, as a socket would say it. */
static ssize_t as_socket(struct ssl_st *tls, int count, bool *ret_awaits)
{
    int error = count > 0 ? SSL_ERROR_NONE : SSL_get_error(tls, count);
    *ret_awaits = error == SSL_ERROR_WANT_READ;
    if (count > 0 || error == SSL_ERROR_ZERO_RETURN)
        return count > 0 ? count : 0;
    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
    return -1;
}

ssize_t tls_read(struct ssl_st *tls, void *data, size_t size)
{
    bool ignored;
    ERR_clear_error();
    return as_socket(tls, SSL_read(tls, data, (int)size), &ignored);
}

ssize_t tls_write(struct ssl_st *tls, const void *data, size_t size, bool *ret_awaits)
{
    ERR_clear_error();
    return as_socket(tls, SSL_write(tls, data, (int)size), ret_awaits);
}

void tls_close(struct ssl_st *tls)
{
    SSL_free(tls);
}
