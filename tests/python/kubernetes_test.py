"""deploy/kubernetes against the schemas of Kubernetes and of KEDA."""

import os
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from cloudcoil.models.keda.v1alpha1 import ScaledObject

FOLDER = Path(os.environ["LOOPFLEET_SOURCE"]) / "deploy" / "kubernetes"
VERSIONS = ("1.29", "1.33")


def objects():
    return [(path.relative_to(FOLDER).as_posix(), each) for path in sorted(FOLDER.rglob("*.yaml"))
            if path.name != "kustomization.yaml" for each in yaml.safe_load_all(path.read_text())]


def validate(each):
    if each["kind"] == "ScaledObject":
        ScaledObject.model_validate(each)
        return
    for version in VERSIONS:
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("name, each", objects(), ids=lambda value: value if isinstance(value, str) else value["kind"])
def test_the_schema_takes_it(name, each):
    validate(each)


def test_mistakes_would_be_seen():
    by_kind = {each["kind"]: each for _, each in objects()}
    assert {"StatefulSet", "DaemonSet", "Deployment", "Service", "NetworkPolicy", "ScaledObject"} <= by_kind.keys()
    by_kind["Deployment"]["spec"]["template"]["spec"]["nodeSelctor"] = {}
    by_kind["NetworkPolicy"]["spec"]["egress"] = "none"
    by_kind["ScaledObject"]["spec"]["maxReplicaCount"] = "many"
    for kind in ("Deployment", "NetworkPolicy", "ScaledObject"):
        with pytest.raises((kubernetes_validate.ValidationError, ValueError)):
            validate(by_kind[kind])
