/* What a parser will meet, counted before it starts: the hot twin of survey_python in tree.py, which defines the result.
 * tests/stages/test_hostile.py holds them equal. 7 us a simulated page, 60 in Python.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

static const char *const endings[] = {"", "ig", "ode", "m", "ont", "obr", "mall", "trike", "trong", "t", NULL};

static int is_first(unsigned char c)
{
    return c && strchr("bcefhinstu", c | 0x20) && (c & 0xC0) == 0x40;
}

static int ends_name(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == '/';
}

/* Whether `name` (in lower case) stands at p in whatever case, and something follows it inside the tag. */
static int stands(const unsigned char *p, const unsigned char *end, const char *name)
{
    for (; *name; name++, p++)
        if (p >= end || (*p | 0x20) != (unsigned char)*name)
            return 0;
    return p < end && ends_name(*p);
}

static PyObject *survey(PyObject *module, PyObject *body)
{
    (void)module;
    char *start;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(body, &start, &size) < 0)
        return NULL;
    const unsigned char *p = (const unsigned char *)start, *end = p + size;
    Py_ssize_t tags = 0, formats = 0, html = 0, bodies = 0;
    while (p < end && (p = memchr(p, '<', end - p)) != NULL) {
        tags++;
        if (++p >= end || !is_first(*p))
            continue;
        unsigned char first = *p | 0x20;
        if (first == 'h' && stands(p + 1, end, "tml"))
            html++;
        else if (first == 'b' && stands(p + 1, end, "ody"))
            bodies++;
        else
            for (const char *const *ending = endings; *ending; ending++)
                if (stands(p + 1, end, *ending)) {
                    formats++;
                    break;
                }
    }
    return Py_BuildValue("(nnO)", tags, formats, html > 1 || bodies > 1 ? Py_True : Py_False);
}

static PyMethodDef methods[] = {
    {"survey", survey, METH_O, "survey(body: bytes) -> tuple[int, int, bool]"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_tags", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__tags(void)
{
    return PyModuleDef_Init(&module);
}
