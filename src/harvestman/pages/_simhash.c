/* SimHash of a text: the hot twin of simhash.py, which defines the result. tests/stages/test_simhash.py holds them equal.
 *
 * 64-bit arithmetic wraps; words are read from UTF-8 bytes, which CPython keeps ready for ASCII strings.
 * The 64 counters are bit-sliced: plane k holds bit k of every counter, so adding a hash is a few operations on whole
 * words instead of 64 additions.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#define PRIME ((UINT64_C(1) << 61) - 1)
#define PLANES 40 /* 2^40 shingles: more than any string holds */
#define BATCH 8

typedef struct {
    uint64_t planes[PLANES];
    uint64_t waiting[BATCH]; /* hashes not yet in the planes */
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

/* Adds a and b to the lanes of *sum and returns the carries. */
static inline uint64_t add_two(uint64_t *sum, uint64_t a, uint64_t b)
{
    uint64_t either = *sum ^ a;
    uint64_t carry = (*sum & a) | (either & b);
    *sum = either ^ b;
    return carry;
}

/* Eight hashes at a time need no branch until the carry out of the third plane: a ripple for each would be mispredicted. */
static void add_batch(Sketch *s)
{
    uint64_t *p = s->planes, *w = s->waiting;
    uint64_t fours_a = add_two(p + 1, add_two(p, w[0], w[1]), add_two(p, w[2], w[3]));
    uint64_t fours_b = add_two(p + 1, add_two(p, w[4], w[5]), add_two(p, w[6], w[7]));
    uint64_t carry = add_two(p + 2, fours_a, fours_b);
    for (int k = 3; carry && k < PLANES; k++) {
        uint64_t both = p[k] & carry;
        p[k] ^= carry;
        carry = both;
    }
    for (int k = 0; k < BATCH; k++)
        w[k] = 0;
}

static inline void count(Sketch *s, uint64_t hash)
{
    s->waiting[s->count++ % BATCH] = hash;
    if (s->count % BATCH == 0)
        add_batch(s);
}

static inline void add_word(Sketch *s, uint64_t word)
{
    if (s->words >= 2)
        count(s, shingle(s->before, s->last, word));
    s->before = s->last;
    s->last = word;
    s->words++;
}

/* What a byte may begin: 0 a separator, 1 a character to look at closer, else the folded byte of a word. */
static unsigned char folded[256];

static void fill_table(void)
{
    for (int c = 0; c < 256; c++)
        folded[c] = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ? c : 0;
    for (int c = 'A'; c <= 'Z'; c++)
        folded[c] = c | 0x20;
    for (int c = 0xE3; c <= 0xE9; c++)
        folded[c] = 1;
    folded[0xC2] = folded[0xE0] = folded[0xE2] = folded[0xEF] = 1;
}

enum { GAP, PART, WHOLE }; /* a separator, the first byte of several in a word, a character that is a word by itself */

/* The kind of the well-formed character at p, which the table marked with 1. */
static int classify(const unsigned char *p)
{
    unsigned char c = p[0], next = p[1];
    if (c == 0xC2 || (c == 0xE2 && (next == 0x80 || next == 0x81)) || (c == 0xE3 && next == 0x80))
        return GAP;
    if (c == 0xE2 || (c == 0xE0 && (next < 0xB8 || next > 0xBB)))
        return PART;
    return WHOLE;
}

/* A word's bytes as one big-endian number modulo 2^61 - 1, gathered seven at a time. */
typedef struct {
    uint64_t value, bytes;
    int pending;
} Word;

static inline uint64_t reduce(uint64_t value)
{
    value = (value & PRIME) + (value >> 61);
    return value >= PRIME ? value - PRIME : value;
}

/* Multiplying by 2^k modulo 2^61 - 1 is rotating 61 bits. */
static inline void flush(Word *w)
{
    int k = 8 * w->pending;
    uint64_t turned = ((w->value << k) & PRIME) | (w->value >> (61 - k));
    w->value = reduce(turned + w->bytes);
    w->bytes = 0;
    w->pending = 0;
}

static inline void push(Word *w, unsigned char byte)
{
    w->bytes = w->bytes << 8 | byte;
    if (++w->pending == 7)
        flush(w);
}

static inline void end_word(Sketch *s, Word *w, int inside)
{
    if (!inside)
        return;
    if (w->value == 0) /* at most six bytes: already less than the prime */
        add_word(s, w->bytes);
    else {
        flush(w);
        add_word(s, w->value);
    }
    *w = (Word){0, 0, 0};
}

static void read_words(Sketch *s, const unsigned char *p, const unsigned char *end)
{
    Word word = {0, 0, 0};
    int inside = 0;
    while (p < end) {
        unsigned char c = folded[*p];
        if (c > 1 || (c == 1 && classify(p) == PART)) {
            push(&word, c > 1 ? c : *p);
            inside = 1;
            p++;
            continue;
        }
        end_word(s, &word, inside);
        inside = 0;
        if (c == 0)
            p++;
        else {
            if (classify(p) == WHOLE)
                add_word(s, (uint64_t)p[0] << 16 | p[1] << 8 | p[2]);
            p += *p == 0xC2 ? 2 : 3;
        }
    }
    end_word(s, &word, inside);
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
    Sketch s = {{0}, {0}, 0, 0, 0, 0};
    read_words(&s, (const unsigned char *)bytes, (const unsigned char *)bytes + size);
    if (s.words == 0)
        return 0;
    if (s.words < 3) /* too short for a shingle: the words themselves, zero in front */
        count(&s, shingle(0, s.before, s.last));
    add_batch(&s);
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
    fill_table();
    return PyModuleDef_Init(&module);
}
