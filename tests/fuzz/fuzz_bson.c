/* Whatever bytes go in: a text comes out exactly where the bytes are BSON, and it is JSON in UTF-8;
 * the text for the inside of a string is that text escaped. The first byte chooses the style. */
#include <cdcd/bson.h>
#include <cdcd/json.h>

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

static bool write_json(struct cdcd_arena *a, struct cdcd_slice doc,
                       const struct cdcd_bson_style *style, struct cdcd_slice *text)
{
    struct cdcd_writer w;
    const char *why = NULL;
    cdcd_writer_begin(&w, a);
    if (style->quoted)
        cdcd_writer_char(&w, '"');
    bool ok = cdcd_bson_json(&w, doc, style, &why);
    if (style->quoted)
        cdcd_writer_char(&w, '"');
    *text = cdcd_writer_end(&w);
    check(ok == !why);
    return ok;
}

/* The walk over all levels ends well exactly where the document is valid; depth aside. */
static bool walk(struct cdcd_slice doc, int depth)
{
    struct cdcd_bson_iter it;
    struct cdcd_bson_element e;
    int got;
    if (depth > CDCD_BSON_DEPTH || !cdcd_bson_iter_init(&it, doc))
        return false;
    while ((got = cdcd_bson_iter_next(&it, &e)) == 1) {
        check(e.name.ptr >= doc.ptr && e.value.ptr + e.value.len < doc.ptr + doc.len);
        if ((e.type == CDCD_BSON_DOCUMENT || e.type == CDCD_BSON_ARRAY) &&
            !walk(e.value, depth + 1))
            return false;
    }
    return got == 0;
}

/* The length is made right, or hardly any input would be a document. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdcd_arena a;
    struct cdcd_slice text, inside;
    const char *why = NULL;
    if (size < 6)
        return 0;
    struct cdcd_bson_style style = {
        .form = (enum cdcd_bson_form)(data[0] & 3),
        .spaced = data[0] & 4,
    };
    uint32_t len = (uint32_t)size - 1;
    char *copy = malloc(len); /* exact */
    memcpy(copy, data + 1, len);
    if (!(data[0] & 8))
        memcpy(copy, &len, 4);
    struct cdcd_slice doc = {copy, len};
    cdcd_arena_init(&a, 64);

    bool valid = cdcd_bson_valid(doc, &why);
    check(valid == !why);
    check(write_json(&a, doc, &style, &text) == valid);
    if (valid) {
        json_t *read = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, NULL);
        check(json_is_object(read));
        json_decref(read);
        struct cdcd_writer w;
        cdcd_writer_begin(&w, &a);
        cdcd_json_string(&w, text.ptr, text.len);
        struct cdcd_slice want = cdcd_writer_end(&w);
        style.quoted = true;
        check(write_json(&a, doc, &style, &inside));
        check(cdcd_slice_eq(inside, want));
        check(walk(doc, 1));
    }
    cdcd_arena_free(&a);
    free(copy);
    return 0;
}
