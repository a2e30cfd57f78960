/*
 * The functions on civetweb, of which libhttp is a fork, as its manual shows it: a handler for each path, one mg_printf.
 *
 *     civetweb-functions THREADS    serves on a free port of 127.0.0.1, which its first line tells
 *     civetweb-functions --version
 */
#include <string.h>
#include <unistd.h>

#include <civetweb.h>

#include "functions.h"

static int handle(struct mg_connection *connection, void *data)
{
    const struct function *function = data;
    const char *query = mg_get_request_info(connection)->query_string;
    char argument[ARGUMENT_MAX], body[BODY_MAX];
    if (!query || mg_get_var(query, strlen(query), function->parameter, argument, sizeof argument) <= 0) {
        mg_send_http_error(connection, 400, "%s was not found in the query", function->parameter);
        return 400;
    }
    int length = function->body(body, sizeof body, argument);
    mg_printf(connection, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s", length, body);
    return 200;
}

int main(int count, char **arguments)
{
    if (count != 2)
        return 2;
    if (!strcmp(arguments[1], "--version")) {
        puts(mg_version());
        return 0;
    }
    /* Without tcp_nodelay an answer that follows another on its connection may wait 40 ms. */
    const char *options[] = {"listening_ports", "127.0.0.1:0", "num_threads", arguments[1], "enable_keep_alive", "yes",
                             "tcp_nodelay", "1", "listen_backlog", "4096", NULL};
    struct mg_callbacks callbacks = {0};
    mg_init_library(0);
    struct mg_context *context = mg_start(&callbacks, NULL, options);
    struct mg_server_port port;
    if (!context || mg_get_server_ports(context, 1, &port) != 1) {
        fputs("civetweb did not start\n", stderr);
        return 1;
    }
    for (int at = 0; at < FUNCTIONS; at++)
        mg_set_request_handler(context, functions[at].path, handle, (void *)&functions[at]);
    printf("{\"listening\":\"http://127.0.0.1:%d\"}\n", port.port);
    fflush(stdout);
    pause();
    return 0;
}
