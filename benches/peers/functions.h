/* What the peers of `weir serve functions` compute: three of its functions, with the same steps. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include <stdio.h>
#include <stdlib.h>

/* Writes the body for `argument` and returns its length. */
typedef int (*function_body)(char *body, size_t size, const char *argument);

struct function {
    const char *path;
    const char *parameter;
    function_body body;
};

static int is_prime(long long number)
{
    if (number < 4 || number % 2 == 0)
        return number == 2 || number == 3;
    for (long long divisor = 3; divisor <= number / divisor; divisor += 2)
        if (number % divisor == 0)
            return 0;
    return 1;
}

static int prime(char *body, size_t size, const char *argument)
{
    return snprintf(body, size, "%s", is_prime(atoll(argument)) ? "True" : "False");
}

static int fibonacci(char *body, size_t size, const char *argument)
{
    long long number = atoll(argument), last = 1, sum = 1;
    for (long long at = 2; at < number; at++) {
        long long next = last + sum;
        last = sum;
        sum = next;
    }
    return snprintf(body, size, "%lld", sum);
}

static int helloworld(char *body, size_t size, const char *argument)
{
    return snprintf(body, size, "Hello, %s", argument);
}

static const struct function functions[] = {
    {"/arithmetic/prime", "num", prime},
    {"/arithmetic/fibonacci", "num", fibonacci},
    {"/helloworld", "str", helloworld},
};

enum { FUNCTIONS = sizeof functions / sizeof functions[0], BODY_MAX = 256, ARGUMENT_MAX = 100 };

#endif
