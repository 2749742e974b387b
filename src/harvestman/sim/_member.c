/* Puts a gzip member together: the hot twin of member_python in fragments.py, which defines the result and says what a
 * seal is. tests/sim/test_web.py holds them equal.
 *
 * The shelf is all deflated pieces one after the other, the table says where each begins, how long it is there and how
 * long when inflated. So a page touches little memory: the server wakes for single requests and finds its caches cold.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define STORED_HEAD 5
#define SEAL 20
#define WIDTH 12 /* the bytes of a seal that are free, between "<!--" and "-->\n" */

typedef struct {
    uint32_t at, deflated, plain;
} Entry;

static const unsigned char header[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
static uint32_t crc_of[4][256]; /* [k][b]: of the byte b and k zeros */

static void fill_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
        crc_of[0][byte] = crc;
    }
    for (int k = 1; k < 4; k++)
        for (int byte = 0; byte < 256; byte++)
            crc_of[k][byte] = crc_of[k - 1][byte] >> 8 ^ crc_of[0][crc_of[k - 1][byte] & 255];
}

static uint32_t crc32_of(const unsigned char *p, Py_ssize_t size)
{
    uint32_t crc = 0xFFFFFFFF;
    for (; size >= 4; size -= 4, p += 4) {
        crc ^= p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
        crc = crc_of[3][crc & 255] ^ crc_of[2][crc >> 8 & 255] ^ crc_of[1][crc >> 16 & 255] ^ crc_of[0][crc >> 24];
    }
    for (; size; size--)
        crc = crc >> 8 ^ crc_of[0][(crc ^ *p++) & 255];
    return ~crc;
}

static unsigned char *put(unsigned char *to, const void *from, size_t size)
{
    memcpy(to, from, size);
    return to + size;
}

static unsigned char *put_number(unsigned char *to, uint32_t value, int bytes)
{
    for (; bytes; bytes--, value >>= 8)
        *to++ = value & 255;
    return to;
}

/* The text of a page's own, stored, and the seal that undoes its crc32. */
static unsigned char *put_own(unsigned char *to, const unsigned char *text, Py_ssize_t size, const unsigned char *seals)
{
    uint32_t crc = crc32_of(text, size), whole = (uint32_t)size + SEAL;
    *to++ = 0;
    to = put(put_number(put_number(to, whole, 2), ~whole, 2), text, size);
    to = put(to, "<!--", 4);
    for (int at = 0; at < WIDTH; at++) {
        *to = 0;
        for (int byte = 0; byte < 4; byte++)
            *to ^= seals[(byte * 256 + (crc >> 8 * byte & 255)) * WIDTH + at];
        to++;
    }
    return put(to, "-->\n", 4);
}

/* One of the parts: its own bytes, or the number of a piece on the shelf. */
typedef struct {
    const unsigned char *text; /* NULL: a piece */
    Py_ssize_t size;
    Entry piece;
} Part;

static int read_part(PyObject *object, PyObject *table, Part *part)
{
    if (PyBytes_Check(object)) {
        part->text = (const unsigned char *)PyBytes_AsString(object);
        part->size = PyBytes_Size(object);
        if (part->size + SEAL <= 0xFFFF)
            return 0;
        PyErr_SetString(PyExc_ValueError, "too long to be stored");
        return -1;
    }
    part->text = NULL;
    Py_ssize_t number = PyLong_AsSsize_t(object);
    if (number >= 0 && number < PyByteArray_Size(table) / (Py_ssize_t)sizeof(Entry)) {
        memcpy(&part->piece, PyByteArray_AsString(table) + number * sizeof(Entry), sizeof(Entry));
        return 0;
    }
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_IndexError, "no such piece");
    return -1;
}

/* How long the whole will be; 0 on error. `plain` is how long when inflated. */
static Py_ssize_t measure(PyObject *table, PyObject *parts, uint32_t *plain)
{
    Py_ssize_t size = sizeof(header) + 4;
    for (Py_ssize_t at = 0; at < PyList_Size(parts); at++) {
        Part part;
        if (read_part(PyList_GetItem(parts, at), table, &part) < 0)
            return 0;
        size += part.text ? STORED_HEAD + part.size + SEAL : (Py_ssize_t)part.piece.deflated;
        *plain += part.text ? (uint32_t)part.size + SEAL : part.piece.plain;
    }
    return size;
}

static PyObject *member(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *seals, *shelf, *table, *parts, *end;
    unsigned int plain;
    if (!PyArg_ParseTuple(args, "SYYO!SI", &seals, &shelf, &table, &PyList_Type, &parts, &end, &plain))
        return NULL;
    uint32_t inflated = plain;
    Py_ssize_t size = measure(table, parts, &inflated);
    PyObject *whole = size ? PyBytes_FromStringAndSize(NULL, size + PyBytes_Size(end)) : NULL;
    if (!whole)
        return NULL;
    const unsigned char *undoing = (const unsigned char *)PyBytes_AsString(seals);
    unsigned char *to = put((unsigned char *)PyBytes_AsString(whole), header, sizeof(header));
    for (Py_ssize_t at = 0; at < PyList_Size(parts); at++) {
        Part part;
        read_part(PyList_GetItem(parts, at), table, &part); /* cannot fail where `measure` did not */
        to = part.text ? put_own(to, part.text, part.size, undoing)
                       : put(to, PyByteArray_AsString(shelf) + part.piece.at, part.piece.deflated);
    }
    put_number(put(to, PyBytes_AsString(end), PyBytes_Size(end)), inflated, 4);
    return whole;
}

static PyMethodDef methods[] = {
    {"member", member, METH_VARARGS, "member(seals, shelf, table, parts, end, size) -> bytes"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_member", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__member(void)
{
    fill_tables();
    return PyModuleDef_Init(&module);
}
