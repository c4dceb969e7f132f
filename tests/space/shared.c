/* SPDX-License-Identifier: MIT */
/* Spaces of published auto-tuning problems whose numbers of plans are known: those of bench/spaces,
 * and others when their files lie beside the sources. A file is {"parameters": {name: [values]},
 * "rules": [..], "cartesian": n, "valid": n}. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "space/space.h"
#include "tests/lib/dose.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static const char *const folders[] = {DT_SOURCE_DIR "/bench/spaces",
                                      DT_SOURCE_DIR "/../shared/spaces"};

static void check(const char *path)
{
    json_t *root = NULL;
    struct dt_space *space = NULL;
    assert_int_equal(dt_json_read(path, "the space", &root), DT_OK);
    if (dt_space_read(path, &space) != DT_OK)
        fail_msg("%s", dt_message());
    assert_int_equal(dt_space_count(space), json_integer_value(json_object_get(root, "valid")));
    assert_true(dt_space_cartesian(space) == json_number_value(json_object_get(root, "cartesian")));
    int64_t step = dt_space_count(space) / 1000 + 1;
    for (int64_t k = 0; k < dt_space_count(space); k += step) {
        struct dt_point point;
        dt_space_at(space, k, &point);
        assert_int_equal(dt_space_index(space, &point), k);
    }
    dt_space_free(space);
    json_decref(root);
}

static void shared_spaces_have_the_known_counts(void **state)
{
    int n = 0;
    (void)state;
    for (int i = 0; i < (dose_thin() ? 1 : 2); i++) {
        DIR *files = opendir(folders[i]);
        const struct dirent *entry;
        while (files != NULL && (entry = readdir(files)) != NULL) {
            char path[4096];
            size_t size = strlen(entry->d_name);
            if (size < 5 || strcmp(entry->d_name + size - 5, ".json") != 0)
                continue;
            snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name);
            check(path);
            n++;
        }
        if (files != NULL)
            closedir(files);
    }
    print_message("%d spaces\n", n);
    assert_true(n >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared_spaces_have_the_known_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
