/*
 * The functions on GNU libmicrohttpd, as its tutorial shows it: one handler, a pool of threads that each have an epoll.
 *
 *     microhttpd-functions THREADS    serves on a free port of 127.0.0.1, which its first line tells
 *     microhttpd-functions --version
 */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include <microhttpd.h>

#include "functions.h"

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *body, size_t length)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(length, (void *)body, MHD_RESPMEM_MUST_COPY);
    if (!response)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/html");
    enum MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result handle(void *data, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **request)
{
    static int seen;
    (void)data, (void)method, (void)version, (void)upload, (void)upload_size;
    if (!*request) { /* the head only; the answer is for the second call */
        *request = &seen;
        return MHD_YES;
    }
    for (int at = 0; at < FUNCTIONS; at++) {
        const struct function *function = &functions[at];
        if (strcmp(url, function->path))
            continue;
        const char *argument = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, function->parameter);
        char body[BODY_MAX];
        if (!argument || !*argument || strlen(argument) >= ARGUMENT_MAX)
            return answer(connection, MHD_HTTP_BAD_REQUEST, "bad argument", 12);
        return answer(connection, MHD_HTTP_OK, body, (size_t)function->body(body, sizeof body, argument));
    }
    return answer(connection, MHD_HTTP_NOT_FOUND, "not found", 9);
}

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    if (!strcmp(arguments[1], "--version")) {
        puts(MHD_get_version());
        return 0;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int threads = atoi(arguments[1]);
    /* A pool begins with two; the option refuses one. */
    struct MHD_OptionItem pool[] = {{MHD_OPTION_THREAD_POOL_SIZE, threads, NULL}, {MHD_OPTION_END, 0, NULL}};
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle, NULL, MHD_OPTION_SOCK_ADDR, &address,
        MHD_OPTION_LISTEN_BACKLOG_SIZE, 4096u, MHD_OPTION_ARRAY, threads > 1 ? pool : pool + 1, MHD_OPTION_END);
    const union MHD_DaemonInfo *port = daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!port) {
        fputs("libmicrohttpd did not start\n", stderr);
        return 1;
    }
    printf("{\"listening\":\"http://127.0.0.1:%d\"}\n", port->port);
    fflush(stdout);
    pause();
    return 0;
}
