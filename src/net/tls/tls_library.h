/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL, loaded when the first tls section needs it: linked, it would cost every process more
 * resident memory than the rest of an idle daemon. Only types and constants come from its headers;
 * nothing links it. Any thread. */
#pragma once

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "src/base/dynlib.h"

struct error;

/* What is used of libssl.so.3. */
#define TLS_LIBRARY_SSL(X)                                                                         \
    X(SSL_CTX_add_client_CA)                                                                       \
    X(SSL_CTX_check_private_key)                                                                   \
    X(SSL_CTX_ctrl)                                                                                \
    X(SSL_CTX_free)                                                                                \
    X(SSL_CTX_get0_param)                                                                          \
    X(SSL_CTX_get_cert_store)                                                                      \
    X(SSL_CTX_new)                                                                                 \
    X(SSL_CTX_set_alpn_protos)                                                                     \
    X(SSL_CTX_set_alpn_select_cb)                                                                  \
    X(SSL_CTX_set_cipher_list)                                                                     \
    X(SSL_CTX_load_verify_file)                                                                    \
    X(SSL_CTX_set_ciphersuites)                                                                    \
    X(SSL_CTX_set_default_verify_paths)                                                            \
    X(SSL_CTX_set_num_tickets)                                                                     \
    X(SSL_CTX_set_options)                                                                         \
    X(SSL_CTX_set_security_level)                                                                  \
    X(SSL_CTX_set_verify)                                                                          \
    X(SSL_CTX_set_verify_depth)                                                                    \
    X(SSL_CTX_use_PrivateKey)                                                                      \
    X(SSL_CTX_use_certificate)                                                                     \
    X(SSL_ctrl)                                                                                    \
    X(SSL_do_handshake)                                                                            \
    X(SSL_free)                                                                                    \
    X(SSL_get0_alpn_selected)                                                                      \
    X(SSL_get0_param)                                                                              \
    X(SSL_get_error)                                                                               \
    X(SSL_get_verify_result)                                                                       \
    X(SSL_pending)                                                                                 \
    X(SSL_is_init_finished)                                                                        \
    X(SSL_new)                                                                                     \
    X(SSL_read)                                                                                    \
    X(SSL_set_accept_state)                                                                        \
    X(SSL_set_bio)                                                                                 \
    X(SSL_set_connect_state)                                                                       \
    X(SSL_shutdown)                                                                                \
    X(SSL_write)                                                                                   \
    X(TLS_client_method)                                                                           \
    X(TLS_server_method)

/* What is used of libcrypto.so.3. */
#define TLS_LIBRARY_CRYPTO(X)                                                                      \
    X(BIO_clear_flags)                                                                             \
    X(BIO_free)                                                                                    \
    X(BIO_get_data)                                                                                \
    X(BIO_get_new_index)                                                                           \
    X(BIO_meth_new)                                                                                \
    X(BIO_meth_set_ctrl)                                                                           \
    X(BIO_meth_set_read)                                                                           \
    X(BIO_meth_set_write)                                                                          \
    X(BIO_new)                                                                                     \
    X(BIO_new_mem_buf)                                                                             \
    X(BIO_set_data)                                                                                \
    X(BIO_set_flags)                                                                               \
    X(BIO_set_init)                                                                                \
    X(ERR_clear_error)                                                                             \
    X(ERR_peek_error)                                                                              \
    X(ERR_peek_last_error)                                                                         \
    X(ERR_reason_error_string)                                                                     \
    X(EVP_DigestSign)                                                                              \
    X(EVP_DigestSignInit)                                                                          \
    X(EVP_MD_CTX_free)                                                                             \
    X(EVP_MD_CTX_new)                                                                              \
    X(EVP_PKEY_free)                                                                               \
    X(EVP_PKEY_get_base_id)                                                                        \
    X(EVP_sha256)                                                                                  \
    X(EVP_sha384)                                                                                  \
    X(EVP_sha512)                                                                                  \
    X(OpenSSL_version)                                                                             \
    X(PEM_read_bio_PrivateKey)                                                                     \
    X(PEM_read_bio_X509)                                                                           \
    X(X509_STORE_add_cert)                                                                         \
    X(X509_VERIFY_PARAM_set1_host)                                                                 \
    X(X509_VERIFY_PARAM_set1_ip_asc)                                                               \
    X(X509_VERIFY_PARAM_set_flags)                                                                 \
    X(X509_VERIFY_PARAM_set_hostflags)                                                             \
    X(X509_free)                                                                                   \
    X(X509_verify_cert_error_string)

struct tls_library {
    TLS_LIBRARY_SSL(DYNLIB_MEMBER)
    TLS_LIBRARY_CRYPTO(DYNLIB_MEMBER)
};

/* Loads it once per process. NULL: error has the loader's message. */
const struct tls_library *tls_library_load(struct error *error);
