/* weir.h: C interface of functions for `weir serve functions --library ./mine.so`.
 *
 * A library exports weir_register, which is called once when the service starts, and registers its routes there:
 *
 *     static int hello(const weir_request *request, weir_response *response, void *user) {
 *         return weir_printf(response, "Hello from %s", weir_path(request));
 *     }
 *
 *     int weir_register(weir_host *host) { return weir_route(host, "/hello", hello, NULL); }
 *
 * Build it with `cc -shared -fPIC -o mine.so mine.c`. There is nothing to link with. C99 or later, or C++.
 *
 * Functions run on the threads of the pool, several at once and each of them several times at once: shared data needs
 * a lock. `request` and `response` are valid on the function's thread until it returns. A function returns 0; anything
 * else gets a 500, and the code is logged. No C++ exception may leave it.
 */
#ifndef WEIR_H
#define WEIR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. Loading a library of another version fails. */
#define WEIR_ABI 2

typedef struct weir_host weir_host;
typedef struct weir_request weir_request;
typedef struct weir_response weir_response;

/* Function behind a route. `user` is the pointer of its registration. */
typedef int (*weir_function)(const weir_request *request, weir_response *response, void *user);

/* Interface of the host; use the functions below instead. */
typedef struct weir_api {
    int (*route)(weir_host *, uint32_t abi, const char *path, weir_function, void *user);
    ptrdiff_t (*param)(const weir_request *, const char *name, char *buffer, size_t size);
    const char *(*method)(const weir_request *);
    const char *(*path)(const weir_request *);
    const void *(*body)(const weir_request *, size_t *length);
    int (*status)(weir_response *, int status);
    int (*header)(weir_response *, const char *name, const char *value);
    int (*write)(weir_response *, const void *bytes, size_t length);
} weir_api;

struct weir_host { const weir_api *api; };
struct weir_request { const weir_api *api; };
struct weir_response { const weir_api *api; };

#if defined(__GNUC__)
#define WEIR_EXPORT __attribute__((visibility("default")))
#define WEIR_FORMAT __attribute__((format(printf, 2, 3)))
#else
#define WEIR_EXPORT
#define WEIR_FORMAT
#endif

/* Defined by the library. If it returns anything but 0, the service does not start. */
WEIR_EXPORT int weir_register(weir_host *host);

/* Registers `function` for `path`, which begins with '/'. Only within weir_register. Returns 0, or -1 on failure; the
 * service then does not start. */
static inline int weir_route(weir_host *host, const char *path, weir_function function, void *user) {
    return host->api->route(host, WEIR_ABI, path, function, user);
}

/* Length of the first query parameter of that name (case-insensitive) after decoding, or -1 without one. Copies it to
 * `buffer` of `size` bytes, cut to fit, with a zero after it; a length >= size means that it was cut. */
static inline ptrdiff_t weir_param(const weir_request *request, const char *name, char *buffer, size_t size) {
    return request->api->param(request, name, buffer, size);
}

/* Method of the request: "GET", "POST", ... */
static inline const char *weir_method(const weir_request *request) { return request->api->method(request); }

/* Path that the function was registered for. */
static inline const char *weir_path(const weir_request *request) { return request->api->path(request); }

/* Body of the request and its length, 1 MiB at most; not zero-terminated. */
static inline const void *weir_body(const weir_request *request, size_t *length) {
    return request->api->body(request, length);
}

/* Sets the status, 200 to 599; default 200. Returns 0, or -1 if it is out of range. */
static inline int weir_status(weir_response *response, int status) { return response->api->status(response, status); }

/* Adds a header; Content-Type replaces the default, text/html. Returns 0, or -1 if the header is invalid, belongs to
 * the host (Content-Length, Transfer-Encoding, Connection), or makes the response too long. */
static inline int weir_header(weir_response *response, const char *name, const char *value) {
    return response->api->header(response, name, value);
}

/* Appends bytes to the body. Returns 0, or -1 if the response exceeds --max-response (default 1 MiB): the client then
 * gets a 500, whatever else the function does. */
static inline int weir_write(weir_response *response, const void *bytes, size_t length) {
    return response->api->write(response, bytes, length);
}

/* Appends formatted text to the body, as printf. Returns 0, or -1 as weir_write. */
static inline int WEIR_FORMAT weir_printf(weir_response *response, const char *format, ...);
static inline int weir_printf(weir_response *response, const char *format, ...) {
    char brief[512], *text = brief;
    va_list arguments, again;
    int length, written;
    va_start(arguments, format);
    va_copy(again, arguments);
    length = vsnprintf(brief, sizeof brief, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof brief) {
        text = (char *)malloc((size_t)length + 1);
        if (text != NULL) vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    if (length < 0 || text == NULL) return -1;
    written = weir_write(response, text, (size_t)length);
    if (text != brief) free(text);
    return written;
}

#ifdef __cplusplus
}
#endif

#endif
