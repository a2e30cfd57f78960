/* Function that blocks for 5 ms, as for a disk or another service. */
#include <time.h>
#include <weir.h>

/* GET /waiting */
static int waiting(const weir_request *request, weir_response *response, void *user) {
    struct timespec five_ms = {.tv_sec = 0, .tv_nsec = 5000000};
    (void)request;
    (void)user;
    nanosleep(&five_ms, NULL);
    return weir_printf(response, "waited");
}

int weir_register(weir_host *host) { return weir_route(host, "/waiting", waiting, NULL); }
