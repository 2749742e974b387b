/* The band table of `near.py`, which holds the definition: tests hold them equal.
 *
 * A look-up goes through 4 x 32 buckets of a dozen fingerprints each: bench/near_duplicates.py has the figures. All buckets of
 * a band are asked for before the first is read, so that the memory works on them side by side.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define BANDS 4
#define VALUES 65536
#define HEAD 2  /* how many entries a bucket has, and which is overwritten next */
#define ENTRY 6 /* a fingerprint without the band that the bucket is about */
#define MOST_HITS 8
#define LINE 64

typedef struct {
    unsigned char *bytes;
    int room; /* entries in a bucket */
    size_t stride;
} Table;

typedef struct {
    uint64_t print;
    int distance;
} Hit;

static inline uint64_t turned(uint64_t value, int by) /* to the right */
{
    return by ? value >> by | value << (64 - by) : value;
}

static inline unsigned char *bucket(const Table *table, int band, uint64_t value)
{
    return table->bytes + ((size_t)band * VALUES + value) * table->stride;
}

static inline uint64_t read_entry(const unsigned char *place)
{
    uint32_t low;
    uint16_t high;
    memcpy(&low, place, 4);
    memcpy(&high, place + 4, 2);
    return low | (uint64_t)high << 32;
}

static inline void write_entry(unsigned char *place, uint64_t entry)
{
    uint32_t low = (uint32_t)entry;
    uint16_t high = (uint16_t)(entry >> 32);
    memcpy(place, &low, 4);
    memcpy(place + 4, &high, 2);
}

/* The number of bits set. The compiler's own calls a function where the processor may lack the instruction. */
static inline int bits(uint64_t value)
{
    value -= value >> 1 & UINT64_C(0x5555555555555555);
    value = (value & UINT64_C(0x3333333333333333)) + (value >> 2 & UINT64_C(0x3333333333333333));
    value = (value + (value >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    return (int)(value * UINT64_C(0x0101010101010101) >> 56);
}

static inline int nearer(Hit one, Hit other)
{
    return one.distance < other.distance || (one.distance == other.distance && one.print < other.print);
}

/* Keeps the nearest, in order. */
static int take(Hit *hits, int found, Hit hit)
{
    for (int k = 0; k < found; k++)
        if (hits[k].print == hit.print)
            return found;
    if (found == MOST_HITS && !nearer(hit, hits[found - 1]))
        return found;
    int at = found < MOST_HITS ? found++ : found - 1;
    for (; at > 0 && nearer(hit, hits[at - 1]); at--)
        hits[at] = hits[at - 1];
    hits[at] = hit;
    return found;
}

static int search(const Table *table, uint64_t print, uint64_t weak, int most, Hit *hits)
{
    int found = 0;
    for (int band = 0; band < BANDS; band++) {
        uint64_t seen = turned(print, 16 * band), doubt = turned(weak, 16 * band);
        uint64_t rest = seen >> 16, firm = ~doubt >> 16, loose = doubt & 0xFFFF, part = 0;
        do {
            const unsigned char *place = bucket(table, band, (seen & 0xFFFF) ^ part);
            for (size_t at = 0; at < table->stride; at += LINE)
                __builtin_prefetch(place + at);
            part = (part - loose) & loose;
        } while (part);
        do {
            uint64_t value = (seen & 0xFFFF) ^ part;
            const unsigned char *place = bucket(table, band, value);
            for (int k = 0; k < place[0]; k++) {
                uint64_t entry = read_entry(place + HEAD + ENTRY * k);
                int distance = bits((entry ^ rest) & firm);
                if (distance <= most)
                    found = take(hits, found, (Hit){turned(entry << 16 | value, (64 - 16 * band) % 64), distance});
            }
            part = (part - loose) & loose;
        } while (part);
    }
    return found;
}

static int holds(const unsigned char *place, uint64_t entry)
{
    for (int k = 0; k < place[0]; k++)
        if (read_entry(place + HEAD + ENTRY * k) == entry)
            return 1;
    return 0;
}

/* Returns whether an older fingerprint had to go from the first band: `gone`. */
static int insert(const Table *table, uint64_t print, uint64_t *gone)
{
    int evicted = 0;
    for (int band = 0; band < BANDS; band++) {
        uint64_t seen = turned(print, 16 * band);
        unsigned char *place = bucket(table, band, seen & 0xFFFF);
        if (holds(place, seen >> 16))
            continue;
        int full = place[0] == table->room;
        unsigned char *entry = place + HEAD + ENTRY * (full ? place[1] : place[0]);
        if (full && band == 0) {
            *gone = read_entry(entry) << 16 | (seen & 0xFFFF);
            evicted = 1;
        }
        if (full)
            place[1] = (unsigned char)((place[1] + 1) % table->room);
        else
            place[0]++;
        write_entry(entry, seen >> 16);
    }
    return evicted;
}

static int open_table(PyObject *object, int room, int flags, Py_buffer *buffer, Table *table)
{
    if (PyObject_GetBuffer(object, buffer, flags) < 0)
        return 0;
    *table = (Table){buffer->buf, room, HEAD + (size_t)ENTRY * (room > 0 ? room : 0)};
    if (room >= 1 && room <= 255 && buffer->len >= (Py_ssize_t)(BANDS * VALUES * table->stride))
        return 1;
    PyBuffer_Release(buffer);
    PyErr_SetString(PyExc_ValueError, "the table does not have the size that its buckets need");
    return 0;
}

static PyObject *add(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object;
    int room;
    unsigned long long print;
    Py_buffer buffer;
    Table table;
    if (!PyArg_ParseTuple(args, "OiK", &object, &room, &print) || !open_table(object, room, PyBUF_WRITABLE, &buffer, &table))
        return NULL;
    uint64_t gone = 0;
    int evicted = insert(&table, print, &gone);
    PyBuffer_Release(&buffer);
    if (evicted)
        return PyLong_FromUnsignedLongLong(gone);
    Py_RETURN_NONE;
}

static PyObject *near(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object;
    int room, most;
    unsigned long long print, weak;
    Py_buffer buffer;
    Table table;
    if (!PyArg_ParseTuple(args, "OiKKi", &object, &room, &print, &weak, &most) ||
        !open_table(object, room, PyBUF_SIMPLE, &buffer, &table))
        return NULL;
    Hit hits[MOST_HITS];
    int found = search(&table, print, weak, most, hits);
    PyBuffer_Release(&buffer);
    PyObject *list = PyList_New(found);
    for (int k = 0; list && k < found; k++) {
        PyObject *pair = Py_BuildValue("(iK)", hits[k].distance, (unsigned long long)hits[k].print);
        if (!pair || PyList_SetItem(list, k, pair) < 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

static PyMethodDef methods[] = {
    {"add", add, METH_VARARGS, "add(table, room, print) -> int | None"},
    {"near", near, METH_VARARGS, "near(table, room, print, weak, most) -> list[tuple[int, int]]"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_near", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__near(void)
{
    return PyModuleDef_Init(&module);
}
