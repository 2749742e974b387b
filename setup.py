"""The four compiled files. They are optional: without a C compiler Python twins give the same results, slower."""

from setuptools import Extension, setup


def kernel(name: str) -> Extension:
    return Extension(
        f"harvestman.{name}",
        sources=[f"src/harvestman/{name.replace('.', '/')}.c"],
        py_limited_api=True,
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        extra_compile_args=["-O3"],
        optional=True,
    )


setup(
    ext_modules=[kernel("pages._simhash"), kernel("pages._tags"), kernel("embedded._near"), kernel("sim._member")],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
