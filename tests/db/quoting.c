/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* Quoted words come back from sh itself byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/quote.h"
#include "base/rng.h"
#include "db/engines/engines.h"
#include "tests/lib/dose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const hostile[] = {
    "plain",
    "",
    " ",
    "two words",
    "it's",
    "'",
    "''",
    "\"",
    "a\"b",
    "$(touch /tmp/never)",
    "`id`",
    "$HOME",
    "${HOME}",
    "\\",
    "\\n",
    "a\\",
    "line\nfeed",
    "\n",
    "ends\n",
    "\n\nstarts",
    "\r",
    "\t",
    "-rf",
    "--",
    "-",
    "A=b",
    "=",
    "--x=y z",
    "~",
    "~root",
    "*",
    "?",
    "[a-z]",
    "a;b",
    "a&b",
    "a|b",
    ">x",
    "<x",
    "#no comment",
    "!!",
    "{a,b}",
    "\033[2J\033]0;title\007",
    "a\033",
    "\177",
    "\001",
    "\302\23331m",
    "caf\xc3\xa9",
    "\342\200\256backwards",
    "%s%n",
    "$'\\x41'",
    "\"$(printf '\\033')\"",
    "'$(printf '\\''\\033'\\'')'",
    "\033'\033",
    "\f\v\b",
};
enum { WORDS = sizeof hostile / sizeof hostile[0] };

/* Writes the output of `sh -c 'printf "%s\0" LINE'` to out; returns its size. */
static size_t through_sh(const char *line, char *out, size_t room)
{
    struct dt_text command = {0};
    char path[] = "/tmp/dittune-quote-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *script = fdopen(fd, "w");
    fprintf(script, "printf '%%s\\0' %s\n", line);
    fclose(script);
    dt_text_add(&command, "sh %s", path);
    FILE *pipe = popen(dt_text_at(&command), "r"); // NOLINT(cert-env33-c): sh is what is asked
    assert_non_null(pipe);
    size_t size = fread(out, 1, room, pipe);
    assert_int_equal(pclose(pipe), 0);
    remove(path);
    dt_text_fini(&command);
    return size;
}

static void assert_words(const char *line, const char *const words[], int count)
{
    static char out[1 << 16];
    size_t size = through_sh(line, out, sizeof out), at = 0;
    for (int i = 0; i < count; i++) {
        assert_true(at + strlen(words[i]) < size);
        assert_string_equal(out + at, words[i]);
        at += strlen(words[i]) + 1;
    }
    assert_int_equal(at, size);
}

static bool has_control(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        if ((*at < 0x20 && *at != '\n') || *at == 0x7f ||
            (*at == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f))
            return true;
    return false;
}

static void sh_reads_back_each_word(void **state)
{
    (void)state;
    struct dt_text line = {0};
    for (int i = 0; i < WORDS; i++) {
        if (i > 0)
            dt_text_add(&line, " ");
        dt_quote(hostile[i], &line);
    }
    assert_false(has_control(dt_text_at(&line)));
    assert_words(dt_text_at(&line), hostile, WORDS);
    dt_text_fini(&line);
}

/* A program of such a name is started, no variable set. */
static void sh_takes_no_word_for_an_assignment(void **state)
{
    struct dt_text line = {0};
    (void)state;
    dt_quote("A=b", &line);
    dt_text_add(&line, " 2>/dev/null; test $? -eq 127 && test -z \"$A\"");
    int code = system(dt_text_at(&line)); // NOLINT(cert-env33-c): sh is what is asked
    assert_int_equal(code, 0);
    dt_text_fini(&line);
}

/* Random bytes, in one line of 200 words: what a list of known tricks forgets. */
static void sh_reads_back_random_words(void **state)
{
    enum { COUNT = 200, LONGEST = 24 };
    static char words[COUNT][LONGEST + 1];
    const char *list[COUNT];
    struct dt_text line = {0};
    struct dt_rng rng = dt_rng_at(dose_seed("quoting", 7), "quoting");
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        int size = (int)dt_rng_below(&rng, LONGEST + 1);
        for (int k = 0; k < size; k++)
            words[i][k] = (char)(unsigned char)(1 + dt_rng_below(&rng, 255));
        list[i] = words[i];
        dt_text_add(&line, "%s", i > 0 ? " " : "");
        dt_quote(words[i], &line);
    }
    assert_false(has_control(dt_text_at(&line)));
    assert_words(dt_text_at(&line), list, COUNT);
    dt_text_fini(&line);
}

static void export_with(enum dt_form form, const char *word, struct dt_export *out)
{
    json_t *plan = json_pack("{s:i, s:i, s:s}", "ranks", 2, "ulysses", 2, "\033[1mname", word);
    struct dt_export_request request = {
        .engine = "xdit", .form = form, .plan = plan, .program = word, .checkpoint = word};
    assert_int_equal(dt_export(&request, out), DT_OK);
    json_decref(plan);
}

/* The user's own words in a command and in what NAME=VALUE lines give a shell. */
static void sh_reads_back_both_forms(void **state)
{
    (void)state;
    for (int i = 0; i < WORDS; i++) {
        char model[256];
        struct dt_export out;
        snprintf(model, sizeof model, "--model=%s", hostile[i]);
        const char *const words[] = {
            "torchrun", "--nproc_per_node=2", hostile[i], model, "--ulysses_degree",
            "2",        "--ring_degree",      "1"};
        export_with(DT_FORM_ARGV, hostile[i], &out);
        assert_false(has_control(dt_text_at(&out.text)));
        assert_words(dt_text_at(&out.text), words, 8);
        dt_export_fini(&out);
        export_with(DT_FORM_ENV, hostile[i], &out);
        struct dt_text script = {0};
        dt_text_add(&script, "\n%seval \"set -- $DITTUNE_COMMAND\"; printf '%%s\\0' \"$@\"",
                    dt_text_at(&out.text));
        static char shown[1 << 12];
        size_t size = through_sh(dt_text_at(&script), shown, sizeof shown), at = 1;
        for (int k = 0; k < 8; k++, at += strlen(shown + at) + 1)
            assert_string_equal(shown + at, words[k]);
        assert_int_equal(at, size);
        dt_text_fini(&script);
        dt_export_fini(&out);
    }
}

static void tables_have_no_control_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < WORDS; i++) {
        struct dt_export out;
        export_with(DT_FORM_TABLE, hostile[i], &out);
        assert_false(has_control(dt_text_at(&out.text)));
        assert_non_null(strstr(dt_text_at(&out.text), "\\x1b[1mname="));
        dt_export_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sh_reads_back_each_word),
        cmocka_unit_test(sh_takes_no_word_for_an_assignment),
        cmocka_unit_test(sh_reads_back_random_words),
        cmocka_unit_test(sh_reads_back_both_forms),
        cmocka_unit_test(tables_have_no_control_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
