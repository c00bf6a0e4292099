"""Packages: the top-level folders grammars/, kernels/ and programs/ install as nsfrc.grammars etc."""

from setuptools import find_packages, setup

mapped = {"nsfrc.grammars": "grammars", "nsfrc.kernels": "kernels", "nsfrc.programs": "programs"}

setup(
    packages=[*find_packages(include=["nsfrc", "nsfrc.*"]), *mapped],
    package_dir={"": ".", **mapped},
    package_data={
        "nsfrc": ["py.typed"],
        "nsfrc.grammars": ["*.lark"],
        "nsfrc.programs": ["*.pl", "*/*.pl"],
        "nsfrc.perception": ["shipped/*.safetensors"],
        "nsfrc.valuation": ["*.json"],
        "nsfrc.inference": ["*.json", "*.html", "*.css", "*.js"],
    },
)
