/* SPDX-License-Identifier: MIT */
/* Which words of a command are paths follows from their form alone, so that the key stays the same when a run writes a file. */
#include "worker/command/definition.h"

#include "base/host.h"
#include "base/rng.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MOST   3900                /* a string of a stored key has at most 4096 bytes */
#define HASHED_MOST (INT64_C(64) << 20) /* bytes of a file; of the rest only the size counts */
#define PATH_ROOM   4096

/* ---- words, also of a text for sh, which is cut at its operators */

struct words {
    char *text; /* owned; NULL: the words are those of the command */
    char *at[DT_COMMAND_WORDS + 1];
};

static bool read_words(const struct dt_command_line *command, struct words *words)
{
    int count = 0;
    char *rest = NULL;
    *words = (struct words){.text = command->shell ? strdup(command->words[2]) : NULL};
    if (!command->shell)
        memcpy(words->at, command->words, sizeof words->at);
    else if (words->text != NULL)
        for (char *word = strtok_r(words->text, " \t\r\n;|&()<>'\"`", &rest);
             word != NULL && count < DT_COMMAND_WORDS;
             word = strtok_r(NULL, " \t\r\n;|&()<>'\"`", &rest))
            words->at[count++] = word;
    return !command->shell || words->text != NULL;
}

/* The part of a word that may be a path: "conf.json" of "--config=conf.json". */
static const char *path_of(const char *word)
{
    const char *equals = strchr(word, '=');
    return equals != NULL && memchr(word, '/', (size_t)(equals - word)) == NULL ? equals + 1 : word;
}

/* "run.py" and "my.module", but neither "1.5" nor "FLUX.1-dev". */
static bool has_suffix(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot == NULL || dot == path || !isalpha((unsigned char)dot[1]))
        return false;
    for (dot++; *dot != 0; dot++)
        if (!isalnum((unsigned char)*dot))
            return false;
    return true;
}

static bool is_relative(const char *path)
{
    if (path[0] == '/' || path[0] == '~' || path[0] == '-' || strstr(path, "://") != NULL)
        return false;
    return path[0] == '.' || strchr(path, '/') != NULL || has_suffix(path);
}

/* "cd WORD" and "-C WORD", as make and git have it. */
static bool names_folder(const char *word)
{
    return strcmp(word, "cd") == 0 || strcmp(word, "-C") == 0;
}

/* A command that names files by absolute paths alone means the same in every folder. */
static dt_status find_paths(const struct dt_command_line *command, bool *absolute, bool *relative)
{
    struct words words;
    if (!read_words(command, &words))
        return dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0; words.at[i] != NULL; i++) {
        const char *path = path_of(words.at[i]);
        bool plain = i > 0 && names_folder(words.at[i - 1]) && strchr("/~-$", path[0]) == NULL;
        *absolute = *absolute || path[0] == '/';
        *relative = *relative || is_relative(path) || plain;
    }
    free(words.text);
    return DT_OK;
}

/* ---- the job */

static dt_status check_text(const char *what, const char *text)
{
    if (!dt_text_whole(text))
        return dt_fail(DT_EUSAGE, "%s is not UTF-8, which a stored key must be", what);
    if (strlen(text) > TEXT_MOST)
        return dt_fail(DT_EUSAGE, "%s has %zu bytes, more than the %d of a stored key", what,
                       strlen(text), TEXT_MOST);
    return DT_OK;
}

/* A command may be longer than a string of a key: then a hash of the whole stands for its end. */
static dt_status add_text(const char *name, const char *option, const char *whole, json_t *job)
{
    char cut[TEXT_MOST + 32];
    if (strlen(whole) > TEXT_MOST) {
        snprintf(cut, sizeof cut, "%.*s", TEXT_MOST - 1, whole);
        dt_text_mend(cut);
        snprintf(cut + strlen(cut), 24, " #%016llx", (unsigned long long)dt_rng_stream(whole));
        whole = cut;
    }
    DT_TRY(check_text(option, whole));
    return json_object_set_new(job, name, json_string(whole)) == 0
               ? DT_OK
               : dt_fail(DT_ENOMEM, "out of memory");
}

static dt_status add_line(const char *name, const char *option, const struct dt_command_line *line,
                          const struct dt_space *space, json_t *job)
{
    struct dt_text text = {0};
    dt_line_text(line, space, &text);
    dt_status status = dt_text_status(&text);
    if (status == DT_OK)
        status = add_text(name, option, dt_text_at(&text), job);
    dt_text_fini(&text);
    return status;
}

static dt_status add_folder(const struct dt_definition *definition, json_t *job)
{
    char folder[PATH_ROOM];
    bool absolute = false, relative = false, any = false;
    DT_TRY(find_paths(definition->command, &absolute, &relative));
    if (definition->prepare != NULL)
        DT_TRY(find_paths(definition->prepare, &any, &relative));
    if (absolute && !relative)
        return DT_OK;
    if (getcwd(folder, sizeof folder) == NULL)
        return dt_fail(DT_EIO, "cannot tell the current folder: %s", strerror(errno));
    DT_TRY(check_text("the name of the current folder", folder));
    return json_object_set_new(job, "folder", json_string(folder)) == 0
               ? DT_OK
               : dt_fail(DT_ENOMEM, "out of memory");
}

dt_status dt_definition_job(const struct dt_definition *definition, json_t **job)
{
    DT_TRY(check_text("--time", definition->time));
    DT_TRY(check_text("the list of limits", definition->limits));
    json_t *made = json_object();
    dt_status status =
        add_line("command", "--command", definition->command, definition->space, made);
    bool failed = json_object_set_new(made, "time", json_string(definition->time)) != 0;
    if (definition->unit != NULL)
        failed |= json_object_set_new(made, "unit", json_string(definition->unit)) != 0;
    if (definition->limits[0] != 0)
        failed |= json_object_set_new(made, "limits", json_string(definition->limits)) != 0;
    if (definition->command->shell)
        failed |= json_object_set_new(made, "shell", json_integer(1)) != 0;
    if (status == DT_OK && failed)
        status = dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK && definition->prepare != NULL)
        status = add_line("prepare", "--prepare", definition->prepare, definition->space, made);
    if (status == DT_OK)
        status = add_folder(definition, made);
    if (status == DT_OK)
        *job = made;
    else
        json_decref(made);
    return status;
}

/* ---- the files */

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static dt_status check_words(char *const words[])
{
    static const char *const of_shell[] = {"|", "||", "&&", "&", ";", "<", ">", ">>", "2>&1", NULL};
    for (int i = 0; words[i] != NULL; i++)
        for (int k = 0; of_shell[k] != NULL; k++)
            if (strcmp(words[i], of_shell[k]) == 0)
                return dt_fail(DT_EUSAGE,
                               "the command has '%s', which only a shell reads: give --shell",
                               words[i]);
    return DT_OK;
}

dt_status dt_definition_check(const struct dt_command_line *command)
{
    struct words words;
    if (command->shell)
        return DT_OK;
    if (!read_words(command, &words))
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = check_words(words.at);
    free(words.text);
    return status;
}

/* Programs and scripts, but not the files that a run may write. */
static bool is_code(const char *path)
{
    static const char *const suffixes[] = {".py", ".sh", ".pl", ".rb", ".js", ".lua", ".R", ".jl"};
    const char *dot = strrchr(path, '.');
    char begin[2] = "";
    for (size_t i = 0; dot != NULL && i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(dot, suffixes[i]) == 0)
            return is_file(path);
    if (!is_file(path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool script = fd >= 0 && read(fd, begin, 2) == 2 && memcmp(begin, "#!", 2) == 0;
    if (fd >= 0)
        close(fd);
    return script || access(path, X_OK) == 0;
}

/* FNV-1a (64 bits) of the size and the bytes. */
static bool hash_file(const char *path, uint64_t *hash)
{
    static unsigned char bytes[1 << 16];
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 && fstat(fd, &info) == 0 ? 1 : -1;
    uint64_t made = got < 0 ? 0 : DT_RNG_FNV ^ (uint64_t)info.st_size;
    for (int64_t left = HASHED_MOST; left > 0 && got > 0; left -= got) {
        got = read(fd, bytes, sizeof bytes);
        made = got > 0 ? dt_rng_bytes(made, bytes, (size_t)got) : made;
    }
    if (fd >= 0)
        close(fd);
    *hash = made;
    return got >= 0;
}

static void add_file(const char *path, json_t *files)
{
    const char *slash = strrchr(path, '/');
    char name[64], text[24];
    uint64_t hash;
    if (!hash_file(path, &hash))
        return;
    snprintf(name, sizeof name, "file %.50s", slash != NULL ? slash + 1 : path);
    dt_text_mend(name);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    json_object_set_new(files, name, json_string(text));
}

json_t *dt_definition_files(const struct dt_command_line *command)
{
    json_t *files = json_object();
    struct words words;
    char path[PATH_ROOM];
    bool found = false, bare = false;
    if (!read_words(command, &words))
        return files;
    for (int i = 0; words.at[i] != NULL && !found; i++) {
        const char *word = words.at[i];
        if (i == 0) {
            bare = strchr(word, '/') == NULL;
            if (dt_host_program(word, path, sizeof path))
                add_file(path, files);
        } else if ((i == 1 && bare && is_file(word)) || is_code(word)) {
            add_file(word, files);
            found = true;
        }
    }
    free(words.text);
    return files;
}
