/* SPDX-License-Identifier: MIT */
/* Files written byte by byte, valid ones and every kind of invalid one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/safetensors.h"
#include "tests/lib/path.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Length, header, `data` bytes 0, 1, 2, ... */
static size_t compose(char *out, const char *header, uint64_t length, size_t data)
{
    size_t size = strlen(header);
    for (int i = 0; i < 8; i++)
        out[i] = (char)(length >> 8 * i & 0xff);
    memcpy(out + 8, header, size + 1);
    for (size_t i = 0; i < data; i++)
        out[8 + size + i] = (char)i;
    return 8 + size + data;
}

static void expect(dt_status code, const char *sentence)
{
    struct dt_safetensors *file = (void *)0x1;
    assert_int_equal(dt_safetensors_open(path, &file), code);
    if (strstr(dt_message(), sentence) == NULL || strstr(dt_message(), "/tmp/") == NULL)
        fail_msg("'%s' does not name the file or say '%s'", dt_message(), sentence);
    assert_ptr_equal(file, (void *)0x1);
}

static void valid_files_are_read(void **state)
{
    (void)state;
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"b\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[24,32]},"
        "\"none\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[24,24]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
        "\"one\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[32,34]}}   ";
    char bytes[512];
    struct dt_safetensors *file = NULL;
    const void *data = NULL;
    put(bytes, compose(bytes, header, sizeof header - 1, 34));
    assert_int_equal(dt_safetensors_open(path, &file), DT_OK);
    assert_int_equal(dt_safetensors_count(file), 4);
    assert_string_equal(dt_safetensors_path(file), path);
    assert_null(dt_safetensors_find(file, "__metadata__"));
    const struct dt_safetensor *b = dt_safetensors_find(file, "b");
    assert_non_null(b);
    assert_int_equal(b->bytes, 8);
    assert_int_equal(((const char *)b->data)[0], 24);
    assert_int_equal(dt_safetensors_find(file, "one")->rank, 0);
    struct dt_safetensor want = {.name = "a", .dtype = "F32", .rank = 2, .shape = {-1, 3}};
    assert_int_equal(dt_safetensors_get(file, &want, &data), DT_OK);
    assert_int_equal(((const char *)data)[23], 23);
    want.shape[1] = 2;
    assert_int_equal(dt_safetensors_get(file, &want, &data), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "tensor 'a' has shape [2, 3], expected [any, 2]"));
    want.dtype = "BF16";
    assert_int_equal(dt_safetensors_get(file, &want, &data), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "tensor 'a' has dtype F32, expected BF16"));
    want.name = "c";
    assert_int_equal(dt_safetensors_get(file, &want, &data), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "tensor 'c' is missing, expected BF16 [any, 2]"));
    dt_safetensors_close(file);
    dt_safetensors_close(NULL);
}

static void wrong_tensors_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *tensor; /* the entry of "a"; the file holds 8 data bytes */
        const char *sentence;
    } cases[] = {
        {"1", "tensor 'a': its entry is not a JSON object"},
        {"{\"shape\":[2],\"data_offsets\":[0,8]}", "'dtype'"},
        {"{\"dtype\":\"F32\",\"data_offsets\":[0,8]}", "'shape'"},
        {"{\"dtype\":\"F32\",\"shape\":[2]}", "'data_offsets'"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}", "'x'"},
        {"{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}", "unknown dtype 'F31'"},
        {"{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}",
         "dtype and shape take 12 bytes, data_offsets span 8"},
        {"{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,8]}", "take 16 bytes"},
        {"{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}", "is not a count"},
        {"{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}", "is not a count"},
        {"{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}",
         "9 dimensions, at most 8"},
        {"{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,8]}",
         "the shape is too large"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}", "not a pair of integers"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,\"8\"]}", "not a pair of integers"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}", "are [8, 0]"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}", "are [-8, 0]"},
        {"{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}",
         "the file holds 8 data bytes"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}",
         "4 bytes after the last tensor"},
        {"{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}", "there is a hole before it"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}",
         "tensors overlap"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}",
         "duplicate"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"__metadata__\":[]",
         "__metadata__ is not a JSON object"},
        {"{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"__metadata__\":{\"k\":1}",
         "__metadata__ 'k' is not a string"},
    };
    char header[512], bytes[1024];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(header, sizeof header, "{\"a\":%s}", cases[i].tensor);
        put(bytes, compose(bytes, header, strlen(header), 8));
        expect(DT_EUSAGE, cases[i].sentence);
    }
}

static void broken_headers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        uint64_t length;
        const char *sentence;
    } cases[] = {
        {"{}", 3, "its header length is 3 bytes, but the file has only 2"},
        {"{}", UINT64_MAX, "its header length is 18446744073709551615 bytes"},
        {"{}", 1, "is not valid JSON"},
        {"", 0, "is not valid JSON"},
        {"[]", 2, "is not a JSON object"},
        {"{\"a\":", 5, "is not valid JSON"},
        {"{}x", 2, "1 bytes after the last tensor belong to none"},
    };
    char bytes[64];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put(bytes, compose(bytes, cases[i].header, cases[i].length, 0));
        expect(DT_EUSAGE, cases[i].sentence);
    }
    put("1234567", 7);
    expect(DT_EUSAGE, "7 bytes are too few");
    put("", 0);
    expect(DT_EUSAGE, "the file is empty");
}

static void unreadable_files_are_io_errors(void **state)
{
    (void)state;
    struct dt_safetensors *file = NULL;
    assert_int_equal(dt_safetensors_open("/tmp/no/such/file", &file), DT_EIO);
    assert_non_null(strstr(dt_message(), "cannot read /tmp/no/such/file: No such file"));
    assert_int_equal(dt_safetensors_open("/tmp", &file), DT_EIO);
    assert_non_null(strstr(dt_message(), "it is not a regular file"));
    assert_int_equal(dt_safetensors_open("/dev/zero", &file), DT_EIO);
    assert_null(file);
}

/* Every prefix of a valid file, and files with a few changed bytes: refused or read,
 * without other effects. */
static void random_bytes_are_refused_or_read(void **state)
{
    (void)state;
    static const char header[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,1],\"data_offsets\":[0,8]}}";
    char whole[128], bytes[128];
    size_t size = compose(whole, header, sizeof header - 1, 8);
    for (size_t cut = 0; cut < size; cut++) {
        struct dt_safetensors *file = NULL;
        put(whole, cut);
        assert_int_equal(dt_safetensors_open(path, &file), DT_EUSAGE);
    }
    for (uint64_t round = 0; round < 3000; round++) {
        struct dt_safetensors *file = NULL;
        memcpy(bytes, whole, size);
        for (uint64_t i = 0; i <= round % 3; i++) {
            uint64_t bits = dt_rng_hash(3, round, i);
            bytes[bits % (size - 8)] = (char)(bits >> 32);
        }
        put(bytes, size);
        if (dt_safetensors_open(path, &file) != DT_OK)
            continue;
        for (int i = 0; i < dt_safetensors_count(file); i++)
            assert_in_range(dt_safetensors_at(file, i)->bytes, 0, 8);
        dt_safetensors_close(file);
    }
}

static void what_is_written_comes_back(void **state)
{
    (void)state;
    const float a[] = {1.5f, -0.0f, 3e-40f, 7.0f};
    const int64_t b[] = {INT64_MIN, 5};
    const struct dt_safetensor tensors[] = {
        {.name = "a", .dtype = "F32", .rank = 2, .shape = {2, 2}, .data = a, .bytes = sizeof a},
        {.name = "b", .dtype = "I64", .rank = 1, .shape = {2}, .data = b, .bytes = sizeof b},
    };
    struct dt_safetensors *file = NULL;
    assert_int_equal(dt_safetensors_write(path, tensors, 2), DT_OK);
    assert_int_equal(dt_safetensors_open(path, &file), DT_OK);
    for (int i = 0; i < 2; i++) {
        const void *data = NULL;
        assert_int_equal(dt_safetensors_get(file, &tensors[i], &data), DT_OK);
        assert_memory_equal(data, tensors[i].data, (size_t)tensors[i].bytes);
        assert_int_equal((uintptr_t)data % 8, 0); /* the map starts at a page */
    }
    dt_safetensors_close(file);
    assert_int_equal(dt_safetensors_write("/tmp/no/such/file", tensors, 2), DT_EIO);
    assert_non_null(strstr(dt_message(), "cannot write /tmp/no/such/file"));
    assert_int_equal(dt_safetensors_write("/tmp", tensors, 2), DT_EIO);
}

/* A planted link in the folder does not redirect the writer to another file. */
static void no_link_is_followed(void **state)
{
    (void)state;
    const float a = 1;
    const struct dt_safetensor tensor = {
        .name = "a", .dtype = "F32", .rank = 1, .shape = {1}, .data = &a, .bytes = sizeof a};
    char planted[300], victim[300], text[8] = "";
    snprintf(planted, sizeof planted, "%s.tmp-%ld", path, (long)getpid());
    snprintf(victim, sizeof victim, "%s.victim", path);
    FILE *file = fopen(victim, "w");
    assert_non_null(file);
    assert_int_equal(fputs("mine", file) < 0 || fclose(file) != 0, 0);
    assert_int_equal(symlink(victim, planted), 0);
    assert_int_equal(dt_safetensors_write(path, &tensor, 1), DT_OK);
    file = fopen(victim, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_string_equal(text, "mine");
    fclose(file);
    assert_int_equal(access(planted, F_OK), -1);
    unlink(victim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_files_are_read),
        cmocka_unit_test(wrong_tensors_are_refused),
        cmocka_unit_test(broken_headers_are_refused),
        cmocka_unit_test(unreadable_files_are_io_errors),
        cmocka_unit_test(random_bytes_are_refused_or_read),
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(no_link_is_followed),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
