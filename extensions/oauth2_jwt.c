/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and signs assertions, with OpenSSL, which is loaded when the first one is made. */
#include "extensions/oauth2_jwt.h"

#include "extensions/oauth2_config.h"
#include "extensions/oauth2_form.h"
#include "src/base/base64.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/secret.h"
#include "src/base/text_escape.h"
#include "src/net/tls/tls_library.h"
#include "src/otlp/json/value_string.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* How long an assertion is valid. */
enum { VALID_SECONDS = 30 * 60 };

static const char *const algorithms[] = {"RS256", "RS384", "RS512"};

static size_t algorithm_of(const char *name)
{
    size_t at = 0;
    while (at < 3 && strcmp(algorithms[at], name) != 0)
        at++;
    return name[0] == '\0' ? 0 : at;
}

bool oauth2_jwt_knows(const char *algorithm)
{
    return algorithm_of(algorithm) < 3;
}

/* ---- JSON ---- */

static void put_text(FILE *out, const char *text)
{
    text_escape_json(out, slice_of_text(text));
}

/* The depth of a configuration is bounded by its loader. */
static void put_value(FILE *out, const struct config_value *value)
{
    char number[DOUBLE_STRING_BYTES_MAX];
    switch (value->type) {
    case CONFIG_VALUE_NULL:
        fputs("null", out);
        break;
    case CONFIG_VALUE_BOOL:
        fputs(value->boolean ? "true" : "false", out);
        break;
    case CONFIG_VALUE_INT:
        fprintf(out, "%" PRId64, value->integer);
        break;
    case CONFIG_VALUE_DOUBLE:
        double_to_string(value->real, number);
        fputs(number, out);
        break;
    case CONFIG_VALUE_TEXT:
        put_text(out, value->text);
        break;
    case CONFIG_VALUE_LIST:
    case CONFIG_VALUE_MAP:
    default:
        fputc(value->type == CONFIG_VALUE_LIST ? '[' : '{', out);
        for (size_t i = 0; i < value->count; i++) {
            if (i > 0)
                fputc(',', out);
            if (value->type == CONFIG_VALUE_MAP) {
                put_text(out, value->keys[i]);
                fputc(':', out);
            }
            put_value(out, &value->items[i]);
        }
        fputc(value->type == CONFIG_VALUE_LIST ? ']' : '}', out);
        break;
    }
}

static bool has_claim(const struct config_value *claims, const char *name)
{
    for (size_t i = 0; claims != NULL && i < claims->count; i++)
        if (strcmp(claims->keys[i], name) == 0)
            return true;
    return false;
}

/* A claim, unless the configuration has one of that name. */
static void put_claim(FILE *out, const struct oauth2_config *config, const char *name,
                      const char *value)
{
    if (has_claim(config->claims, name))
        return;
    fprintf(out, "\"%s\":", name);
    put_text(out, value);
    fputc(',', out);
}

static void put_time(FILE *out, const struct oauth2_config *config, const char *name,
                     uint64_t seconds)
{
    if (!has_claim(config->claims, name))
        fprintf(out, "\"%s\":%" PRIu64 ",", name, seconds);
}

/* A random UUID (RFC 9562 §5.4). */
static void put_unique_id(FILE *out, const struct oauth2_config *config)
{
    uint8_t id[16];
    char text[40];
    ssize_t size = getrandom(id, sizeof(id), 0);
    assert(size == (ssize_t)sizeof(id));
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x40);
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    char *to = text;
    for (size_t i = 0; i < sizeof(id); i++)
        to += sprintf(to, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
    put_claim(out, config, "jti", text);
}

static void put_header(FILE *out, const struct oauth2_config *config)
{
    fprintf(out, "{\"alg\":\"%s\",", algorithms[algorithm_of(config->signature_algorithm)]);
    if (config->client_certificate_key_id[0] != '\0') {
        fputs("\"kid\":", out);
        put_text(out, config->client_certificate_key_id);
        fputc(',', out);
    }
    fputs("\"typ\":\"JWT\"}", out);
}

static void put_claims(FILE *out, const struct oauth2_config *config, const char *client_id,
                       uint64_t now_s)
{
    char *scope = oauth2_scopes_text(&config->scopes);
    fputc('{', out);
    put_claim(out, config, "aud",
              config->audience[0] != '\0' ? config->audience : config->token_url);
    put_claim(out, config, "iss", config->iss[0] != '\0' ? config->iss : client_id);
    put_claim(out, config, "sub", client_id);
    put_unique_id(out, config);
    if (scope[0] != '\0')
        put_claim(out, config, "scope", scope);
    for (size_t i = 0; config->claims != NULL && i < config->claims->count; i++) {
        put_text(out, config->claims->keys[i]);
        fputc(':', out);
        put_value(out, &config->claims->items[i]);
        fputc(',', out);
    }
    put_time(out, config, "iat", now_s);
    put_time(out, config, "exp", now_s + VALID_SECONDS);
    mem_free(scope);
}

/* ---- signature ---- */

/* base64url without padding (RFC 7515 §2). Returns the size. */
static size_t encode(struct slice bytes, char *room)
{
    base64_encode(bytes, room);
    size_t size = 0;
    while (size < base64_size(bytes.size) && room[size] != '=') {
        room[size] = room[size] == '+' ? '-' : room[size] == '/' ? '_' : room[size];
        size++;
    }
    return size;
}

/* Appends the base64url of what put_header and put_claims wrote. Returns "header.claims", to be
 * freed with mem_free. */
static char *signed_part(const struct oauth2_config *config, const char *client_id, uint64_t now_s)
{
    char *header = NULL;
    char *claims = NULL;
    size_t header_size = 0;
    size_t claims_size = 0;
    FILE *out = open_memstream(&header, &header_size);
    put_header(out, config);
    int failed = fclose(out);
    out = open_memstream(&claims, &claims_size);
    put_claims(out, config, client_id, now_s);
    failed |= fclose(out);
    assert(failed == 0);
    /* The last claim's comma; there is none when the configuration has all claims. */
    if (claims[claims_size - 1] == ',')
        claims[claims_size - 1] = '}';
    char *text = mem_alloc(base64_size(header_size) + base64_size(claims_size) + 2);
    size_t size = encode(slice_of(header, header_size), text);
    text[size++] = '.';
    size += encode(slice_of(claims, claims_size), text + size);
    text[size] = '\0';
    free(header);
    free(claims);
    return text;
}

/* Appends the signature. NULL: OpenSSL refuses. */
static char *with_signature(const struct tls_library *library, EVP_PKEY *key, size_t algorithm,
                            const char *text)
{
    const EVP_MD *digests[] = {library->EVP_sha256(), library->EVP_sha384(), library->EVP_sha512()};
    EVP_MD_CTX *context = library->EVP_MD_CTX_new();
    struct slice bytes = slice_of_text(text);
    uint8_t *signature = NULL;
    char *whole = NULL;
    size_t size = 0;
    if (context != NULL &&
        library->EVP_DigestSignInit(context, NULL, digests[algorithm], NULL, key) == 1 &&
        library->EVP_DigestSign(context, NULL, &size, bytes.data, bytes.size) == 1) {
        signature = mem_alloc(size);
        if (library->EVP_DigestSign(context, signature, &size, bytes.data, bytes.size) == 1) {
            whole = mem_alloc(bytes.size + base64_size(size) + 2);
            memcpy(whole, bytes.data, bytes.size);
            whole[bytes.size] = '.';
            size_t added = encode(slice_of(signature, size), whole + bytes.size + 1);
            whole[bytes.size + 1 + added] = '\0';
        }
    }
    mem_free(signature);
    library->EVP_MD_CTX_free(context);
    return whole;
}

/* Keys with a passphrase are not supported: nobody can be asked for it. */
static int no_passphrase(char *room, int size, int is_write, void *arg)
{
    (void)room;
    (void)size;
    (void)is_write;
    (void)arg;
    return 0;
}

char *oauth2_jwt_create(const struct oauth2_config *config, const char *client_id, const char *key,
                        uint64_t now_wall_ns, struct error *error)
{
    const struct tls_library *library = tls_library_load(error);
    size_t algorithm = algorithm_of(config->signature_algorithm);
    assert(algorithm < 3);
    if (library == NULL)
        return NULL;
    BIO *bio = library->BIO_new_mem_buf(key, -1);
    EVP_PKEY *parsed =
        bio != NULL ? library->PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
    library->BIO_free(bio);
    char *whole = NULL;
    if (parsed == NULL || library->EVP_PKEY_get_base_id(parsed) != EVP_PKEY_RSA) {
        error_set(error, "the client certificate key is not an RSA private key in PEM without a "
                         "passphrase");
    } else {
        char *text = signed_part(config, client_id, now_wall_ns / NS_PER_S);
        whole = with_signature(library, parsed, algorithm, text);
        if (whole == NULL)
            error_set(error, "cannot sign with the client certificate key; is it too short for %s?",
                      algorithms[algorithm]);
        mem_free(text);
    }
    library->EVP_PKEY_free(parsed);
    library->ERR_clear_error();
    return whole;
}
