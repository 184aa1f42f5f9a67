/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl, loaded when it is first needed: its thirty or so dependent libraries (TLS, Kerberos,
 * LDAP, SSH, IDN …) cost 6 MB of resident memory, more than everything else of an idle daemon, and
 * a sidecar that exports to a neighbour in cleartext never needs them. Only types and constants
 * come from its header; nothing links it. Any thread. */
#pragma once

/* The header's checking macros shadow the functions whose types are taken here. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

struct error;

struct curl_library {
    __typeof__(&curl_global_init_mem) global_init_mem;
    __typeof__(&curl_easy_init) easy_init;
    __typeof__(&curl_easy_perform) easy_perform;
    __typeof__(&curl_easy_cleanup) easy_cleanup;
    __typeof__(&curl_easy_reset) easy_reset;
    __typeof__(&curl_easy_setopt) easy_setopt;
    __typeof__(&curl_easy_getinfo) easy_getinfo;
    __typeof__(&curl_easy_strerror) easy_strerror;
    __typeof__(&curl_slist_append) slist_append;
    __typeof__(&curl_slist_free_all) slist_free_all;
    __typeof__(&curl_multi_init) multi_init;
    __typeof__(&curl_multi_cleanup) multi_cleanup;
    __typeof__(&curl_multi_setopt) multi_setopt;
    __typeof__(&curl_multi_add_handle) multi_add_handle;
    __typeof__(&curl_multi_remove_handle) multi_remove_handle;
    __typeof__(&curl_multi_socket_action) multi_socket_action;
    __typeof__(&curl_multi_assign) multi_assign;
    __typeof__(&curl_multi_info_read) multi_info_read;
};

/* Loads and initialises libcurl once per process. NULL: error has the loader's message. */
const struct curl_library *curl_library_load(struct error *error);
