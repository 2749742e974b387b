/* SimHash of a text: the hot twin of simhash.py, which defines the result. tests/stages/test_simhash.py holds them equal.
 *
 * 64-bit arithmetic wraps; words are read from UTF-8 bytes, which CPython keeps ready for ASCII strings.
 * The 64 counters are bit-sliced: plane k holds bit k of every counter, so adding a hash is a ripple-carry over
 * whole words (two steps on average) instead of 64 additions.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define PRIME ((UINT64_C(1) << 61) - 1)
#define PLANES 40 /* 2^40 shingles: more than any string holds */

enum { GAP, PART, WHOLE }; /* a separator, a byte within a word, a character that is a word by itself */

typedef struct {
    uint64_t planes[PLANES];
    uint64_t count;
    uint64_t before, last; /* the two words before the current one, oldest first */
    uint64_t words;
} Sketch;

static uint64_t shingle(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t h = a * UINT64_C(0x9E3779B97F4A7C15) + b * UINT64_C(0xC2B2AE3D27D4EB4F) + c * UINT64_C(0xD6E8FEB86659FD93);
    h = (h ^ (h >> 32)) * UINT64_C(0xFF51AFD7ED558CCD);
    h = (h ^ (h >> 29)) * UINT64_C(0xC4CEB9FE1A85EC53);
    return h ^ (h >> 32);
}

static void count(Sketch *s, uint64_t hash)
{
    uint64_t carry = hash;
    for (int k = 0; carry && k < PLANES; k++) {
        uint64_t both = s->planes[k] & carry;
        s->planes[k] ^= carry;
        carry = both;
    }
    s->count++;
}

static void add_word(Sketch *s, uint64_t word)
{
    word = word >= PRIME ? word - PRIME : word;
    if (s->words >= 2)
        count(s, shingle(s->before, s->last, word));
    s->before = s->last;
    s->last = word;
    s->words++;
}

/* What the bytes at p are, and how many belong together. `p` has at least one byte, all of it well formed. */
static int classify(const unsigned char *p, const unsigned char *end, int *length)
{
    unsigned char c = *p;
    *length = 1;
    if (c < 0x80)
        return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ? PART : GAP;
    if (c == 0xC2 && end - p >= 2) {
        *length = 2;
        return GAP;
    }
    if (end - p < 3)
        return PART;
    if ((c == 0xE2 && (p[1] == 0x80 || p[1] == 0x81)) || (c == 0xE3 && p[1] == 0x80)) {
        *length = 3;
        return GAP;
    }
    if ((c >= 0xE3 && c <= 0xE9) || c == 0xEF || (c == 0xE0 && p[1] >= 0xB8 && p[1] <= 0xBB)) {
        *length = 3;
        return WHOLE;
    }
    return PART;
}

/* value * 256 + byte, modulo 2^61 - 1 (not fully reduced: add_word does that once). */
static inline uint64_t extend(uint64_t value, unsigned char byte)
{
    uint64_t low = ((value << 8) & PRIME) + (value >> 53) + byte;
    return (low & PRIME) + (low >> 61);
}

static uint64_t character(const unsigned char *p)
{
    return extend(extend(extend(0, p[0]), p[1]), p[2]);
}

static void read_words(Sketch *s, const unsigned char *p, const unsigned char *end)
{
    uint64_t word = 0;
    int inside = 0, length;
    while (p < end) {
        int kind = classify(p, end, &length);
        if (kind == PART) {
            word = extend(word, *p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p);
            inside = 1;
        } else {
            if (inside)
                add_word(s, word);
            if (kind == WHOLE)
                add_word(s, character(p));
            word = 0;
            inside = 0;
        }
        p += length;
    }
    if (inside)
        add_word(s, word);
}

static uint64_t majority(const Sketch *s)
{
    uint64_t result = 0;
    for (int bit = 0; bit < 64; bit++) {
        uint64_t ones = 0;
        for (int k = 0; k < PLANES; k++)
            ones += ((s->planes[k] >> bit) & 1) << k;
        if (2 * ones > s->count)
            result |= UINT64_C(1) << bit;
    }
    return result;
}

static uint64_t sketch(const char *bytes, Py_ssize_t size)
{
    Sketch s = {{0}, 0, 0, 0, 0};
    read_words(&s, (const unsigned char *)bytes, (const unsigned char *)bytes + size);
    if (s.words == 0)
        return 0;
    if (s.words < 3) /* too short for a shingle: the words themselves, zero in front */
        count(&s, shingle(0, s.before, s.last));
    return majority(&s);
}

static PyObject *simhash(PyObject *module, PyObject *text)
{
    (void)module;
    Py_ssize_t size;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (bytes)
        return PyLong_FromUnsignedLongLong(sketch(bytes, size));
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        return NULL;
    PyErr_Clear(); /* lone surrogates: take them as they are */
    PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    char *buffer;
    if (!encoded || PyBytes_AsStringAndSize(encoded, &buffer, &size) < 0) {
        Py_XDECREF(encoded);
        return NULL;
    }
    uint64_t result = sketch(buffer, size);
    Py_DECREF(encoded);
    return PyLong_FromUnsignedLongLong(result);
}

static PyMethodDef methods[] = {
    {"simhash", simhash, METH_O, "simhash(text: str) -> int"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_simhash", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__simhash(void)
{
    return PyModuleDef_Init(&module);
}
