/* SPDX-License-Identifier: Apache-2.0 */
/* Logins of scrapes. Runs on the lane of the receiver. */
#include "receivers/scrape/scrape_login.h"

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/secret.h"

#include <stdio.h>
#include <string.h>

enum { SECRET_BYTES_MAX = 64 * 1024 };

static bool open_file(struct watched_file *file, const char *path, bool is_rehearsed,
                      const char *key, struct error *error)
{
    if (path[0] == '\0' || is_rehearsed || watched_file_open(file, path, SECRET_BYTES_MAX, error))
        return true;
    return error_at(error, key);
}

/* The text of the file, trimmed, or the configured one. */
static struct slice current(struct watched_file *file, const char *configured)
{
    struct error unused;
    if (file->path == NULL)
        return slice_of_text(configured);
    watched_file_look(file, &unused);
    return slice_trim(slice_of(file->text, file->size));
}

/* "user:password" in base64. */
static char *encode_pair(struct slice user, struct slice password)
{
    size_t size = user.size + 1 + password.size;
    char *pair = mem_zalloc(size + 1);
    if (user.size > 0)
        memcpy(pair, user.data, user.size);
    pair[user.size] = ':';
    if (password.size > 0)
        memcpy(pair + user.size + 1, password.data, password.size);
    char *text = mem_zalloc(base64_size(size) + 1);
    base64_encode(slice_of(pair, size), text);
    secret_free(pair);
    return text;
}

static void make_value(struct scrape_login *login)
{
    struct slice secret = current(&login->secret_file, login->secret);
    char *pair = NULL;
    if (strcmp(login->scheme, "Basic") == 0) {
        pair = encode_pair(current(&login->user_file, login->user), secret);
        secret = slice_of_text(pair);
    }
    size_t room = strlen(login->scheme) + 1 + secret.size + 1;
    secret_free(login->value);
    login->value = mem_alloc(room);
    snprintf(login->value, room, "%s %.*s", login->scheme, (int)secret.size,
             (const char *)secret.data);
    secret_free(pair);
}

bool scrape_login_open(struct scrape_login *login, const struct scrape_http_config *config,
                       bool is_rehearsed, struct error *error)
{
    *login = (struct scrape_login){.user = "", .secret = ""};
    const char *user_file = "";
    const char *secret_file = config->bearer_token_file;
    const char *section = NULL;
    const char *secret_key = "bearer_token_file";
    if (config->has_basic_auth) {
        section = "basic_auth";
        login->scheme = "Basic";
        login->user = config->basic_auth.username;
        login->secret = config->basic_auth.password;
        user_file = config->basic_auth.username_file;
        secret_file = config->basic_auth.password_file;
        secret_key = "password_file";
    } else if (config->has_authorization) {
        section = "authorization";
        login->scheme = config->authorization.type;
        login->secret = config->authorization.credentials;
        secret_file = config->authorization.credentials_file;
        secret_key = "credentials_file";
    } else if (config->bearer_token[0] != '\0' || secret_file[0] != '\0') {
        login->scheme = "Bearer";
        login->secret = config->bearer_token;
    }
    if (login->scheme == NULL ||
        (open_file(&login->user_file, user_file, is_rehearsed, "username_file", error) &&
         open_file(&login->secret_file, secret_file, is_rehearsed, secret_key, error)))
        return true;
    return section != NULL ? error_at(error, section) : false;
}

void scrape_login_close(struct scrape_login *login)
{
    watched_file_close(&login->user_file);
    watched_file_close(&login->secret_file);
    secret_free(login->value);
    login->value = NULL;
}

static const char *value_of(void *arg)
{
    struct scrape_login *login = arg;
    make_value(login);
    return login->value;
}

struct request_credentials scrape_login_credentials(struct scrape_login *login)
{
    if (login->scheme == NULL)
        return (struct request_credentials){.name = NULL};
    return (struct request_credentials){.name = "authorization", .value = value_of, .arg = login};
}
