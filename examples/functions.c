/* Custom functions for `weir serve functions`:
 *
 *     cc -O2 -shared -fPIC -I include -o functions.so examples/functions.c
 *     weir serve functions --port 8080 --library ./functions.so
 *     curl 'http://127.0.0.1:8080/power?base=2&exponent=10'
 *     curl --data-binary 'one two' http://127.0.0.1:8080/shout
 */
#include <ctype.h>
#include <stdatomic.h>
#include <weir.h>

/* GET /power?base=B&exponent=E */
static int power(const weir_request *request, weir_response *response, void *user) {
    char base[24], exponent[24];
    (void)user;
    if (weir_param(request, "base", base, sizeof base) < 0 ||
        weir_param(request, "exponent", exponent, sizeof exponent) < 0 || strtol(exponent, NULL, 10) > 1000) {
        weir_status(response, 400);
        return weir_printf(response, "base and exponent, at most 1000");
    }
    double result = 1;
    for (long i = strtol(exponent, NULL, 10); i > 0; i--) result *= strtod(base, NULL);
    return weir_printf(response, "%.0f", result);
}

/* POST /shout: state that threads share, as the count, has to be atomic or locked. */
static int shout(const weir_request *request, weir_response *response, void *user) {
    size_t length;
    const unsigned char *body = weir_body(request, &length);
    weir_header(response, "Content-Type", "text/plain");
    weir_printf(response, "%lu: ", atomic_fetch_add((atomic_ulong *)user, 1) + 1);
    for (size_t i = 0; i < length; i++) weir_printf(response, "%c", toupper(body[i]));
    return 0;
}

int weir_register(weir_host *host) {
    static atomic_ulong count;
    return weir_route(host, "/power", power, NULL) || weir_route(host, "/shout", shout, &count);
}
