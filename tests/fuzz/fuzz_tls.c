/* SPDX-License-Identifier: Apache-2.0 */
/* TLS channels: ciphertext of any kind into either role, and a real conversation whose records are
 * torn and damaged on their way. What arrives is a beginning of what was sent, replies stay
 * bounded, and every end comes. */
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/shared/tls_config.h"
#include "src/net/tls/tls_channel.h"
#include "src/net/tls/tls_context.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENT, SERVER };
enum {
    PEM_BYTES_MAX = 4096,
    ROOM_BYTES = 2000,
    SAID_BYTES = 3000,
    STEPS_MAX = 200,
    STEP_BYTES = 4,
    INPUT_MAX = 64 * 1024,
    CERTIFICATE_S = 365 * 24 * 3600,
};

/* What is done to one piece on its way. */
struct step {
    uint8_t size;   /* of the piece, in 16 bytes; 0: all that waits */
    uint8_t offset; /* of the damage, in 8 bytes */
    uint8_t change; /* 0: none */
    uint8_t action; /* bit 0: the client says something; 1: the server; 2: the client ends */
};

struct talk {
    struct tls_channel *channels[2];
    size_t said[2];
    size_t heard[2];
    ptrdiff_t states[2];
};

static struct tls_context *contexts[2];
static char certificate_pem[PEM_BYTES_MAX];
static char key_pem[PEM_BYTES_MAX];

static void require(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void take_text(BIO *bio, char *text)
{
    int size = BIO_read(bio, text, PEM_BYTES_MAX - 1);
    require(size > 0, "no PEM");
    text[size] = '\0';
    BIO_free(bio);
}

static void make_certificate(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    require(key != NULL && certificate != NULL, "no certificate");
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), CERTIFICATE_S);
    X509_set_pubkey(certificate, key);
    X509_NAME *name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"fuzz", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    require(X509_sign(certificate, key, EVP_sha256()) > 0, "no signature");
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate);
    take_text(bio, certificate_pem);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    take_text(bio, key_pem);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void make_contexts(void)
{
    static const char *const protocols[] = {"h2", "http/1.1", NULL};
    static struct tls_server_config server;
    static struct tls_client_config client;
    const struct tls_context_settings settings = {.protocols = protocols};
    struct error error;
    make_certificate();
    server.common = (struct tls_config){.cert_pem = certificate_pem, .key_pem = key_pem};
    client.insecure_skip_verify = true;
    contexts[SERVER] = tls_context_create_server(&server, &settings, &error);
    contexts[CLIENT] = tls_context_create_client(&client, &settings, &error);
    require(contexts[CLIENT] != NULL && contexts[SERVER] != NULL, error.text);
}

static uint8_t said_byte(int from, size_t index)
{
    return (uint8_t)(index * 31 + (size_t)from);
}

static void read_out(struct talk *talk, int end)
{
    uint8_t room[ROOM_BYTES];
    int from = end == CLIENT ? SERVER : CLIENT;
    ptrdiff_t count;
    while ((count = tls_channel_read(talk->channels[end], room, sizeof(room))) > 0)
        for (ptrdiff_t i = 0; i < count; i++) {
            require(talk->heard[end] < talk->said[from], "more arrives than was said");
            require(room[i] == said_byte(from, talk->heard[end]), "something else arrives");
            talk->heard[end]++;
        }
    talk->states[end] = count;
    if (count == TLS_FAILED)
        require(tls_channel_error(talk->channels[end])[0] != '\0', "it fails without a word");
}

static void feed(struct talk *talk, int end, const uint8_t *data, size_t size)
{
    tls_channel_feed(talk->channels[end], (struct slice){.data = data, .size = size});
    unsigned turns = 0;
    do {
        require(turns++ <= size, "input stays unread");
        read_out(talk, end);
        require(tls_channel_keep(talk->channels[end]), "memory is short");
    } while (talk->states[end] == 0 && tls_channel_has_input(talk->channels[end]));
    require(tls_channel_output(talk->channels[end]).size <= TLS_FLIGHT_BYTES_MAX + SAID_BYTES * 2,
            "replies grow without bound");
}

static void open_talk(struct talk *talk)
{
    struct error error;
    *talk = (struct talk){.states = {0, 0}};
    talk->channels[CLIENT] = tls_channel_create(contexts[CLIENT], "localhost", &error);
    talk->channels[SERVER] = tls_channel_create(contexts[SERVER], NULL, &error);
    require(talk->channels[CLIENT] != NULL && talk->channels[SERVER] != NULL, error.text);
}

static void close_talk(struct talk *talk)
{
    for (int end = CLIENT; end <= SERVER; end++) {
        tls_channel_end(talk->channels[end]);
        tls_channel_destroy(talk->channels[end]);
    }
}

/* All of it as ciphertext, in pieces. */
static void feed_raw(int end, const uint8_t *data, size_t size, size_t piece)
{
    struct talk talk;
    open_talk(&talk);
    for (size_t at = 0; at < size; at += piece)
        feed(&talk, end, data + at, size - at < piece ? size - at : piece);
    tls_channel_met_http(talk.channels[SERVER]);
    close_talk(&talk);
}

static void say(struct talk *talk, int end, size_t size)
{
    uint8_t text[SAID_BYTES];
    struct tls_channel *channel = talk->channels[end];
    if (!tls_channel_is_open(channel) || talk->states[end] == TLS_FAILED)
        return;
    if (tls_channel_output(channel).size > SAID_BYTES)
        return;
    for (size_t i = 0; i < size; i++)
        text[i] = said_byte(end, talk->said[end] + i);
    if (tls_channel_write(channel, (struct slice){.data = text, .size = size}))
        talk->said[end] += size;
}

static void carry(struct talk *talk, int from, const struct step *step)
{
    struct slice output = tls_channel_output(talk->channels[from]);
    size_t size =
        step->size == 0 || output.size < 16U * step->size ? output.size : 16U * step->size;
    if (size == 0)
        return;
    uint8_t *piece = mem_copy(output.data, size);
    piece[8U * step->offset % size] ^= step->change;
    tls_channel_sent(talk->channels[from], size);
    feed(talk, from == CLIENT ? SERVER : CLIENT, piece, size);
    mem_free(piece);
}

static void converse(const uint8_t *data, size_t size)
{
    static const struct step plain;
    struct talk talk;
    bool has_ended = false;
    open_talk(&talk);
    for (size_t i = 0; i < STEPS_MAX; i++) {
        struct step step = plain;
        if ((i + 1) * STEP_BYTES <= size)
            memcpy(&step, data + i * STEP_BYTES, sizeof(step));
        if ((step.action & 1) != 0 && !has_ended)
            say(&talk, CLIENT, step.offset * 8U);
        if ((step.action & 2) != 0)
            say(&talk, SERVER, step.offset * 8U);
        if ((step.action & 4) != 0 && !has_ended) {
            has_ended = true;
            tls_channel_end(talk.channels[CLIENT]);
        }
        carry(&talk, i % 2 == 0 ? CLIENT : SERVER, &step);
    }
    close_talk(&talk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > INPUT_MAX)
        return 0;
    if (contexts[SERVER] == NULL)
        make_contexts();
    if (data[0] % 3 == 2)
        converse(data + 2, size - 2);
    else
        feed_raw(data[0] % 3, data + 2, size - 2, data[1] == 0 ? size : data[1]);
    return 0;
}
