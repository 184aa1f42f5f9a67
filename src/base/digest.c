/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of libcrypto, loaded by name. Any thread. */
#include "src/base/digest.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdatomic.h>

#include "src/base/dynlib.h"
#include "src/base/error.h"

static struct functions {
    DYNLIB_MEMBER(EVP_MD_fetch)
    DYNLIB_MEMBER(EVP_MD_free)
    DYNLIB_MEMBER(EVP_Digest)
    DYNLIB_MEMBER(EVP_Q_mac)
} functions;
static struct dynlib libcrypto = {
    .name = "libcrypto.so.3",
    .symbols = (const struct dynlib_symbol[]){DYNLIB_ROW(struct functions, EVP_MD_fetch),
                                              DYNLIB_ROW(struct functions, EVP_MD_free),
                                              DYNLIB_ROW(struct functions, EVP_Digest),
                                              DYNLIB_ROW(struct functions, EVP_Q_mac),
                                              {NULL, 0}},
    .functions = &functions};

bool digest_prepare(struct error *error)
{
    if (dynlib_load(&libcrypto))
        return true;
    return error_set(error,
                     "hashing needs OpenSSL, and %s cannot be loaded; install the package libssl3",
                     libcrypto.name);
}

/* Looking an algorithm up takes several times as long as to digest a short text. */
struct algorithm {
    const char *name;
    EVP_MD *_Atomic found; /* NULL: not looked up yet; kept until the process ends */
};

static const EVP_MD *find(struct algorithm *algorithm)
{
    EVP_MD *found = atomic_load_explicit(&algorithm->found, memory_order_acquire);
    if (found != NULL)
        return found;
    EVP_MD *fetched = functions.EVP_MD_fetch(NULL, algorithm->name, NULL);
    assert(fetched != NULL);
    if (atomic_compare_exchange_strong(&algorithm->found, &found, fetched))
        return fetched;
    functions.EVP_MD_free(fetched); /* another thread was faster */
    return found;
}

static void compute(struct algorithm *algorithm, struct slice input, uint8_t *ret_digest,
                    unsigned size)
{
    static const uint8_t nothing;
    unsigned written = 0;
    int is_done = functions.EVP_Digest(input.size > 0 ? input.data : &nothing, input.size,
                                       ret_digest, &written, find(algorithm), NULL);
    assert(is_done == 1 && written == size);
}

void digest_sha256(struct slice input, uint8_t ret_digest[static DIGEST_SHA256_BYTES])
{
    static struct algorithm algorithm = {.name = "SHA256"};
    compute(&algorithm, input, ret_digest, DIGEST_SHA256_BYTES);
}

void digest_sha512(struct slice input, uint8_t ret_digest[static DIGEST_SHA512_BYTES])
{
    static struct algorithm algorithm = {.name = "SHA512"};
    compute(&algorithm, input, ret_digest, DIGEST_SHA512_BYTES);
}

void digest_sha3_256(struct slice input, uint8_t ret_digest[static DIGEST_SHA3_256_BYTES])
{
    static struct algorithm algorithm = {.name = "SHA3-256"};
    compute(&algorithm, input, ret_digest, DIGEST_SHA3_256_BYTES);
}

static void compute_hmac(const char *name, struct slice key, struct slice input,
                         uint8_t *ret_digest, size_t size)
{
    static const uint8_t nothing;
    size_t written = 0;
    const uint8_t *mac = functions.EVP_Q_mac(
        NULL, "HMAC", NULL, name, NULL, key.size > 0 ? key.data : &nothing, key.size,
        input.size > 0 ? input.data : &nothing, input.size, ret_digest, size, &written);
    assert(mac != NULL && written == size);
}

void digest_hmac_sha256(struct slice key, struct slice input,
                        uint8_t ret_digest[static DIGEST_SHA256_BYTES])
{
    compute_hmac("SHA256", key, input, ret_digest, DIGEST_SHA256_BYTES);
}

void digest_hmac_sha512(struct slice key, struct slice input,
                        uint8_t ret_digest[static DIGEST_SHA512_BYTES])
{
    compute_hmac("SHA512", key, input, ret_digest, DIGEST_SHA512_BYTES);
}

void digest_sha1(struct slice input, uint8_t ret_digest[static DIGEST_SHA1_BYTES])
{
    static struct algorithm algorithm = {.name = "SHA1"};
    compute(&algorithm, input, ret_digest, DIGEST_SHA1_BYTES);
}

void digest_md5(struct slice input, uint8_t ret_digest[static DIGEST_MD5_BYTES])
{
    static struct algorithm algorithm = {.name = "MD5"};
    compute(&algorithm, input, ret_digest, DIGEST_MD5_BYTES);
}
