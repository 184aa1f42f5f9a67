/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of tls sections, and Go's names of suites and curves in OpenSSL's words. */
#include "src/config/shared/tls_config.h"

#include "src/base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { NAMES_MAX = 3 };

struct row {
    struct tls_config tls;
    const char *names[NAMES_MAX]; /* of suites */
    const char *curves[NAMES_MAX];
    const char *error; /* a part of it; NULL: none */
};

#define PAIR .cert_file = "c", .key_file = "k"

static const struct row rows[] = {
    {.tls = {PAIR}},
    {.tls = {.cert_pem = "c", .key_pem = "k", .ca_pem = "a"}},
    {.tls = {PAIR, .min_version = "1.0", .max_version = "1.1"}},
    {.tls = {PAIR, .min_version = "1.3", .max_version = "1.3"}},
    {.tls = {.cert_file = "c"}, .error = "must include both certificate and key (CertFile/CertPem"},
    {.tls = {.key_pem = "k"}, .error = "must include both certificate and key (CertFile/CertPem"},
    {.tls = {PAIR, .cert_pem = "c"}, .error = "either certificate file or PEM"},
    {.tls = {PAIR, .key_pem = "k"}, .error = "either key file or PEM"},
    {.tls = {PAIR, .ca_file = "a", .ca_pem = "a"}, .error = "either a CA file or"},
    {.tls = {PAIR, .min_version = "1.4"}, .error = "min_version: unsupported TLS version: \"1.4\""},
    {.tls = {PAIR, .max_version = "TLS1.2"}, .error = "max_version: unsupported TLS version"},
    {.tls = {PAIR, .min_version = "1.3", .max_version = "1.2"}, .error = "cannot be greater than"},
    {.tls = {PAIR, .max_version = "1.1"}, .error = "min_version (\"1.2\") cannot be greater than"},
    {.tls = {PAIR, .tpm.enabled = true}, .error = "tpm is not supported"},
    {.tls = {PAIR}, .names = {"TLS_AES_128_GCM_SHA256"}},
    {.tls = {PAIR}, .names = {"TLS_FOO"}, .error = "invalid TLS cipher suite: \"TLS_FOO\""},
    {.tls = {PAIR}, .names = {"TLS_RSA_WITH_AES_128_CBC_SHA"}, .error = "is insecure"},
    {.tls = {PAIR, .include_insecure_cipher_suites = true},
     .names = {"TLS_RSA_WITH_AES_128_CBC_SHA"}},
    {.tls = {PAIR, .include_insecure_cipher_suites = true},
     .names = {"TLS_RSA_WITH_RC4_128_SHA"},
     .error = "OpenSSL has no \"TLS_RSA_WITH_RC4_128_SHA\""},
    {.tls = {PAIR, .max_version = "1.2"},
     .names = {"TLS_AES_128_GCM_SHA256"},
     .error = "all of them are of TLS 1.3, which max_version \"1.2\" forbids"},
    {.tls = {PAIR}, .curves = {"P256", "X25519"}},
    {.tls = {PAIR}, .curves = {"P-256"}, .error = "invalid curve type: \"P-256\""},
};

static struct config_texts texts(const char *const names[NAMES_MAX])
{
    size_t count = 0;
    while (count < NAMES_MAX && names[count] != NULL)
        count++;
    return (struct config_texts){.count = count, .texts = names};
}

static void expect(bool is_fine, const struct error *error, const char *words, size_t row)
{
    if (is_fine != (words == NULL))
        fail_msg("row %zu: %s", row, is_fine ? "passes" : error->text);
    if (words != NULL && strstr(error->text, words) == NULL)
        fail_msg("row %zu says \"%s\", not \"%s\"", row, error->text, words);
}

static void sections_are_checked_alike_on_both_sides(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error error = {.text = ""};
        struct tls_client_config client = {.common = rows[i].tls};
        struct tls_server_config server;
        client.common.cipher_suites = texts(rows[i].names);
        client.common.curve_preferences = texts(rows[i].curves);
        server = (struct tls_server_config){.common = client.common};
        expect(tls_client_check(&client, &error), &error, rows[i].error, i);
        expect(tls_server_check(&server, &error), &error, rows[i].error, i);
    }
}

static void only_clients_can_do_without_a_certificate(void **state)
{
    (void)state;
    struct error error;
    assert_true(tls_client_check(&(struct tls_client_config){.insecure = true}, &error));
    assert_false(tls_server_check(&(struct tls_server_config){.client_ca_file = "a"}, &error));
    assert_string_equal(error.text, "TLS configuration must include both certificate and key for "
                                    "server connections");
}

struct translation {
    const char *names[NAMES_MAX];
    const char *list;
};

static void suites_keep_their_order_and_come_once(void **state)
{
    static const struct translation translations[] = {
        {{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
         "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256"},
        {{"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"},
         "ECDHE-RSA-AES128-SHA"},
        {{"TLS_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"},
         "ECDHE-ECDSA-CHACHA20-POLY1305"},
        {{"TLS_AES_256_GCM_SHA384"}, ""},
        {{NULL},
         "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
         "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
         "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:"
         "ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:"
         "ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(translations) / sizeof(translations[0]); i++) {
        struct error error;
        char list[TLS_LIST_BYTES_MAX];
        struct config_texts names = texts(translations[i].names);
        assert_true(tls_suites_translate(&names, false, list, &error));
        assert_string_equal(list, translations[i].list);
    }
}

static void curves_are_named_as_openssl_does(void **state)
{
    static const char *const names[NAMES_MAX] = {"P521", "X25519", "P256"};
    struct config_texts list_of = texts(names);
    char list[TLS_LIST_BYTES_MAX];
    struct error error;
    (void)state;
    assert_true(tls_curves_translate(&list_of, list, &error));
    assert_string_equal(list, "P-521:X25519:P-256");
    assert_true(tls_curves_translate(&(struct config_texts){.count = 0}, list, &error));
    assert_string_equal(list, "X25519:P-256:P-384:P-521");
}

static void versions_are_strings(void **state)
{
    (void)state;
    assert_int_equal(tls_config_version(NULL), 0);
    assert_int_equal(tls_config_version(""), 0);
    assert_int_equal(tls_config_version("1.0"), 1);
    assert_int_equal(tls_config_version("1.3"), 4);
    assert_int_equal(tls_config_version("1.30"), -1);
    assert_int_equal(tls_config_version("1."), -1);
    assert_int_equal(tls_config_version("2"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_are_checked_alike_on_both_sides),
        cmocka_unit_test(only_clients_can_do_without_a_certificate),
        cmocka_unit_test(suites_keep_their_order_and_come_once),
        cmocka_unit_test(curves_are_named_as_openssl_does),
        cmocka_unit_test(versions_are_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
