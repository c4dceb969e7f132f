/* SPDX-License-Identifier: MIT */
/* The unit tests of a module as one program: test_<module> NAME runs tests/<module>/NAME.c, whose
 * main is called test_NAME here. DT_TEST_LIST is the list, a row each. Tests start themselves again
 * as a worker, without arguments: the environment has the name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEST(name) int test_##name(void);
#include DT_TEST_LIST
#undef TEST

static const struct {
    const char *name;
    int (*run)(void);
} tests[] = {
#define TEST(name) {#name, test_##name},
#include DT_TEST_LIST
#undef TEST
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : getenv("DITTUNE_TEST");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (name != NULL && strcmp(tests[i].name, name) == 0) {
            setenv("DITTUNE_TEST", name, 1);
            return tests[i].run();
        }
    fprintf(stderr, "usage: %s NAME, one of", argv[0]);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        fprintf(stderr, " %s", tests[i].name);
    fputc('\n', stderr);
    return 2;
}
