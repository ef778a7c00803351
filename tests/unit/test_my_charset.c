/*
 * Charsets of the MySQL plugin: collations by id and name, texts to UTF-8 as the servers convert
 * them.
 */
#include "value.h"

#include <pthread.h>
#include <setjmp.h>

#include <cmocka.h>

#include "my_hex.h"

static void test_collations(void **state)
{
    static const struct {
        uint32_t id;
        const char *charset, *name;
    } list[] = {
        {8, "latin1", "latin1_swedish_ci"},
        {11, "ascii", "ascii_general_ci"},
        {33, "utf8mb3", "utf8mb3_general_ci"},
        {33, "utf8mb3", "utf8_general_ci"},
        {45, "utf8mb4", "utf8mb4_general_ci"},
        {63, "binary", "binary"},
        {255, "utf8mb4", "utf8mb4_0900_ai_ci"},
        {323, "utf8mb4", "utf8mb4_mn_cyrl_0900_as_cs"},
        {248, "gb18030", "gb18030_chinese_ci"},
        {608, "utf8mb4", "utf8mb4_croatian_ci"},
        {1032, "latin1", "latin1_swedish_nopad_ci"},
        {2048, "utf8mb3", "utf8mb3_uca1400_ai_ci"},
        {2304, "utf8mb4", "utf8mb4_uca1400_ai_ci"},
        {2311, "utf8mb4", "utf8mb4_uca1400_nopad_as_cs"},
        {2560 + 8 * 24 + 1, "ucs2", "ucs2_uca1400_croatian_ai_cs"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        assert_string_equal(my_charset_name(list[i].id), list[i].charset);
        if (list[i].id != 608) /* which MySQL calls by another id too */
            assert_int_equal(my_collation_by_name(list[i].name), list[i].id);
    }
    assert_null(my_charset_name(0));
    assert_null(my_charset_name(7000));
    assert_int_equal(my_collation_by_name("no_such_ci"), 0);
    assert_int_equal(my_collation_by_name("utf8mb4_uca1400_nothing_ai_ci"), 0);
    assert_int_equal(my_charset_default_collation("utf8mb4"), 255);
    assert_int_equal(my_charset_default_collation("LATIN1"), 8);
    assert_int_equal(my_charset_default_collation("nothing"), 0);
}

static void test_nothing_to_do(void **state)
{
    static const uint32_t utf8[] = {11, 33, 45, 255, 2304};
    const struct my_charset *c;
    struct cdcd_error err = {0};

    (void)state;
    for (size_t i = 0; i < sizeof utf8 / sizeof *utf8; i++) {
        assert_int_equal(my_charset_by_collation(utf8[i], &c, &err), CDCD_OK);
        assert_null(c);
    }
    assert_int_equal(my_charset_by_collation(63, &c, &err), CDCD_ERROR);
    assert_int_equal(my_charset_by_collation(7000, &c, &err), CDCD_ERROR);
    assert_int_equal(err.class, CDCD_ERR_CONFIG);
    assert_non_null(strstr(err.text, "7000"));
    assert_int_equal(my_charset_by_name("klingon", &c, &err), CDCD_ERROR);
    assert_non_null(strstr(err.text, "klingon"));
}

struct sample {
    const char *charset, *hex, *utf8; /* NULL: no text of the charset */
};

static const struct sample samples[] = {
    {"latin1", "e980ff8190", "é€ÿ\xc2\x81\xc2\x90"},
    {"latin2", "b1e8", "ąč"},
    {"cp1250", "9a9e", "šž"},
    {"cp1251", "c4e0", "Да"},
    {"cp1251", "98", NULL},
    {"koi8r", "f2d5d3", "Рус"},
    {"cp866", "8f90", "ПР"},
    {"cp850", "8284", "éä"},
    {"greek", "e1e2", "αβ"},
    {"greek", "ff", NULL},
    {"hebrew", "e0f9", "אש"},
    {"tis620", "a1a2", "กข"},
    {"macroman", "8aca", "ä\xc2\xa0"},
    {"swe7", "417b7c7d", "Aäöå"},
    {"swe7", "80", NULL},
    {"dec8", "c4", "Ä"},
    {"hp8", "d8", "Ä"},
    {"armscii8", "b2b3", "Աա"},
    {"geostd8", "c0c1", "აბ"},
    {"keybcs2", "80", "Č"},
    {"ucs2", "00fc20ac0416", "ü€Ж"},
    {"ucs2", "d83d", NULL},
    {"ucs2", "00", NULL},
    {"utf16", "d83ddca500e9", "💥é"},
    {"utf16", "d83d", NULL},
    {"utf16", "d83d0041", NULL},
    {"utf16", "dca5", NULL},
    {"utf16le", "3dd8a5dce900", "💥é"},
    {"utf32", "0001f4a500000041", "💥A"},
    {"utf32", "00110000", NULL},
    {"utf32", "000041", NULL},
    {"gbk", "cafdbedd8140815c", "数据丂乗"},
    {"gbk", "ca", NULL},
    {"gbk", "80", NULL},
    {"gb2312", "cafdbedd", "数据"},
    {"gb18030", "cafd8130813095328236fe51", "数\xc2\x80𠀀\xee\xa0\x96"},
    {"gb18030", "823590378431823682359134", "龴︐龻"},
    {"gb18030", "813081", NULL},
    {"big5", "a4a4a4e5c6e7c7e9", "中文ゃ①"},
    {"big5", "a15a", "\xef\xbf\xbd"},
    {"big5", "c7fd", NULL},
    {"sjis", "93fa967b5c7e b1 815f8160", "日本\\~ｱ\\〜"},
    {"cp932", "93fa967b5c b1 815f8160 8740", "日本\\ｱ＼～①"},
    {"ujis", "c6fccbdc8eb1 8fb0a1 a1c1", "日本ｱ丂〜"},
    {"eucjpms", "c6fccbdc a1c1 ada1", "日本～①"},
    {"ujis", "8fb0", NULL},
    {"euckr", "b0a1b0a28141", "가각갂"},
    {"euckr", "8f", NULL},
};

static void check(const struct sample *s, struct cdcd_arena *a)
{
    const struct my_charset *c;
    struct cdcd_error err = {0};
    struct cdcd_slice out;
    size_t n;
    uint8_t *bytes = from_hex(s->hex, &n);

    assert_int_equal(my_charset_by_name(s->charset, &c, &err), CDCD_OK);
    assert_non_null(c);
    enum cdcd_rc rc = my_charset_decode(c, (char *)bytes, n, a, &out, &err);
    if (s->utf8) {
        if (rc != CDCD_OK)
            fail_msg("%s %s: %s", s->charset, s->hex, err.text);
        if (out.len != strlen(s->utf8) || memcmp(out.ptr, s->utf8, out.len) != 0)
            fail_msg("%s %s: \"%.*s\", not \"%s\"", s->charset, s->hex, (int)out.len, out.ptr,
                     s->utf8);
    } else {
        if (rc != CDCD_ERROR)
            fail_msg("%s %s was taken", s->charset, s->hex);
        assert_int_equal(err.class, CDCD_ERR_DATA);
        assert_non_null(strstr(err.text, s->charset));
    }
    free(bytes);
}

static void test_texts(void **state)
{
    struct cdcd_arena a;

    (void)state;
    cdcd_arena_init(&a, 4096);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        check(&samples[i], &a);
    cdcd_arena_free(&a);
}

static void test_long_text(void **state)
{
    enum { N = 70000 };
    const struct my_charset *c;
    struct cdcd_error err = {0};
    struct cdcd_arena a;
    struct cdcd_slice out;
    char *text = malloc(N);

    (void)state;
    cdcd_arena_init(&a, 4096);
    memset(text, '\xe9', N);
    assert_int_equal(my_charset_by_name("latin1", &c, &err), CDCD_OK);
    assert_int_equal(my_charset_decode(c, text, N, &a, &out, &err), CDCD_OK);
    assert_int_equal(out.len, 2 * N);
    for (size_t i = 0; i < out.len; i += 2)
        assert_memory_equal(out.ptr + i, "é", 2);
    assert_int_equal(my_charset_decode(c, text, 0, &a, &out, &err), CDCD_OK);
    assert_int_equal(out.len, 0);
    cdcd_arena_free(&a);
    free(text);
}

static void *all_charsets(void *arg)
{
    struct cdcd_arena a;

    (void)arg;
    cdcd_arena_init(&a, 4096);
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        if (samples[i].utf8)
            check(&samples[i], &a);
    }
    cdcd_arena_free(&a);
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, all_charsets, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads), /* first, while no table is made */
        cmocka_unit_test(test_collations), cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_texts),      cmocka_unit_test(test_long_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
