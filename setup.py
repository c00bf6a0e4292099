"""Packages: the top-level folders benchmarks/, grammars/, kernels/ and programs/ install as nsfrc.benchmarks etc."""

from setuptools import find_packages, setup

mapped = {f"nsfrc.{name}": name for name in ("benchmarks", "grammars", "kernels", "programs")}

setup(
    packages=[*find_packages(include=["nsfrc", "nsfrc.*"]), *mapped],
    package_dir={"": ".", **mapped},
    package_data={
        "nsfrc": ["py.typed"],
        "nsfrc.engines.cpu": ["lowered/*.ll.xz"],
        "nsfrc.grammars": ["*.lark"],
        "nsfrc.programs": ["*.pl", "*/*.pl"],
        "nsfrc.perception": ["shipped/*.safetensors"],
        "nsfrc.valuation": ["*.json"],
        "nsfrc.inference": ["*.json", "*.html", "*.css", "*.js"],
        "nsfrc.page": ["*.css", "*.js"],
    },
)
