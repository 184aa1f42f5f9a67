/* SPDX-License-Identifier: Apache-2.0 */
/* One function of libcrypto, found by name. The library stays loaded. Any thread. */
#include "src/base/digest.h"

#include <assert.h>
#include <dlfcn.h>
#include <openssl/evp.h>
#include <pthread.h>

#include "src/base/error.h"

static const char library_name[] = "libcrypto.so.3";

static pthread_once_t once = PTHREAD_ONCE_INIT;
static __typeof__(EVP_Q_digest) *q_digest;

static void load(void)
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    assert(q_digest == NULL);
    if (library != NULL)
        *(void **)&q_digest = dlsym(library, "EVP_Q_digest");
}

bool digest_prepare(struct error *error)
{
    assert(error != NULL);
    pthread_once(&once, load);
    if (q_digest != NULL)
        return true;
    return error_set(error,
                     "hashing needs OpenSSL, and %s cannot be loaded; install the package libssl3",
                     library_name);
}

static void compute(const char *name, struct slice input, uint8_t *ret_digest, size_t size)
{
    static const uint8_t nothing;
    size_t written = 0;
    assert(q_digest != NULL);
    int is_done = q_digest(NULL, name, NULL, input.size > 0 ? input.data : &nothing, input.size,
                           ret_digest, &written);
    assert(is_done == 1 && written == size);
    (void)is_done;
    (void)size;
}

void digest_sha256(struct slice input, uint8_t ret_digest[static DIGEST_SHA256_BYTES])
{
    compute("SHA256", input, ret_digest, DIGEST_SHA256_BYTES);
}

void digest_sha1(struct slice input, uint8_t ret_digest[static DIGEST_SHA1_BYTES])
{
    compute("SHA1", input, ret_digest, DIGEST_SHA1_BYTES);
}

void digest_md5(struct slice input, uint8_t ret_digest[static DIGEST_MD5_BYTES])
{
    compute("MD5", input, ret_digest, DIGEST_MD5_BYTES);
}
