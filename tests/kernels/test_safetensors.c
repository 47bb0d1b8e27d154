/* safetensors: what is written is read again byte for byte and has the layout that
 * the format's documentation states; hostile files are refused with their name,
 * unusual ones are read; a write that fails leaves the old file alone. */
#include "../../kernels/common/safetensors.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel_test.h"

static char folder[] = "/tmp/safetensors.XXXXXX", path[64];

static int make_folder(void **unused)
{
    (void)unused;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    return 0;
}

static int remove_folder(void **unused)
{
    (void)unused;
    remove(path);
    return rmdir(folder);
}

/* ---- reading ----------------------------------------------------------------------------- */

/* A file of this header, of a length that it states, and of so many bytes 0, 1, ... */
static void put(const char *header, uint64_t stated, size_t data_bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(&stated, sizeof stated, 1, file);
    fwrite(header, strlen(header), 1, file);
    for (size_t i = 0; i < data_bytes; i++) fputc((int)i, file);
    fclose(file);
}

static void expect_refused_as(const char *header, uint64_t stated, size_t data_bytes,
                              const char *word)
{
    char reason[SAFETENSORS_REASON] = "";
    safetensors_file file;
    put(header, stated, data_bytes);
    assert_int_equal(safetensors_read(path, &file, reason), -1);
    if (!strstr(reason, path) || !strstr(reason, word)) fail_msg("says: %s", reason);
    assert_null(file.tensors);
    assert_null(file.memory);
}

static void expect_refused(const char *header, const char *word)
{
    expect_refused_as(header, strlen(header), 64, word);
}

#define ONE(dtype, shape, begin, end)                                                          \
    "{\"t\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}}"
#define GOOD ONE("F32", "16", "0", "64")

static void test_wrong_lengths(void **unused)
{
    (void)unused;
    expect_refused_as(GOOD, UINT64_MAX, 64, "cut");
    expect_refused_as(GOOD, UINT64_MAX - 7, 64, "cut");
    expect_refused_as(GOOD, 100000, 64, "cut");
    expect_refused_as("", 0, 0, "header");
    expect_refused_as(GOOD, strlen(GOOD), 40, "'t'");
    expect_refused_as(GOOD, strlen(GOOD), 63, "'t'");
    expect_refused_as(GOOD, strlen(GOOD), 65, "no tensor");
    expect_refused_as(GOOD, strlen(GOOD) - 1, 65, "header");
}

static void test_wrong_spans(void **unused)
{
    (void)unused;
    expect_refused(ONE("F32", "32", "0", "128"), "outside");
    expect_refused(ONE("F32", "16", "64", "0"), "outside");
    expect_refused(ONE("F32", "1000,1000", "0", "64"), "shape");
    expect_refused(ONE("F32", "8", "0", "64"), "shape");
    expect_refused(ONE("F32", "4294967296,4294967296", "0", "64"), "too large");
    expect_refused(ONE("F32", "4611686018427387908,4", "0", "64"), "too large");
    expect_refused(ONE("F32", "9223372036854775816,2", "0", "64"), "too large");
    expect_refused(ONE("F32", "16", "-64", "0"), "whole number");
    expect_refused(ONE("F32", "1.6e1", "0", "64"), "not whole");
    expect_refused("{\"t\":{\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[0]}}", "two");
    expect_refused("{\"t\":{\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[0,32,64]}}", "long");
    expect_refused(ONE("F77", "16", "0", "64"), "dtype");
}

#define TWO(name, shape1, span1, shape2, span2)                                                \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[" shape1 "],\"data_offsets\":[" span1 "]},\"" name     \
    "\":{\"dtype\":\"F32\",\"shape\":[" shape2 "],\"data_offsets\":[" span2 "]}}"

static void test_wrong_cover(void **unused)
{
    (void)unused;
    expect_refused(TWO("b", "16", "0,64", "8", "32,64"), "overlaps");
    expect_refused(TWO("b", "4", "0,16", "8", "32,64"), "holes");
    expect_refused(ONE("F32", "8", "0", "32"), "no tensor");
    expect_refused(TWO("a", "8", "0,32", "8", "32,64"), "twice");
    expect_refused(TWO("b", "16", "0,64", "16", "0,64"), "overlaps");
}

static void test_wrong_json(void **unused)
{
    char deep[2001] = "{\"t\":";
    (void)unused;
    memset(deep + 5, '[', 1995);
    expect_refused(deep, "'t'");
    expect_refused("[]", "form");
    expect_refused("{\"t\":{\"dtype\":\"F32\",\"shape\":[16]}}", "without");
    expect_refused("{\"t\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "repeated");
    expect_refused("{\"t", "ends");
    expect_refused("{\"t\\", "ends");
    expect_refused("{\"\\u12", "escape");
    expect_refused("{\"\\ud800\":1}", "surrogate");
    /* The other half stands behind the header's end. */
    expect_refused_as("{\"\\ud800\\udc00\":1}", 8, 64, "surrogate");
    /* A second half that is none, just outside the second halves, and second halves alone. */
    expect_refused("{\"\\ud83d\\u0041\":1}", "surrogate");
    expect_refused("{\"\\ud83d\\udbff\":1}", "surrogate");
    expect_refused("{\"\\ud83d\\ue000\":1}", "surrogate");
    expect_refused("{\"\\ud83dx\":1}", "surrogate");
    expect_refused("{\"\\ud83d\\n\":1}", "surrogate");
    expect_refused("{\"\\udc00\":1}", "surrogate");
    expect_refused("{\"\\udfff\":1}", "surrogate");
    expect_refused("{\"\\u0000\":1}", "zero");
    expect_refused(GOOD "x", "behind");
}

static void expect_read(const char *header, size_t data_bytes, const char *name, uint64_t bytes,
                        int first_byte)
{
    char reason[SAFETENSORS_REASON] = "";
    safetensors_file file;
    const safetensors_tensor *t;
    put(header, strlen(header), data_bytes);
    if (safetensors_read(path, &file, reason) != 0) fail_msg("%s", reason);
    t = safetensors_find(&file, name);
    assert_non_null(t);
    assert_int_equal(t->bytes, bytes);
    if (bytes > 0) assert_int_equal(*(const unsigned char *)t->data, first_byte);
    safetensors_close(&file);
}

static void test_unusual_files_are_read(void **unused)
{
    (void)unused;
    expect_read(GOOD, 64, "t", 64, 0);
    expect_read(GOOD "      ", 64, "t", 64, 0);
}

static void test_more_unusual_files(void **unused)
{
    (void)unused;
    expect_read(ONE("F32", "", "0", "4"), 4, "t", 4, 0);
    expect_read("{\"e\":{\"dtype\":\"F32\",\"shape\":[0,768],\"data_offsets\":[0,0]},\"t\":"
                "{\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[0,64]}}", 64, "e", 0, 0);
    expect_read("{\"__metadata__\":{\"format\":\"pt\",\"x\":\"a\\\"b\\u00e9\"},\"t\":"
                "{\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[0,64]}}", 64, "t", 64, 0);
    expect_read(TWO("z", "8", "32,64", "8", "0,32"), 64, "a", 32, 32);
    expect_read("{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},\"t\":"
                "{\"dtype\":\"F32\",\"shape\":[15],\"data_offsets\":[3,63]}}", 63, "t", 60, 3);
    expect_read("{\"h.0.\\u0061ttn\":{\"dtype\":\"F32\",\"shape\":[16],\"data_offsets\":[0,64]}}",
                64, "h.0.attn", 64, 0);
    /* The first code point of three bytes, and the last of two. */
    expect_read("{\"\\u0800\\u07ff\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
                "\xe0\xa0\x80\xdf\xbf", 4, 0);
    expect_read("{\"\\ud83d\\ude00\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
                "\xf0\x9f\x98\x80", 4, 0);
    /* The code points around the surrogates, and the first and the last of their pairs. */
    expect_read("{\"\\ud7ff\\ue000\\uFFFF\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                4, "\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 4, 0);
    expect_read("{\"\\ud800\\udc00\\udbff\\udfff\":{\"dtype\":\"F32\",\"shape\":[1],"
                "\"data_offsets\":[0,4]}}", 4, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 4, 0);
}

static void test_no_file(void **unused)
{
    char reason[SAFETENSORS_REASON] = "";
    safetensors_file file;
    (void)unused;
    assert_int_equal(safetensors_read("/nowhere/file", &file, reason), -1);
    assert_non_null(strstr(reason, "'/nowhere/file': No such file"));
}

/* ---- writing ------------------------------------------------------------------------------ */

static const float numbers[6] = {1, -2, 3.5f, 0, 1e-30f, 7};
static const uint16_t halves[3] = {0x3f80, 0x4000, 0xc000};

static void fill_two(safetensors_tensor two[2])
{
    two[0] = (safetensors_tensor){.name = "a\"b\\", .dtype = "F32", .rank = 2, .shape = {2, 3},
                                  .data = numbers, .bytes = sizeof numbers};
    two[1] = (safetensors_tensor){.name = "half", .dtype = "BF16", .rank = 1, .shape = {3},
                                  .data = halves, .bytes = sizeof halves};
}

static void test_round_trip(void **unused)
{
    char reason[SAFETENSORS_REASON] = "";
    safetensors_tensor two[2];
    safetensors_file file;
    (void)unused;
    fill_two(two);
    assert_int_equal(safetensors_write(path, two, 2, reason), 0);
    assert_int_equal(safetensors_read(path, &file, reason), 0);
    assert_int_equal(file.count, 2);
    for (int i = 0; i < 2; i++) {
        const safetensors_tensor *t = safetensors_find(&file, two[i].name);
        assert_non_null(t);
        assert_string_equal(t->dtype, two[i].dtype);
        assert_int_equal(t->rank, two[i].rank);
        assert_memory_equal(t->shape, two[i].shape, sizeof t->shape);
        assert_memory_equal(t->data, two[i].data, two[i].bytes);
    }
    safetensors_close(&file);
}

/* The bytes themselves: the length is a multiple of 8, then what the format says. */
static void test_layout(void **unused)
{
    static const char header[] =
        "{\"t\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}";
    char reason[SAFETENSORS_REASON] = "", text[128];
    safetensors_tensor t = {.name = "t", .dtype = "F32", .rank = 2, .shape = {2, 3},
                            .data = numbers, .bytes = 24};
    uint64_t length, padded = (sizeof header - 1 + 7) / 8 * 8;
    FILE *file;
    (void)unused;
    assert_int_equal(safetensors_write(path, &t, 1, reason), 0);
    file = fopen(path, "rb");
    assert_int_equal(fread(&length, sizeof length, 1, file), 1);
    assert_int_equal(length, padded);
    assert_int_equal(fread(text, 1, padded, file), padded);
    assert_memory_equal(text, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < padded; i++) assert_int_equal(text[i], ' ');
    assert_int_equal(fread(text, 1, sizeof text, file), 24);
    assert_memory_equal(text, numbers, 24);
    fclose(file);
}

/* A disk that is full after 4 KiB: the file that was there is whole, nothing else is. */
static void test_failed_write_keeps_the_old_file(void **unused)
{
    static char large[1 << 16];
    char reason[SAFETENSORS_REASON] = "", part[80];
    struct rlimit before, little = {4096, RLIM_INFINITY};
    safetensors_tensor two[2];
    safetensors_file file;
    (void)unused;
    fill_two(two);
    assert_int_equal(safetensors_write(path, two, 2, reason), 0);
    two[0] = (safetensors_tensor){.name = "t", .dtype = "U8", .rank = 1, .shape = {sizeof large},
                                  .data = large, .bytes = sizeof large};
    getrlimit(RLIMIT_FSIZE, &before);
    little.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &little);
    int code = safetensors_write(path, two, 1, reason);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(code, -1);
    assert_non_null(strstr(reason, path));
    snprintf(part, sizeof part, "%s.part", path);
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(safetensors_read(path, &file, reason), 0);
    assert_int_equal(file.count, 2);
    safetensors_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_lengths),
        cmocka_unit_test(test_wrong_spans),
        cmocka_unit_test(test_wrong_cover),
        cmocka_unit_test(test_wrong_json),
        cmocka_unit_test(test_unusual_files_are_read),
        cmocka_unit_test(test_more_unusual_files),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_failed_write_keeps_the_old_file),
    };
    return cmocka_run_group_tests_name("safetensors", tests, make_folder, remove_folder);
}
