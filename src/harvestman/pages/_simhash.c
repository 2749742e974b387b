/* SimHash of a text: the hot twin of simhash.py, which defines the result. tests/stages/test_simhash.py holds them equal.
 *
 * 64-bit arithmetic wraps; words are read from UTF-8 bytes, which CPython keeps ready for ASCII strings.
 * The 64 counters are bit-sliced: plane k holds bit k of every counter, so adding a hash is a few operations on whole
 * words instead of 64 additions. Where there is SSE2, words of plain letters and digits are measured 16 bytes at a time
 * (half the time for English); all others go the way that every machine knows.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define PRIME ((UINT64_C(1) << 61) - 1)
#define PLANES 40 /* 2^40 shingles: more than any string holds */
#define BATCH 8
#define LEVELS 4 /* a shingle of level k weighs 4^k: lines of fewer than 8 words, 16, 32, and longer ones */
#define LONG 32
#define BINS 32
#define WEAK 5 /* bits of each band of 16 that are named as the ones an edit would turn over first */

typedef struct {
    uint64_t planes[PLANES];
    uint64_t waiting[LEVELS][BATCH]; /* hashes not yet in the planes */
    uint64_t count[LEVELS];
    uint64_t line[LONG]; /* hashes of a line whose level is not known yet */
    uint64_t length;     /* words in that line ... */
    int held;            /* ... and how many hashes they made */
    uint64_t before, last; /* the two words before the current one, oldest first */
    uint64_t words;
    uint64_t least[BINS]; /* of the shingles of each bin the smallest hash, divided by the weight; ~0 for none */
    unsigned char sample[BINS];
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
static void add_batch(Sketch *s, int level)
{
    uint64_t *p = s->planes + 2 * level, *w = s->waiting[level];
    uint64_t fours_a = add_two(p + 1, add_two(p, w[0], w[1]), add_two(p, w[2], w[3]));
    uint64_t fours_b = add_two(p + 1, add_two(p, w[4], w[5]), add_two(p, w[6], w[7]));
    uint64_t carry = add_two(p + 2, fours_a, fours_b);
    for (int k = 3; carry && k < PLANES - 2 * level; k++) {
        uint64_t both = p[k] & carry;
        p[k] ^= carry;
        carry = both;
    }
    for (int k = 0; k < BATCH; k++)
        w[k] = 0;
}

static inline void sample(Sketch *s, uint64_t hash, uint64_t value)
{
    s->least[hash % BINS] = value;
    s->sample[hash % BINS] = (unsigned char)(hash >> 5 & 0xFF ? hash >> 5 & 0xFF : 1);
}

static inline void count(Sketch *s, uint64_t hash, int level)
{
    uint64_t value = hash >> (5 + 2 * level);
    if (value < s->least[hash % BINS]) /* seldom, after the first few */
        sample(s, hash, value);
    s->waiting[level][s->count[level]++ % BATCH] = hash;
    if (s->count[level] % BATCH == 0)
        add_batch(s, level);
}

static inline void count_all(Sketch *s, int level)
{
    for (int k = 0; k < s->held; k++)
        count(s, s->line[k], level);
}

/* The level is written out, so that the compiler can work with it. */
static void add_line(Sketch *s)
{
    if (s->length < 8)
        count_all(s, 0);
    else if (s->length < 16)
        count_all(s, 1);
    else if (s->length < LONG)
        count_all(s, 2);
    else
        count_all(s, 3);
    s->held = 0;
}

static inline void end_line(Sketch *s)
{
    add_line(s);
    s->length = 0;
}

static inline void add_word(Sketch *s, uint64_t word)
{
    s->length++;
    if (s->words >= 2) {
        uint64_t hash = shingle(s->before, s->last, word);
        if (s->length > LONG)
            count(s, hash, LEVELS - 1);
        else {
            s->line[s->held++] = hash;
            if (s->length == LONG)
                add_line(s);
        }
    }
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

#ifdef __SSE2__
/* How many letters and digits of ASCII stand at p, of 16 bytes; 0 when it is for the slow way to say. */
static inline int plain_word(const unsigned char *p)
{
    __m128i x = _mm_loadu_si128((const __m128i *)p), low = _mm_or_si128(x, _mm_set1_epi8(0x20));
    __m128i letter = _mm_and_si128(_mm_cmpgt_epi8(low, _mm_set1_epi8('a' - 1)), _mm_cmplt_epi8(low, _mm_set1_epi8('z' + 1)));
    __m128i digit = _mm_and_si128(_mm_cmpgt_epi8(x, _mm_set1_epi8('0' - 1)), _mm_cmplt_epi8(x, _mm_set1_epi8('9' + 1)));
    unsigned others = ~_mm_movemask_epi8(_mm_or_si128(letter, digit)) & 0xFFFF;
    if (!others)
        return 0;
    int length = __builtin_ctz(others);
    return p[length] < 0x80 ? length : 0;
}

/* Up to seven of them as a number: folding sets a bit that digits have anyway. Eight bytes at p can be read. */
static inline uint64_t plain_bytes(const unsigned char *p, int count)
{
    uint64_t bytes;
    memcpy(&bytes, p, 8);
    return (__builtin_bswap64(bytes) | UINT64_C(0x2020202020202020)) >> (64 - 8 * count);
}

static inline uint64_t plain_value(const unsigned char *p, int length)
{
    Word w = {0, plain_bytes(p, length < 7 ? length : 7), 0};
    if (length <= 7)
        return w.bytes;
    w.value = w.bytes;
    for (int at = 7; at < length; at += 7) {
        w.pending = length - at < 7 ? length - at : 7;
        w.bytes = plain_bytes(p + at, w.pending);
        flush(&w);
    }
    return w.value;
}
#endif

static void read_words(Sketch *s, const unsigned char *p, const unsigned char *end)
{
    Word word = {0, 0, 0};
    int inside = 0;
    while (p < end) {
        unsigned char c = folded[*p];
#ifdef __SSE2__
        if (c > 1 && !inside && end - p >= 24) {
            int length = plain_word(p);
            if (length) {
                add_word(s, plain_value(p, length));
                p += length;
                continue;
            }
        }
#endif
        if (c > 1 || (c == 1 && classify(p) == PART)) {
            push(&word, c > 1 ? c : *p);
            inside = 1;
            p++;
            continue;
        }
        end_word(s, &word, inside);
        inside = 0;
        if (c == 0) {
            if (*p == '\n')
                end_line(s);
            p++;
        }
        else {
            if (classify(p) == WHOLE)
                add_word(s, (uint64_t)p[0] << 16 | p[1] << 8 | p[2]);
            p += *p == 0xC2 ? 2 : 3;
        }
    }
    end_word(s, &word, inside);
    end_line(s);
}

typedef struct {
    uint64_t hash, weak;
    unsigned char sample[BINS];
} Print;

/* The bits of one band with the narrowest majorities; of equal ones the lowest. */
static uint64_t weakest(const uint64_t *margins)
{
    uint64_t chosen = 0;
    for (int turn = 0; turn < WEAK; turn++) {
        int best = -1;
        for (int bit = 0; bit < 16; bit++)
            if (!(chosen >> bit & 1) && (best < 0 || margins[bit] < margins[best]))
                best = bit;
        chosen |= UINT64_C(1) << best;
    }
    return chosen;
}

static Print majority(const Sketch *s)
{
    uint64_t total = 0, margins[64];
    Print print = {0, 0, {0}};
    for (int level = 0; level < LEVELS; level++)
        total += s->count[level] << 2 * level;
    for (int bit = 0; bit < 64; bit++) {
        uint64_t twice = 0;
        for (int k = 0; k < PLANES - 1; k++)
            twice += ((s->planes[k] >> bit) & 1) << (k + 1);
        if (twice > total)
            print.hash |= UINT64_C(1) << bit;
        margins[bit] = twice > total ? twice - total : total - twice;
    }
    for (int band = 0; band < 64; band += 16)
        print.weak |= weakest(margins + band) << band;
    for (int bin = 0; bin < BINS; bin++)
        print.sample[bin] = s->sample[bin];
    return print;
}

static Print sketch(const char *bytes, Py_ssize_t size)
{
    Sketch s = {{0}, {{0}}, {0}, {0}, 0, 0, 0, 0, 0, {0}, {0}};
    for (int bin = 0; bin < BINS; bin++)
        s.least[bin] = ~UINT64_C(0);
    read_words(&s, (const unsigned char *)bytes, (const unsigned char *)bytes + size);
    if (s.words == 0)
        return (Print){0, 0, {0}};
    if (s.words < 3) /* too short for a shingle: the words themselves, zero in front */
        count(&s, shingle(0, s.before, s.last), 0);
    for (int level = 0; level < LEVELS; level++)
        add_batch(&s, level);
    return majority(&s);
}

/* False with an exception set. */
static int sketch_of(PyObject *text, Print *print)
{
    Py_ssize_t size;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (bytes) {
        *print = sketch(bytes, size);
        return 1;
    }
    if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        return 0;
    PyErr_Clear(); /* lone surrogates: take them as they are */
    PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
    char *buffer;
    int fine = encoded && PyBytes_AsStringAndSize(encoded, &buffer, &size) == 0;
    if (fine)
        *print = sketch(buffer, size);
    Py_XDECREF(encoded);
    return fine;
}

static PyObject *simhash(PyObject *module, PyObject *text)
{
    (void)module;
    Print print;
    return sketch_of(text, &print) ? PyLong_FromUnsignedLongLong(print.hash) : NULL;
}

static PyObject *fingerprint(PyObject *module, PyObject *text)
{
    (void)module;
    Print print;
    return sketch_of(text, &print) ? Py_BuildValue("(KKy#)", print.hash, print.weak, print.sample, (Py_ssize_t)BINS) : NULL;
}

static PyMethodDef methods[] = {
    {"simhash", simhash, METH_O, "simhash(text: str) -> int"},
    {"fingerprint", fingerprint, METH_O, "fingerprint(text: str) -> tuple[int, int, bytes]"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_simhash", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__simhash(void)
{
    fill_table();
    return PyModuleDef_Init(&module);
}
