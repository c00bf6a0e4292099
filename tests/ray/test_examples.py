"""The files in examples/cluster are well formed, and the commands in them exist."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import yaml

from tests.docs.options import parse

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "cluster"


def test_the_script_that_submits_a_job() -> None:
    script = FOLDER / "submit.sh"
    subprocess.run(["sh", "-n", str(script)], check=True)
    words = shlex.split(script.read_text().replace("\\\n", " "), comments=True)
    job = words[words.index("submit") :]
    assert job[: job.index("--")].count("--runtime-env-json") == 1
    command = job[job.index("--") + 1 :]
    assert command[0] == "nsfrc"
    parse(command[1:])


def test_the_manifest_of_kuberay() -> None:
    job = yaml.safe_load((FOLDER / "kuberay.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    command = shlex.split(job["spec"]["entrypoint"])
    parse(command[1:])
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        assert container["resources"]["limits"] == container["resources"]["requests"]
        assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
    (workers,) = cluster["workerGroupSpecs"]
    cpus = workers["replicas"] * int(workers["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"]) + 1
    assert int(command[command.index("--workers") + 1]) < cpus
