/* weir.h: functions of your own for `weir serve functions --library ./mine.so`.
 *
 * A library exports weir_register, which is called once when the service starts, and registers its routes there:
 *
 *     static int hello(const weir_request *request, weir_answer *answer, void *user) {
 *         return weir_printf(answer, "Hello from %s", weir_path(request));
 *     }
 *
 *     int weir_register(weir_host *host) { return weir_route(host, "/hello", hello, NULL); }
 *
 * Build it with `cc -shared -fPIC -o mine.so mine.c`. There is nothing to link with. C99 or later, or C++.
 *
 * Functions run on the threads of the pool, several at a time and each of them more than once at a time: what they share
 * they have to lock. `request` and `answer` are for the function's own thread and end with the function. A function that
 * returns anything but 0 is answered for with 500, and its code is logged; no C++ exception may leave it.
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

/* The version of what stands here. A library of another version is refused when it is loaded. */
#define WEIR_ABI 1

typedef struct weir_host weir_host;
typedef struct weir_request weir_request;
typedef struct weir_answer weir_answer;

/* A function of yours. `user` is what it was registered with. */
typedef int (*weir_function)(const weir_request *request, weir_answer *answer, void *user);

/* What the host does for you; call it through the functions below. */
typedef struct weir_api {
    int (*route)(weir_host *, uint32_t abi, const char *path, weir_function, void *user);
    ptrdiff_t (*param)(const weir_request *, const char *name, char *buffer, size_t size);
    const char *(*method)(const weir_request *);
    const char *(*path)(const weir_request *);
    const void *(*body)(const weir_request *, size_t *length);
    int (*status)(weir_answer *, int status);
    int (*header)(weir_answer *, const char *name, const char *value);
    int (*write)(weir_answer *, const void *bytes, size_t length);
} weir_api;

struct weir_host { const weir_api *api; };
struct weir_request { const weir_api *api; };
struct weir_answer { const weir_api *api; };

#if defined(__GNUC__)
#define WEIR_EXPORT __attribute__((visibility("default")))
#define WEIR_FORMAT __attribute__((format(printf, 2, 3)))
#else
#define WEIR_EXPORT
#define WEIR_FORMAT
#endif

/* Yours. Anything but 0 says that the library cannot serve; the service then does not start. */
WEIR_EXPORT int weir_register(weir_host *host);

/* Has `function` answer requests for `path`, which begins with '/'. 0, or -1 if that cannot be; the service then does
 * not start. Only within weir_register. */
static inline int weir_route(weir_host *host, const char *path, weir_function function, void *user) {
    return host->api->route(host, WEIR_ABI, path, function, user);
}

/* The length of the query's first parameter of that name (in upper or lower case), decoded, or -1 if there is none. As
 * much of it as fits is put into `buffer` of `size` bytes, with a zero after it: a length >= size says that it did not
 * fit. */
static inline ptrdiff_t weir_param(const weir_request *request, const char *name, char *buffer, size_t size) {
    return request->api->param(request, name, buffer, size);
}

/* "GET", "POST", ... */
static inline const char *weir_method(const weir_request *request) { return request->api->method(request); }

/* The path that the function was registered for. */
static inline const char *weir_path(const weir_request *request) { return request->api->path(request); }

/* The request's body and its length, 1 MiB at most. It is no string: there is no zero after it. */
static inline const void *weir_body(const weir_request *request, size_t *length) {
    return request->api->body(request, length);
}

/* Sets the status, 200 to 599; it is 200 unless set. 0, or -1 if it is none. */
static inline int weir_status(weir_answer *answer, int status) { return answer->api->status(answer, status); }

/* Adds a header; Content-Type replaces the one there is, which is text/html. 0, or -1 if it is not a header, if it is
 * one that the host writes (Content-Length, Transfer-Encoding, Connection), or if the answer becomes too long. */
static inline int weir_header(weir_answer *answer, const char *name, const char *value) {
    return answer->api->header(answer, name, value);
}

/* Adds bytes to the answer's body. 0, or -1 if the answer becomes too long (1 MiB, unless --max-answer says otherwise):
 * the client then has a 500 whatever else the function does. */
static inline int weir_write(weir_answer *answer, const void *bytes, size_t length) {
    return answer->api->write(answer, bytes, length);
}

/* Adds text to the answer's body, as printf. 0, or -1 as weir_write. */
static inline int WEIR_FORMAT weir_printf(weir_answer *answer, const char *format, ...);
static inline int weir_printf(weir_answer *answer, const char *format, ...) {
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
    written = weir_write(answer, text, (size_t)length);
    if (text != brief) free(text);
    return written;
}

#ifdef __cplusplus
}
#endif

#endif
