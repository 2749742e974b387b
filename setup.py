"""The one compiled file. It is optional: without a C compiler the pure-Python twin gives identical results, slower."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "harvestman.pages._simhash",
            sources=["src/harvestman/pages/_simhash.c"],
            py_limited_api=True,
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-O3"],
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
